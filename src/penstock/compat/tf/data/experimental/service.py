"""`tf.data.experimental.service`, by `penstock.service`: the dispatcher and its workers are processes of this machine.

Both of TensorFlow's servers may be where they are in its programs. The dispatcher starts the worker processes (as many
as there are cores, if consumers wait for them), so that a `WorkerServer` only joins a dispatcher that is there. An
address names a port, as in TensorFlow; what it stands for is a folder of this user's, in which nobody else may look.

Between processes of one machine nothing is compressed and every worker is local, so that `compression` and
`target_workers` change something on Ray alone.
"""

from __future__ import annotations

import os
import secrets
import shutil
import time
import weakref
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import penstock as ps
from penstock.compat.dataset import Dataset, adopted, ours
from penstock.compat.teaching import missing_in
from penstock.delivery.dispatcher import check_free
from penstock.errors import FailedPreconditionError, InvalidArgumentError, InvalidTypeError
from penstock.io.writing import local
from penstock.plan.node import check_int

_LOCAL = ("localhost", "127.0.0.1", "0.0.0.0", "[::1]")
_PORTS = range(49152, 65536)  # of which port=0 means any
_TRIES = 16  # of them, before it is said that a service runs at each
_LOOK = 0.2  # seconds between two looks at whether a dispatcher is still there
_MODES = {"parallel_epochs": "off", "distributed_epoch": "dynamic"}


class ShardingPolicy:
    """Which worker makes which elements; a member is what `processing_mode` takes."""

    OFF, DYNAMIC = "off", "dynamic"
    FILE = DATA = FILE_OR_DATA = HINT = "static"


class CrossTrainerCache:
    """Trainers that share what was made: those of one job do, here, without being told."""

    def __init__(self, trainer_id: Any) -> None:
        self.trainer_id = trainer_id


@dataclass
class DispatcherConfig:
    """Where a dispatcher listens: `port`, 0 for any that no other has.

    With `fault_tolerant_mode` data sets that were registered are in `work_dir`, a folder of this machine, and known
    again to the next dispatcher with that folder. Consumers go on with the next dispatcher of the same port in any
    case. What else TensorFlow has is here for its programs, and says nothing.
    """

    port: int = 0
    protocol: Any = None
    work_dir: Any = None
    fault_tolerant_mode: bool = False
    worker_addresses: Any = None
    job_gc_check_interval_ms: Any = None
    job_gc_timeout_ms: Any = None
    worker_timeout_ms: Any = None
    worker_max_concurrent_snapshots: Any = None


@dataclass
class WorkerConfig:
    """The dispatcher that a worker joins. What else TensorFlow has is here for its programs, and says nothing."""

    dispatcher_address: str
    worker_address: Any = None
    port: int = 0
    protocol: Any = None
    heartbeat_interval_ms: Any = None
    dispatcher_timeout_ms: Any = None
    data_transfer_protocol: Any = None
    data_transfer_address: Any = None


class DispatchServer:
    """A service: it ends with this process, or with this object."""

    def __init__(self, config: DispatcherConfig | None = None, start: bool = True) -> None:
        config = config or DispatcherConfig()
        self._kept = _kept(config)
        self._any = not _checked_port(config.port)
        self._port = config.port or _some_port()
        self._handle: Any = None
        if start:
            self.start()

    def start(self) -> None:
        """Begin; nothing if it has begun. Raises FailedPreconditionError where a service runs at the port already."""
        if self._handle is not None:
            return
        for left in range(_TRIES - 1, -1, -1):
            try:
                check_free(_folder(self._port))
                break
            except FailedPreconditionError:
                if not self._any or not left:
                    raise
                self._port = _some_port()
        folder = _folder(self._port)
        with suppress(FileNotFoundError):
            if Path(folder).is_symlink():  # of a dispatcher that was killed
                Path(folder).unlink()
        if self._kept is not None:
            self._kept.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
            Path(folder).symlink_to(self._kept, target_is_directory=True)
        self._handle = ps.service.start(folder=folder)
        self._end = weakref.finalize(self, _ended, self._handle)

    @property
    def target(self) -> str:
        """What `distribute` takes, in any process of this user."""
        return f"grpc://localhost:{self._port}"

    def join(self) -> None:
        """Wait until the service has ended."""
        _wait(self._handle)

    def _stop(self) -> None:
        if self._handle is not None:
            self._handle = None
            self._end()


class WorkerServer:
    """Joins a dispatcher, which has its worker processes already."""

    def __init__(self, config: WorkerConfig, start: bool = True) -> None:
        self._config = config
        self._handle: Any = None
        if start:
            self.start()

    def start(self) -> None:
        """Raise FailedPreconditionError where there is no dispatcher at the address."""
        address = self._config.dispatcher_address
        try:
            self._handle = ps.service.connect(_address(address))
        except FailedPreconditionError as error:
            message = f"No dispatcher answers at {address!r}."
            hint = "Begin a DispatchServer before, in this process or in another one of this machine and user."
            raise FailedPreconditionError(message, hint=hint) from error

    def join(self) -> None:
        """Wait until the service has ended."""
        _wait(self._handle)

    def _stop(self) -> None:
        self._handle = None


def distribute(
    processing_mode: Any,
    service: Any,
    job_name: Any = None,
    consumer_index: Any = None,
    num_consumers: Any = None,
    max_outstanding_requests: Any = None,
    data_transfer_protocol: Any = None,
    compression: Any = "AUTO",
    cross_trainer_cache: Any = None,
    target_workers: Any = "AUTO",
) -> Any:
    """`Dataset.distribute` as a function for `Dataset.apply`."""
    how = _how(processing_mode, service, consumer_index, num_consumers, max_outstanding_requests)
    how |= _way(service, job_name, compression, cross_trainer_cache, target_workers)
    address = _address(service)
    return lambda dataset: adopted(dataset).distribute(address, job_name, **how)


def register_dataset(service: Any, dataset: Any, compression: Any = "AUTO", dataset_id: Any = None) -> str:
    """Have a service know a data set; its id, for `from_dataset_id`.

    Nothing of `compression` is kept with it: consumers say themselves how results are sent to them.
    """
    _check_way(compression, "AUTO")
    return ps.service.register_dataset(_address(service), dataset, dataset_id)


def from_dataset_id(
    processing_mode: Any,
    service: Any,
    dataset_id: Any,
    element_spec: Any = None,
    job_name: Any = None,
    consumer_index: Any = None,
    num_consumers: Any = None,
    max_outstanding_requests: Any = None,
    data_transfer_protocol: Any = None,
    cross_trainer_cache: Any = None,
    target_workers: Any = "AUTO",
) -> Dataset:
    """The data set that was registered with this id, made by the service's workers."""
    how = _how(processing_mode, service, consumer_index, num_consumers, max_outstanding_requests)
    how |= _way(service, job_name, "AUTO", cross_trainer_cache, target_workers)
    return ours(ps.service.from_dataset_id(_address(service), dataset_id, job_name, element_spec=element_spec, **how))


def _how(mode: Any, service: Any, index: Any, consumers: Any, outstanding: Any) -> dict[str, Any]:
    sharding = _MODES.get(mode, mode)
    if sharding not in ("off", "dynamic", "static"):
        message = f"processing_mode={mode!r} is none of tf.data.experimental.service.ShardingPolicy."
        hint = (
            "DYNAMIC, or 'distributed_epoch', gives each element once; OFF, or 'parallel_epochs', all to each worker."
        )
        raise InvalidArgumentError(message, hint=hint)
    how = {"sharding": sharding, "consumer_index": index, "num_consumers": consumers, "max_outstanding": outstanding}
    if sharding != "dynamic":
        address = _address(service)
        service_runs = address.startswith(("unix://", "ray-service://"))
        how["workers"] = len(ps.service.connect(address).status()["workers"]) if service_runs else 1
    return {name: value for name, value in how.items() if value is not None}


def _way(service: Any, job_name: Any, compression: Any, cache: Any, target_workers: Any) -> dict[str, Any]:
    """How results travel: something that can be chosen on Ray alone."""
    _check_way(compression, target_workers)
    if cache is not None and not isinstance(cache, CrossTrainerCache):
        message = f"cross_trainer_cache takes a CrossTrainerCache, got {type(cache).__name__}."
        raise InvalidTypeError(message, hint="CrossTrainerCache(trainer_id='trainer 1')")
    if cache is not None and job_name is None:
        message = "cross_trainer_cache needs a job_name: trainers of one job share what is made for it."
        raise InvalidArgumentError(message, hint="Give all trainers the same, as job_name='features'.")
    if not _address(service).startswith("ray"):
        return {}
    return {"compression": compression, "target_workers": target_workers.upper()}


def _check_way(compression: Any, target_workers: Any) -> None:
    if compression not in ("AUTO", None):
        message = f"compression must be 'AUTO' or None, got compression={compression!r}."
        raise InvalidArgumentError(message, hint="Dataset.distribute(compression='ZSTD') chooses a codec, on Ray.")
    if not isinstance(target_workers, str) or target_workers.upper() not in ("AUTO", "ANY", "LOCAL"):
        message = f"target_workers must be 'AUTO', 'ANY' or 'LOCAL', got target_workers={target_workers!r}."
        raise InvalidArgumentError(message, hint="'LOCAL' has workers on the consumer's own machine alone.")


def _kept(config: DispatcherConfig) -> Path | None:
    """The folder of what outlives a dispatcher; None for nothing."""
    if config.work_dir is not None:
        folder = local(config.work_dir, "work_dir") / "penstock-service"
    elif config.fault_tolerant_mode:
        message = "fault_tolerant_mode=True needs a work_dir, where the next dispatcher finds what this one knew."
        raise InvalidArgumentError(message, hint="DispatcherConfig(port=5050, work_dir='state', ...)")
    return folder.absolute() if config.fault_tolerant_mode else None


def _checked_port(port: Any) -> int:
    found: int = check_int("port", port, least=0, hint="5050, for example; 0 for any that no other dispatcher has.")
    if found >= _PORTS.stop:
        message = f"port must be less than {_PORTS.stop}, got port={port}."
        raise InvalidArgumentError(message, hint="5050, for example; 0 for any that no other dispatcher has.")
    return found


def _some_port() -> int:
    return _PORTS.start + secrets.randbelow(len(_PORTS))


def _address(service: Any) -> str:
    """penstock's address for one of TensorFlow's: `grpc://localhost:5050`, with or without the protocol."""
    text = str(getattr(service, "address", service))
    protocol, _, rest = text.rpartition("://")
    if protocol in ("unix", "ray", "ray-service") or text in ("local", "ray"):
        return text
    host, _, port = rest.rpartition(":")
    if host not in _LOCAL or not port.isdigit():
        message = f"The address of a dispatcher is that of one on this machine, got {text!r}."
        hint = 'Such as dispatcher.target or "grpc://localhost:5050"; "ray://host:port" has the workers of a cluster.'
        raise InvalidArgumentError(message, hint=hint)
    return f"unix://{_folder(int(port))}"


def _folder(port: int) -> str:
    return f"/tmp/penstock-service-{os.getuid()}-{port}"  # a short path: it holds sockets


def _ended(handle: Any) -> None:
    handle.stop()
    folder = Path(handle.folder)
    if folder.is_symlink():
        folder.unlink()
    else:
        shutil.rmtree(folder, ignore_errors=True)


def _wait(handle: Any) -> None:
    try:
        while handle is not None and handle.status():
            time.sleep(_LOOK)
    except FailedPreconditionError:
        return


__getattr__ = missing_in("tf.data.experimental.service", globals())
