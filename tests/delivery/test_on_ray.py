"""service="ray": workers that are actors of a small cluster on this machine. `make service` installs Ray."""

import os
import random
import sys

import numpy as np
import pytest
from tests.delivery.test_delivered import failing, numbered, positions
from tests.delivery.test_local import slow

import penstock as ps
from penstock.delivery import on_ray
from penstock.errors import InvalidArgumentError, InvalidTypeError, MissingDependencyError
from penstock.testing import assert_same_elements

pytestmark = [pytest.mark.system, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def ray():
    ray = pytest.importorskip("ray")
    if "PENSTOCK_SERVICE" not in os.environ:
        pytest.skip("part of `make service`")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=200 * 2**20)
    yield ray
    ray.shutdown()


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingDependencyError, match=r"penstock\[ray\]"):
        iter(ps.Dataset.range(3).map(lambda x: x).distribute("ray"))


def test_jobs_are_not_shared_on_ray():
    with pytest.raises(InvalidArgumentError, match="one consumer's own"):
        ps.Dataset.range(3).distribute("ray", job_name="mine")


@pytest.mark.parametrize("workers", [1, 2])
def test_elements_and_order_are_those_without_workers(ray, workers):
    dataset = ps.Dataset.range(200).shuffle(50).map(numbered).filter(lambda x: x % 2 == 0).batch(8)
    remote = dataset.distribute("ray", workers=workers)
    for epoch in range(2):
        assert_same_elements(list(remote.iterator(epoch=epoch)), list(dataset.iterator(epoch=epoch)))


def test_failures_come_in_their_places(ray):
    dataset = ps.Dataset.range(20).map(failing).batch(2)
    assert positions(iter(dataset.distribute("ray", workers=1))) == positions(iter(dataset))


def test_a_state_goes_on_without_ray(ray):
    dataset = ps.Dataset.range(100).shuffle(30).map(numbered).batch(4)
    with dataset.distribute("ray", workers=2).iterator(epoch=0) as elements:
        given = [next(elements) for _ in range(7)]
        state = elements.state_dict()
    state_of = dataset.distribute(workers=1).iterator()
    state_of.load_state_dict(state)
    assert_same_elements(given + list(state_of), list(dataset.iterator(epoch=0)))


@pytest.mark.parametrize("sharding", ["static", "off"])
def test_shares_are_made_by_actors_of_their_own_also_where_cores_are_fewer(ray, sharding):
    dataset = ps.Dataset.range(30).shuffle(7).map(numbered).batch(4)
    found = list(dataset.distribute("ray", sharding=sharding, workers=3).iterator(epoch=0))
    assert_same_elements(found, list(dataset.distribute(sharding=sharding, workers=3).iterator(epoch=0)))


def test_actors_write_saved_data_sets(ray, tmp_path):
    dataset = ps.Dataset.range(100).shuffle(30).map(numbered).batch(4)
    wanted = list(dataset.iterator(epoch=0))
    ps.service.distributed_save(dataset, tmp_path, "ray")
    assert_same_elements(list(ps.Dataset.load(tmp_path)), wanted)


@pytest.mark.parametrize("seed", range(max(int(os.environ.get("PENSTOCK_SERVICE", "1")) // 10, 1)))
def test_actors_are_killed_at_random(ray, seed, monkeypatch):
    chance, actors = random.Random(seed), []
    made = on_ray.ActorContact.__init__

    def remembered(self, name, actor, ray):
        actors.append(actor)
        made(self, name, actor, ray)

    monkeypatch.setattr(on_ray.ActorContact, "__init__", remembered)
    dataset = ps.Dataset.range(150).shuffle(40).map(slow).map(numbered).batch(5)
    found = []
    for batch in dataset.distribute("ray", workers=2).iterator(epoch=0):
        found.append(batch)
        if chance.random() < 0.15:
            ray.kill(actors[-chance.randrange(1, 3)])
    assert_same_elements(found, list(dataset.iterator(epoch=0)))


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize(
    "build",
    [
        lambda ds: ds.map(numbered),
        lambda ds: ds.map(numbered).batch(4, drop_remainder=True),
        lambda ds: ds.map(numbered).shuffle(5).map(numbered),
        lambda ds: ds.filter(lambda x: x % 3 > 0),
    ],
)
def test_elements_go_to_ray_data_and_come_back(ray, build, blocks):
    dataset = build(ps.Dataset.range(41).shuffle(10))
    wanted = sorted(np.asarray(element).tolist() for element in dataset.iterator(epoch=0))
    there = dataset.to_ray(blocks=blocks)
    assert sorted(np.asarray(row["item"]).tolist() for row in there.take_all()) == wanted
    back = ps.Dataset.from_ray(there)
    assert sorted(np.asarray(row["item"]).tolist() for row in back) == wanted
    assert len(back) == len(wanted)


def test_wrong_calls_about_ray_data(ray):
    with pytest.raises(InvalidArgumentError, match="infinite"):
        ps.Dataset.range(3).repeat().to_ray()
    with pytest.raises(InvalidTypeError, match=r"ray\.data\.Dataset, got list"):
        ps.Dataset.from_ray([1])


@pytest.mark.parametrize("seed", range(max(int(os.environ.get("PENSTOCK_SERVICE", "1")) // 10, 1)))
def test_a_node_is_lost(seed):
    pytest.importorskip("ray")
    if "PENSTOCK_SERVICE" not in os.environ:
        pytest.skip("part of `make service`")
    import ray
    from ray.cluster_utils import Cluster

    ray.shutdown()
    little = {"num_cpus": 1, "object_store_memory": 100 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args={**little, "include_dashboard": False})
    try:
        node = cluster.add_node(**little)
        ray.init(address=cluster.address, log_to_driver=False)
        dataset = ps.Dataset.range(300).shuffle(40).map(slow).map(numbered).batch(5)
        found = []
        for number, batch in enumerate(dataset.distribute("ray", workers=2).iterator(epoch=0)):
            found.append(batch)
            if number == 10 + seed:
                cluster.remove_node(node, allow_graceful=False)
        assert_same_elements(found, list(dataset.iterator(epoch=0)))
    finally:
        ray.shutdown()
        cluster.shutdown()
