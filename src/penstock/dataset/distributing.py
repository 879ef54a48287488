"""Methods of `Dataset`: steps that workers elsewhere run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic

from penstock.block.spec import T_co
from penstock.dataset.base import Base
from penstock.errors import Context, InvalidArgumentError, InvalidTypeError, PenstockError, annotate, user_location
from penstock.plan.node import AUTOTUNE, check_int

if TYPE_CHECKING:
    from penstock.dataset.dataset import Dataset
    from penstock.delivery.handle import Handle
    from penstock.delivery.ray_service import RayHandle
    from penstock.physical.lower import Service

_TARGETS = ("AUTO", "ANY", "LOCAL")


class Distributing(Base, Generic[T_co]):
    """Mixed into `Dataset`."""

    def distribute(
        self,
        service: str | Handle | RayHandle = "local",
        job_name: str | None = None,
        *,
        sharding: str = "dynamic",
        num_consumers: int | None = None,
        consumer_index: int | None = None,
        max_outstanding: int | None = None,
        workers: int | str = "auto",
        compression: str | None = "AUTO",
        target_workers: str = "AUTO",
    ) -> Dataset[T_co]:
        """Have workers make what stands above this call; what is behind it stays in this process.

        The elements, and their order, are those of a pass without the call, on any number of workers, also when some of
        them die. With `service="local"` the workers are `workers` processes of this machine, which start with the first
        element and end soon after the pass. "auto" begins with half as many as there are cores, and has more while the
        loop waits for elements, up to the cores.

        >>> import penstock as ps
        >>> ds = ps.Dataset.range(6).map(lambda x: x * x).distribute(workers=1)
        >>> [int(x) for x in ds]
        [0, 1, 4, 9, 16, 25]

        Workers are given ranges of the elements that come out of the source, and run the maps, filters and batches
        behind it. Where elements have numbers (see `Dataset.at`) a range costs nothing but itself; any other source is
        read by every worker, which passes over what is not its own. It has to give every process the same elements.
        What needs the whole stream (a shuffle of what functions have made, a cache, a batch behind a filter, `repeat`)
        stays here with all that is behind it; `explain()` names it. The workers' functions are called in processes of
        their own: what they count or keep is not seen here.

        With `sharding="static"` each of `workers` workers runs all steps over a share of the source's elements (its
        files, where the source names files), and an element of each comes in turn. Every element comes once; batches
        and shuffles are of one share. With "off" each runs all steps over all elements, in an order and with draws of
        its own: what `repeat(workers)` gives, the turns beside each other. The stream depends on the number, which may
        not be "auto", and on nothing else: workers that die are replaced as above. `ps.Dataset.range(4)` comes as

        >>> ds = ps.Dataset.range(4).distribute(sharding="off", workers=2)
        >>> [int(x) for x in ds]
        [0, 0, 1, 1, 2, 2, 3, 3]

        `service` may also be a running service: a handle (`ps.service.start`) or its address. Its workers are shared by
        all who use it. Trainers that give the same `job_name`, over the same data set, each get all of it, and what was
        made for one is sent to the others as long as the workers keep it (256 MB each); who comes later than that has
        it made again. When a service dies, passes wait for another one in its folder for a minute, and go on.

        With `service="ray"`, or `"ray://host:port"`, workers are actors of Ray (`pip install 'penstock[ray]'`), up to
        one for each CPU of the cluster unless `workers` says otherwise, for the length of the pass. A local Ray is
        started where this process is connected to none.

        Services that trainers on several machines share run on Ray: `ps.service.start(on="ray")`. Between machines
        results are compressed with `compression`: "AUTO" measures LZ4, ZSTD and nothing, and uses what takes the least
        time; None, "LZ4" and "ZSTD" say it. On one machine nothing is ever compressed. `target_workers="LOCAL"` has
        workers on the consumer's own node alone, so that no result crosses the network.

        `max_outstanding` bounds how many ranges are asked for, or have come and wait for their turn. With
        `num_consumers` trainers step together: number `consumer_index` of them gets elements (batches)
        `consumer_index`, `consumer_index + num_consumers`, and so on.

        `state_dict()` covers all of it, and goes on with any number of workers.

        >>> with ps.service.start(workers=1) as service:
        ...     ds = ps.Dataset.range(4).map(lambda x: x + 1).distribute(service, job_name="both")
        ...     [int(x) for x in ds], [int(x) for x in ds.iterator(epoch=0)]
        ([1, 2, 3, 4], [1, 2, 3, 4])

        Raises InvalidArgumentError when a pass begins, and before anything is started, for a plan that holds what
        belongs to one process, such as an open file; for a `num_consumers` without a `consumer_index`, or an index that
        is none of theirs; for another `sharding`; for "static" and "off" without a number of workers, or over a step
        that writes files.
        """
        from penstock.plan.distribution import Distribute

        try:
            count = _count_of(workers)
            shares = sharding in ("static", "off")
            how = _how(compression, target_workers)
            found = _service(service, job_name, count, max_outstanding, how, shares=shares)
        except PenstockError as error:
            annotate(error, Context(stage=Distribute.name, where=user_location()))
            raise
        return self._then(
            Distribute,
            service=found,
            num_consumers=num_consumers,
            consumer_index=consumer_index,
            sharding=sharding,
            parts=count if shares else None,
        )

    def to_ray(self, *, blocks: int = 8) -> Any:
        """A `ray.data.Dataset` of the elements of one pass (epoch 0), made on Ray when it is read.

        Rows are dicts: the components of an element by their names (`"image"`, `"0.id"`), a single value as `"item"`.
        `blocks` tasks make ranges of the elements, as the workers of `distribute` do; where a step needs the whole
        stream, each of them goes over all of it. The order of rows is Ray's.

            ds.to_ray().write_parquet("s3://bucket/prepared")

        Raises MissingDependencyError without Ray (`pip install 'penstock[ray]'`), InvalidArgumentError for an infinite
        data set; an element that fails, fails Ray's task.
        """
        from penstock.dataset.distributing_ray import to_ray

        hint = "How many tasks share the elements out."
        dataset: Any = self
        return to_ray(dataset, check_int("blocks", blocks, least=1, hint=hint))

    @staticmethod
    def from_ray(
        dataset: Any, columns: Sequence[str] | None = None, *, fill_null: Mapping[str, Any] | None = None
    ) -> Dataset:
        """The rows of a `ray.data.Dataset`, as dicts of their columns.

        Ray runs what it takes to make them, now, and they are read from its object store, as `from_arrow` reads a
        table: `len(ds)`, `ds[i]` and `shuffle(ps.ALL)` work, and every pass has the same order.

            ds = ps.Dataset.from_ray(ray.data.read_parquet("s3://bucket/prepared")).shuffle(ps.ALL).batch(32)

        Raises MissingDependencyError without Ray, InvalidTypeError for another object, and what `from_arrow` raises.
        """
        from penstock.dataset.distributing_ray import from_ray

        return from_ray(dataset, columns, fill_null)


def _count_of(workers: Any) -> int | None:
    if workers == "auto" or workers == AUTOTUNE:
        return None
    hint = "The number of worker processes, or 'auto' for as many as there are cores."
    return check_int("workers", workers, least=1, hint=hint)


def _how(compression: Any, target_workers: Any) -> tuple[str | None, bool]:
    from penstock.delivery.wire import check_compression

    if target_workers not in _TARGETS:
        message = f"target_workers must be one of {', '.join(map(repr, _TARGETS))}, got {target_workers!r}."
        raise InvalidArgumentError(message, hint="'LOCAL' has workers on the consumer's own node alone.")
    return check_compression(compression), target_workers == "LOCAL"


def _service(
    service: Any, job_name: Any, count: int | None, max_outstanding: Any, how: tuple[str | None, bool], *, shares: bool
) -> Service:
    from penstock.delivery.handle import Handle, folder_of
    from penstock.delivery.on_ray import OnRay
    from penstock.delivery.ray_service import PREFIX as ON_RAY
    from penstock.delivery.ray_service import RayHandle, RayShared, named
    from penstock.delivery.served import PREFIX, Local, Shared

    cluster = None
    if max_outstanding is not None:
        hint = "How many ranges of elements may be asked for, or wait for their turn; leave it out for what is usual."
        max_outstanding = check_int("max_outstanding", max_outstanding, least=1, hint=hint)
    if isinstance(service, (Handle, RayHandle)):
        cluster = getattr(service, "cluster", None)
        service = service.address
    if job_name is not None and not isinstance(job_name, str):
        message = f"job_name must be text, got job_name={job_name!r} ({type(job_name).__name__})."
        raise InvalidTypeError(message, hint="Consumers that give the same name share what is made.")
    if not isinstance(service, str):
        message = f"service must be the name of a service, got {service!r} ({type(service).__name__})."
        raise InvalidTypeError(message, hint="service='local' has processes of this machine do it.")
    if how[0] in ("lz4", "zstd") and service != "ray" and not service.startswith(("ray://", ON_RAY)):
        message = f"Nothing is compressed between processes of one machine, got compression={how[0].upper()!r}."
        raise InvalidArgumentError(message, hint="Leave it out: shared memory is faster than any codec.")
    if service.startswith((PREFIX, ON_RAY)):
        if count is not None and not shares:
            message = f"The number of workers is a service's own, got workers={count} for {service!r}."
            raise InvalidArgumentError(message, hint="Give it where the service is started.")
        if service.startswith(ON_RAY):
            return RayShared(named(service).service, cluster, job_name, max_outstanding, *how)
        return Shared(folder_of(service), job_name, max_outstanding)
    if service == "ray" or service.startswith("ray://"):
        if job_name is not None:
            message = f"The workers on Ray are one consumer's own, got job_name={job_name!r}."
            raise InvalidArgumentError(
                message, hint="Give the handle or the address of a service: ps.service.start(on='ray')."
            )
        return OnRay(None if service == "ray" else service, count, max_outstanding, *how)
    if service != "local":
        message = f"service must be 'local', 'ray' or the address of a service, got service={service!r}."
        hint = f"An address begins with {PREFIX} or {ON_RAY}; ps.service.start() and `penstock service start` give one."
        raise InvalidArgumentError(message, hint=hint)
    if job_name is not None:
        message = f"The workers of service='local' are one consumer's own, got job_name={job_name!r}."
        raise InvalidArgumentError(message, hint="Give the handle or the address of a service: ps.service.start().")
    return Local(count, max_outstanding)
