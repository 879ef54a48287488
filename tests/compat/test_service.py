"""tf.data.experimental.service: programs with both of TensorFlow's servers, as they stand, over penstock's service."""

import subprocess
import sys

import pytest

from penstock.compat import tf
from penstock.errors import FailedPreconditionError, InvalidArgumentError

service = tf.data.experimental.service


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
        service.ShardingPolicy.DYNAMIC, dispatcher.target, job_name="shared", max_outstanding_requests=4
    )
    ds = squares().apply(shared).map(lambda x: tf.cast(x, tf.float32) / 2)
    assert [x.numpy() for x in ds] == [0, 0.5, 2, 4.5, 8, 12.5]
    assert next(iter(ds)).dtype == tf.float32


def test_every_worker_all_of_it(dispatcher):
    ds = squares().apply(service.distribute("parallel_epochs", dispatcher.target))
    found = sorted(x.numpy() for x in ds)
    workers = len(found) // 6
    assert found == sorted([0, 1, 4, 9, 16, 25] * workers)


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


def test_wrong_calls(dispatcher):
    with pytest.raises(InvalidArgumentError, match="gives each element once"):
        service.distribute("once", dispatcher.target)
    with pytest.raises(InvalidArgumentError, match="on this machine"):
        service.distribute("distributed_epoch", "grpc://10.0.0.1:5050")
    with pytest.raises(AttributeError, match="has no 'Snapshot'"):
        service.Snapshot  # noqa: B018
