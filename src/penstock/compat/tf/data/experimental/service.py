"""`tf.data.experimental.service`, based on `penstock.service`: the dispatcher and its workers run on this machine.

Programs may start both of TensorFlow's servers. The dispatcher starts the worker processes, as many as there are cores
if consumers wait for them. A `WorkerServer` only checks that its dispatcher runs. An address names a port, as in
TensorFlow. It stands for a folder of this user that other users cannot read.

Between processes of one machine nothing is compressed and every worker is local. `compression` and `target_workers`
therefore have an effect only on Ray.
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
_PORTS = range(49152, 65536)  # port=0 means any of these
_TRIES = 16  # attempts before an error reports that services run at all tried ports
_LOOK = 0.2  # seconds between two checks of a dispatcher
_MODES = {"parallel_epochs": "off", "distributed_epoch": "dynamic"}


class ShardingPolicy:
    """The distribution of elements over workers, for `processing_mode`."""

    OFF, DYNAMIC = "off", "dynamic"
    FILE = DATA = FILE_OR_DATA = HINT = "static"


class CrossTrainerCache:
    """A cache for trainers. Trainers of one job share results here even without it."""

    def __init__(self, trainer_id: Any) -> None:
        self.trainer_id = trainer_id


@dataclass
class DispatcherConfig:
    """The port of a dispatcher. 0: any port without a dispatcher.

    With `fault_tolerant_mode`, registered data sets are stored in `work_dir`, a folder of this machine. The next
    dispatcher with that folder knows them. Consumers always continue with the next dispatcher of the same port. Other
    settings of TensorFlow are accepted and have no effect.
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
    """The dispatcher that a worker joins. Other settings of TensorFlow are accepted and have no effect."""

    dispatcher_address: str
    worker_address: Any = None
    port: int = 0
    protocol: Any = None
    heartbeat_interval_ms: Any = None
    dispatcher_timeout_ms: Any = None
    data_transfer_protocol: Any = None
    data_transfer_address: Any = None


class DispatchServer:
    """A service that ends with this process, or with this object."""

    def __init__(self, config: DispatcherConfig | None = None, start: bool = True) -> None:
        config = config or DispatcherConfig()
        self._kept = _kept(config)
        self._any = not _checked_port(config.port)
        self._port = config.port or _some_port()
        self._handle: Any = None
        if start:
            self.start()

    def start(self) -> None:
        """Start the service, unless it runs. Raises FailedPreconditionError if another service has the port."""
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
            if Path(folder).is_symlink():  # left by a dispatcher that was killed
                Path(folder).unlink()
        if self._kept is not None:
            self._kept.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
            Path(folder).symlink_to(self._kept, target_is_directory=True)
        self._handle = ps.service.start(folder=folder)
        self._end = weakref.finalize(self, _ended, self._handle)

    @property
    def target(self) -> str:
        """The address for `distribute`, in any process of this user."""
        return f"grpc://localhost:{self._port}"

    def join(self) -> None:
        """Wait until the service has ended."""
        _wait(self._handle)

    def _stop(self) -> None:
        if self._handle is not None:
            self._handle = None
            self._end()


class WorkerServer:
    """Joins a dispatcher, which already has its worker processes."""

    def __init__(self, config: WorkerConfig, start: bool = True) -> None:
        self._config = config
        self._handle: Any = None
        if start:
            self.start()

    def start(self) -> None:
        """Raise FailedPreconditionError if no dispatcher runs at the address."""
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
    """Return `Dataset.distribute` as a function for `Dataset.apply`."""
    how = _how(processing_mode, service, consumer_index, num_consumers, max_outstanding_requests)
    how |= _way(service, job_name, compression, cross_trainer_cache, target_workers)
    address = _address(service)
    return lambda dataset: adopted(dataset).distribute(address, job_name, **how)


def register_dataset(service: Any, dataset: Any, compression: Any = "AUTO", dataset_id: Any = None) -> str:
    """Register a data set with a service, and return its id for `from_dataset_id`.

    `compression` is not stored: each consumer chooses how results are sent to it.
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
    """Return the data set that was registered with this id. The workers of the service compute it."""
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
    """Return the settings of the transfer of results, which exist only on Ray."""
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
    """Return the folder of a dispatcher's lasting state, or None."""
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
    """Return penstock's address for TensorFlow's: `grpc://localhost:5050`, with or without the protocol."""
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
    return f"/tmp/penstock-service-{os.getuid()}-{port}"  # a short path, because sockets in it allow only short names


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
