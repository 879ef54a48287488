"""tf.data.experimental.service: programs with both of TensorFlow's servers, as they stand, over penstock's service."""

import os
import subprocess
import sys

import pytest

from penstock.compat import tf
from penstock.compat.tf.data.experimental import service as compat_service
from penstock.errors import FailedPreconditionError, InvalidArgumentError, InvalidTypeError

service = tf.data.experimental.service
at_length = pytest.mark.skipif("PENSTOCK_SERVICE" not in os.environ, reason="part of `make service`")


def squares():
    return tf.data.Dataset.range(6).map(lambda x: x * x)


@pytest.fixture(scope="module")
def dispatcher():
    found = service.DispatchServer(service.DispatcherConfig(port=0))
    service.WorkerServer(service.WorkerConfig(dispatcher_address=found.target.split("://")[1]))
    yield found
    found._stop()
    with pytest.raises(FailedPreconditionError, match="No dispatcher answers"):
        service.WorkerServer(service.WorkerConfig(found.target))
    found.join()  # it has ended


def test_each_element_once(dispatcher):
    shared = service.distribute(
        service.ShardingPolicy.DYNAMIC,
        dispatcher.target,
        job_name="shared",
        max_outstanding_requests=4,
        compression=None,
        cross_trainer_cache=service.CrossTrainerCache("one"),
        target_workers="local",
    )
    ds = squares().apply(shared).map(lambda x: tf.cast(x, tf.float32) / 2)
    assert [x.numpy() for x in ds] == [0, 0.5, 2, 4.5, 8, 12.5]


@at_length
def test_every_worker_all_of_it(dispatcher):
    ds = squares().apply(service.distribute("parallel_epochs", dispatcher.target))
    found = sorted(x.numpy() for x in ds)
    workers = len(found) // 6
    assert found == sorted([0, 1, 4, 9, 16, 25] * workers)


@at_length
def test_what_was_registered_is_there_for_another_program(dispatcher, tmp_path):
    name = service.register_dataset(dispatcher.target, tf.data.Dataset.range(4).batch(2))
    program = f"""
from penstock.compat import tf
ds = tf.data.experimental.service.from_dataset_id("distributed_epoch", {dispatcher.target!r}, {name!r})
print([batch.numpy().tolist() for batch in ds])
"""
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert printed == "[[0, 1], [2, 3]]\n"
    tf.data.experimental.distributed_save(squares(), str(tmp_path / "saved"), dispatcher.target)
    assert [x.numpy() for x in tf.data.Dataset.load(str(tmp_path / "saved"))] == [0, 1, 4, 9, 16, 25]


@at_length
def test_what_was_registered_outlives_a_fault_tolerant_dispatcher(tmp_path):
    work_dir, port = str(tmp_path / "state"), 0
    for kept in (True, True, False):
        config = service.DispatcherConfig(port=port, work_dir=work_dir, fault_tolerant_mode=kept)
        found = service.DispatchServer(config)
        port = int(found.target.rpartition(":")[2])
        try:
            if kept:
                assert service.register_dataset(found.target, squares(), dataset_id="squares") == "squares"
                ds = service.from_dataset_id("distributed_epoch", found.target, "squares")
                assert [x.numpy() for x in ds] == [0, 1, 4, 9, 16, 25]
                squares_known = found._handle.status()["datasets"]
                assert squares_known == ["squares"]
            else:
                assert found._handle.status()["datasets"] == []
        finally:
            found._stop()
        assert not os.path.lexists(compat_service._folder(port))


@at_length
def test_a_port_that_is_taken(dispatcher, monkeypatch):
    port = int(dispatcher.target.rpartition(":")[2])
    with pytest.raises(FailedPreconditionError, match=r"runs in .* already"):
        service.DispatchServer(service.DispatcherConfig(port=port))
    drawn = iter([port, port, 49151])
    monkeypatch.setattr(compat_service, "_some_port", lambda: next(drawn))
    another = service.DispatchServer()
    try:
        assert another.target == "grpc://localhost:49151"
    finally:
        another._stop()


def test_wrong_calls():
    nobody = "grpc://localhost:1"
    with pytest.raises(InvalidArgumentError, match="gives each element once"):
        service.distribute("once", nobody)
    with pytest.raises(InvalidArgumentError, match="on this machine"):
        service.distribute("distributed_epoch", "grpc://10.0.0.1:5050")
    with pytest.raises(AttributeError, match="has no 'Snapshot'"):
        service.Snapshot  # noqa: B018
    for wrong, text in (
        ({"compression": "LZ4"}, "compression must be 'AUTO' or None"),
        ({"target_workers": "NEAR"}, "target_workers must be"),
        ({"cross_trainer_cache": service.CrossTrainerCache("one")}, "needs a job_name"),
    ):
        with pytest.raises(InvalidArgumentError, match=text):
            service.distribute("distributed_epoch", nobody, **wrong)
    with pytest.raises(InvalidTypeError, match="takes a CrossTrainerCache, got str"):
        service.distribute("distributed_epoch", nobody, "job", cross_trainer_cache="one")
    for config, text in (
        ({"port": -1}, "port must be at least 0"),
        ({"port": 65536}, "port must be less than 65536"),
        ({"fault_tolerant_mode": True}, "needs a work_dir"),
        ({"work_dir": "gs://bucket/state"}, "work_dir must lie on this machine"),
    ):
        with pytest.raises(InvalidArgumentError, match=text):
            service.DispatchServer(service.DispatcherConfig(**config))
    with pytest.raises(InvalidTypeError, match="port must be an integer, got port='5050'"):
        service.DispatchServer(service.DispatcherConfig(port="5050"))


def test_what_can_be_chosen_on_ray_goes_there():
    chosen = compat_service._way("ray", None, None, None, "local")
    assert chosen == {"compression": None, "target_workers": "LOCAL"}
