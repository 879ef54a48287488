"""Methods of `Dataset` for steps that workers of a service run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic

from penstock.block.spec import T_co
from penstock.dataset.base import Base, Located
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.plan.node import AUTOTUNE, check_int

if TYPE_CHECKING:
    from penstock.dataset.dataset import Dataset
    from penstock.delivery.handle import Handle
    from penstock.delivery.ray_service import RayHandle
    from penstock.physical.lower import Service

_TARGETS = ("AUTO", "ANY", "LOCAL")


class Distributing(Base, Generic[T_co]):
    """Methods for distribution and Ray Data."""

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
        """Run the steps before this one in worker processes.

        The elements and their order are the same as without this step, for any number of workers, and if workers die.
        Workers receive ranges of elements of the source, and run the maps, filters and batches after it. A range is
        cheap if the elements have an index (see `Dataset.at`); other sources are read by every worker, which skips the
        elements of other workers. Steps that need the whole stream run in this process, together with all steps after
        them: a shuffle of computed elements, a cache, a batch after a filter, `repeat`. `explain()` names these steps.
        Functions run in the processes of the workers, so their side effects happen there. `state_dict()` works with any
        number of workers.

        Args:
            service: Place of the workers.

                - `"local"`: processes of this machine, for the time of the iteration.
                - A handle of `ps.service.start`, or its address: a running service, whose workers several programs
                  share.
                - `"ray"` or `"ray://host:port"`: actors of Ray, for the time of the iteration.
            job_name: Name of a job of a running service. Trainers that pass the same name and an equal data set share
                the computed elements, of which each worker keeps 256 MB. Elements that were dropped are computed again.
            sharding: Distribution of the elements.

                - `"dynamic"`: workers compute ranges, and the elements are the same as without this step.
                - `"static"`: each of `workers` workers runs all steps over a share of the source (its files, if it has
                  file names). The elements of the workers alternate. Every element is yielded once.
                - `"off"`: each worker runs all steps over all elements, with its own order and random numbers.
            num_consumers: Number of trainers that step together, with the same `job_name`.
            consumer_index: Index of this trainer. It receives the elements `consumer_index`, `consumer_index +
                num_consumers` and so on.
            max_outstanding: Largest number of ranges that are requested or wait for their turn.
            workers: Number of workers. `"auto"` starts with half of the cores, and uses more while the consumer waits,
                up to all cores. `"static"` and `"off"` need a number.
            compression: Compression of elements between machines: `"AUTO"` measures which is fastest, or `"LZ4"`,
                `"ZSTD"` or None. Elements on one machine are never compressed.
            target_workers: `"LOCAL"` uses only workers on the node of the consumer. Default: `"AUTO"`.

        Returns:
            A data set of the same elements.

        Raises:
            InvalidArgumentError: If an argument is invalid, or, when an iteration starts, if a worker process cannot
                run the plan, such as one with an open file.
            InvalidTypeError: If `service` or `job_name` is not a string.
            MissingDependencyError: If Ray is asked for and not installed.

        Example:
            >>> import penstock as ps
            >>> ds = ps.Dataset.range(6).map(lambda x: x * x).distribute(workers=1)
            >>> [int(x) for x in ds]
            [0, 1, 4, 9, 16, 25]
            >>> ds = ps.Dataset.range(4).distribute(sharding="off", workers=2)
            >>> [int(x) for x in ds]
            [0, 0, 1, 1, 2, 2, 3, 3]
            >>> with ps.service.start(workers=1) as service:
            ...     ds = ps.Dataset.range(4).map(lambda x: x + 1).distribute(service, job_name="both")
            ...     [int(x) for x in ds], [int(x) for x in ds.iterator(epoch=0)]
            ([1, 2, 3, 4], [1, 2, 3, 4])
        """
        from penstock.plan.distribution import Distribute

        consumer = {"num_consumers": num_consumers, "consumer_index": consumer_index}
        shares = sharding in ("static", "off")
        with Located(Distribute.name):
            count, how = _count_of(workers), _how(compression, target_workers)
            found = _service(service, job_name, count, max_outstanding, how, shares=shares)
        parts = count if shares else None
        return self._then(Distribute, service=found, sharding=sharding, parts=parts, **consumer)

    def to_ray(self, *, blocks: int = 8) -> Any:
        """Return a `ray.data.Dataset` of the elements of the first epoch.

        Ray computes the elements when it reads them. Rows are dicts: the components of an element by their names
        (`"image"`, `"0.id"`), and a single value as `"item"`. The order of the rows is Ray's.

        Args:
            blocks: Number of tasks that compute the elements. If a step needs the whole stream, each task runs over all
                elements. Default: 8.

        Returns:
            The `ray.data.Dataset`.

        Raises:
            MissingDependencyError: If Ray is not installed.
            InvalidArgumentError: If the data set is infinite, or if `blocks` is smaller than 1.

        Example:
            >>> import penstock as ps
            >>> ds = ps.Dataset.range(100).map(lambda x: {"x": x})
            >>> ds.to_ray().write_parquet("s3://bucket/prepared")  # doctest: +SKIP
        """
        from penstock.dataset.distributing_ray import to_ray

        hint = "blocks is the number of tasks that compute the elements."
        dataset: Any = self
        return to_ray(dataset, check_int("blocks", blocks, least=1, hint=hint))

    @staticmethod
    def from_ray(
        dataset: Any, columns: Sequence[str] | None = None, *, fill_null: Mapping[str, Any] | None = None
    ) -> Dataset:
        """Create a data set of the rows of a `ray.data.Dataset`.

        Ray computes all rows when this method is called. penstock reads them from Ray's object store, as `from_arrow`
        reads a table.

        Args:
            dataset: The `ray.data.Dataset`.
            columns: Names of the columns to read. Default: all columns.
            fill_null: Value that replaces nulls, by column. A null in another column is an error.

        Returns:
            A data set of dicts with one value for each column. Its elements have an index.

        Raises:
            MissingDependencyError: If Ray is not installed.
            InvalidTypeError: If `dataset` is another object, or if an array cannot hold the values of a column.
            InvalidArgumentError: If there is no column of a given name, or, during the iteration, if a value is null.

        Example:
            >>> import penstock as ps
            >>> ds = ps.Dataset.from_ray(ray.data.read_parquet("s3://bucket/prepared"))  # doctest: +SKIP
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
    from penstock.delivery.served import PREFIX, Local, SharedService

    cluster = None
    if max_outstanding is not None:
        hint = "max_outstanding is the number of ranges requested in advance. Leave it out for the default."
        max_outstanding = check_int("max_outstanding", max_outstanding, least=1, hint=hint)
    if isinstance(service, (Handle, RayHandle)):
        cluster = getattr(service, "cluster", None)
        service = service.address
    if job_name is not None and not isinstance(job_name, str):
        message = f"job_name must be text, got job_name={job_name!r} ({type(job_name).__name__})."
        raise InvalidTypeError(message, hint="Consumers with the same job_name share the computed elements.")
    if not isinstance(service, str):
        message = f"service must be the name of a service, got {service!r} ({type(service).__name__})."
        raise InvalidTypeError(message, hint="service='local' uses processes of this machine.")
    if how[0] in ("lz4", "zstd") and service != "ray" and not service.startswith(("ray://", ON_RAY)):
        message = f"Elements are never compressed between processes of one machine, got compression={how[0].upper()!r}."
        raise InvalidArgumentError(message, hint="Leave it out: shared memory is faster than any codec.")
    if service.startswith((PREFIX, ON_RAY)):
        if count is not None and not shares:
            message = f"A running service has its own number of workers, got workers={count} for {service!r}."
            raise InvalidArgumentError(message, hint="Pass workers= to ps.service.start().")
        if service.startswith(ON_RAY):
            return RayShared(named(service).service, cluster, job_name, max_outstanding, *how)
        return SharedService(folder_of(service), job_name, max_outstanding)
    if service == "ray" or service.startswith("ray://"):
        if job_name is not None:
            message = f"Actors on Ray serve one consumer only, got job_name={job_name!r}."
            raise InvalidArgumentError(
                message, hint="Give the handle or the address of a service: ps.service.start(on='ray')."
            )
        return OnRay(None if service == "ray" else service, count, max_outstanding, *how)
    if service != "local":
        message = f"service must be 'local', 'ray' or the address of a service, got service={service!r}."
        hint = f"An address begins with {PREFIX} or {ON_RAY}; ps.service.start() and `penstock service start` give one."
        raise InvalidArgumentError(message, hint=hint)
    if job_name is not None:
        message = f"Workers of service='local' serve one consumer only, got job_name={job_name!r}."
        raise InvalidArgumentError(message, hint="Give the handle or the address of a service: ps.service.start().")
    return Local(count, max_outstanding)
