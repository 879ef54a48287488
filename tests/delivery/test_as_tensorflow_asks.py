"""TensorFlow's tests of its own service, if no other test covers them: docs/explanation/service-tests.md."""

import tempfile
import threading

import numpy as np
import pytest
from tests.delivery.test_local import at_length
from tests.delivery.test_served import noted

import penstock as ps

pytestmark = [pytest.mark.system, at_length]


@pytest.fixture(scope="module")
def service():
    with ps.service.start(workers=1) as found:
        yield found


def restarted(service, folder, workers=1):
    service.stop()
    return ps.service.start(workers=workers, folder=folder)


def test_a_service_may_start_late_and_again_before_between_and_in_passes():
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="penstock-") as folder:
        started = []
        late = threading.Timer(0.5, lambda: started.append(ps.service.start(workers=1, folder=folder)))
        late.start()
        dataset = ps.Dataset.range(100).distribute(f"unix://{folder}")
        try:
            assert [int(x) for x in dataset] == list(range(100))
            late.join()
            service = restarted(started.pop(), folder)
            started.append(service)
            assert [int(x) for x in dataset] == list(range(100))
            repeated = ps.Dataset.range(50).repeat(4).batch(10).distribute(f"unix://{folder}")
            found = []
            for number, batch in enumerate(repeated):
                found += batch.tolist()
                if number % 6 == 3:
                    service = restarted(started.pop(), folder, workers=1 + number % 2)
                    started.append(service)
            assert found == 4 * list(range(50))
        finally:
            late.join()
            for each in started:
                each.stop()


def test_registered_data_sets_are_there_after_a_restart():
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="penstock-") as folder:
        service = ps.service.start(workers=1, folder=folder)
        names = [ps.service.register_dataset(service, ps.Dataset.range(count)) for count in range(10, 13)]
        service = restarted(service, folder)
        with service:
            assert [len(list(ps.service.from_dataset_id(service, name))) for name in names] == [10, 11, 12]


def test_a_plan_may_hold_large_arrays(service):
    tensor = np.ones((2, 1000, 1000), np.float32)
    (found,) = ps.Dataset.from_tensors(tensor).map(lambda x: x + 1).distribute(service)
    assert found.shape == tensor.shape
    assert (found == 2).all()


def test_trainers_that_step_together_get_batches_of_one_bucket(service):
    consumers = 3
    buckets = ps.Dataset.range(100).shuffle(100).repeat(3)
    buckets = buckets.bucket_by_sequence_length(lambda x: x, [30, 60], [10, 10, 10], drop_remainder=True)
    buckets = buckets.group_by_window(
        lambda batch: np.searchsorted([30, 60], batch[0], side="right"),
        lambda key, batches: batches.batch(consumers, drop_remainder=True),
        window_size=consumers,
    ).unbatch()
    parts = [
        iter(buckets.distribute(service, "steps", num_consumers=consumers, consumer_index=index))
        for index in range(consumers)
    ]
    steps = list(zip(*parts, strict=False))
    assert len(steps) >= 4
    for batches in steps:
        assert len({int(np.searchsorted([30, 60], x, side="right")) for batch in batches for x in batch}) == 1


def test_jobs_of_other_names_share_nothing(service, tmp_path):
    dataset = ps.Dataset.range(5).map(noted(tmp_path))
    for name in ("one", "two"):
        assert [int(x) for x in dataset.distribute(service, name).iterator(epoch=0)] == [0, 2, 4, 6, 8]
    assert len(list(tmp_path.iterdir())) == 10


@pytest.mark.parametrize("sharding", ["dynamic", "static", "off"])
def test_nothing_comes_of_nothing(service, sharding):
    workers = "auto" if sharding == "dynamic" else 2
    assert list(ps.Dataset.range(0).distribute(service, sharding=sharding, workers=workers)) == []
