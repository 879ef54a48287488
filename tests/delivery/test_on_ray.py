"""service="ray": workers that are actors of a small cluster on this machine. `make service` installs Ray."""

import os
import pickle
import random
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.delivery.test_delivered import failing, numbered, positions
from tests.delivery.test_local import slow
from tests.delivery.test_served import noted

import penstock as ps
from penstock.block.shared_memory import shared_bytes
from penstock.delivery import contact, on_ray, ray_service, wire
from penstock.delivery.part import Packet, PlanPart
from penstock.delivery.results import unpacked
from penstock.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    InvalidTypeError,
    MissingDependencyError,
    NotFoundError,
)
from penstock.plan.distribution import Remote, cut
from penstock.runtime.processes.link import Pickled
from penstock.testing import assert_same_elements

pytestmark = [pytest.mark.system, pytest.mark.filterwarnings("ignore")]
ROUNDS = int(os.environ.get("PENSTOCK_SERVICE", "1"))  # of killed workers; a fifth for dispatchers, a tenth for nodes
FEW = {"num_cpus": 1, "object_store_memory": 100 * 2**20}


@pytest.fixture(scope="module", autouse=True)
def _short_folder():
    """Put Ray's sockets into a folder with a short name, because a socket's name has at most 107 bytes."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(dir="/tmp", prefix="ray-") as folder:
        patch.setenv("RAY_TMPDIR", folder)
        yield


@pytest.fixture(scope="module")
def ray(_short_folder):
    ray = pytest.importorskip("ray")
    if "PENSTOCK_SERVICE" not in os.environ:
        pytest.skip("part of `make service`")
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, object_store_memory=200 * 2**20)
    yield ray
    ray.shutdown()


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingDependencyError, match=r"penstock\[ray\]"):
        iter(ps.Dataset.range(3).map(lambda x: x).distribute("ray"))


def test_jobs_are_not_shared_on_ray():
    with pytest.raises(InvalidArgumentError, match="serve one consumer only"):
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


def filled(x):
    return np.full(1 << 17, x)


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_actors_are_killed_at_random(ray, seed, monkeypatch):
    chance, actors = random.Random(seed), []
    made = on_ray.ActorContact.__init__

    def remembered(self, name, actor, *how):
        actors.append(actor)
        made(self, name, actor, *how)

    monkeypatch.setattr(on_ray.ActorContact, "__init__", remembered)
    dataset = ps.Dataset.range(60).shuffle(40).map(slow).map(numbered)
    if seed % 2:  # moves data by lent memory
        dataset = dataset.map(filled)
    dataset = dataset.batch(5)
    found = []
    for batch in dataset.distribute("ray", workers=2).iterator(epoch=0):
        found.append(batch)
        if chance.random() < 0.2:
            ray.kill(actors[-chance.randrange(1, 3)])
    assert_same_elements(found, list(dataset.iterator(epoch=0)))


def test_an_actor_that_a_signal_has_stopped_is_ended(ray, monkeypatch):
    """Ray treats it as alive, so its answer would never come."""
    monkeypatch.setattr(on_ray, "_SILENT", 1.0)
    contacts = []
    made = on_ray.ActorContact.__init__

    def remembered(self, *how):
        contacts.append(self)
        made(self, *how)

    monkeypatch.setattr(on_ray.ActorContact, "__init__", remembered)
    dataset = ps.Dataset.range(60).shuffle(40).map(slow).map(numbered).batch(5)
    with dataset.distribute("ray", workers=1).iterator(epoch=0) as elements:
        found = [next(elements)]
        os.kill(contacts[0]._process[0], signal.SIGSTOP)
        assert_same_elements(found + list(elements), list(dataset.iterator(epoch=0)))
    assert len(contacts) == 2


@pytest.fixture(scope="module")
def service(ray):
    with ps.service.start(2, on="ray", name="tested") as found:
        yield found


def actor(ray, name):
    return ray.get_actor(name, "penstock")


def test_trainers_that_share_a_job_on_ray_each_get_all_of_it_made_once(ray, service, tmp_path):
    dataset = ps.Dataset.range(40).shuffle(9).map(noted(tmp_path)).batch(4)
    shared = dataset.distribute(service, "shared")
    wanted = [batch.tolist() for batch in ps.Dataset.range(40).shuffle(9).map(lambda x: x * 2).batch(4)]
    iterators = [iter(shared), shared.iterator(epoch=0)]
    found = [[next(each).tolist()] for each in iterators]
    assert service.status()["jobs"] == {"shared": 2}
    for _ in range(9):
        for its, iterator in zip(found, iterators, strict=True):
            its.append(next(iterator).tolist())
    assert found == [wanted, wanted]
    assert len(list(tmp_path.iterdir())) == 40
    for each in iterators:
        each.close()
    assert service.status()["jobs"] == {}
    with pytest.raises(FailedPreconditionError, match="already"):
        ps.service.start(1, on="ray", name="tested")


def test_a_service_on_ray_knows_data_sets_and_travels_by_its_address(service):
    dataset = ps.Dataset.range(30).shuffle(9).map(numbered).batch(4)
    name = ps.service.register_dataset(service, dataset)
    again = pickle.loads(pickle.dumps(service))
    assert name in again.status()["datasets"]
    assert_same_elements(list(ps.service.from_dataset_id(service.address, name)), list(dataset.iterator(epoch=0)))
    with pytest.raises(NotFoundError, match=name):
        ps.service.from_dataset_id(service, "another")
    parts = [list(dataset.distribute(service, num_consumers=2, consumer_index=index)) for index in range(2)]
    assert_same_elements([*parts[0], *parts[1]], list(dataset.iterator(epoch=0))[::2] + list(dataset)[1::2])


def test_another_version_is_refused_on_ray(service, monkeypatch):
    monkeypatch.setattr(contact, "version", lambda: "penstock 0.0.1, Python 3.1")
    with pytest.raises(FailedPreconditionError, match=r"runs penstock .*, and this process penstock 0\.0\.1"):
        next(iter(ps.Dataset.range(3).map(lambda x: x).distribute(service)))


def test_who_vanishes_is_forgotten(ray):
    name = "vanishing"
    kind = ray.remote(num_cpus=0)(ray_service.RayDispatcher)
    dispatcher = kind.options(name=name, namespace="penstock").remote(name, 1, 1.0)
    try:
        assert ray.get(dispatcher.join.remote("gone", "job", "digest")) is None
        assert ray.get(dispatcher.status.remote())["jobs"] == {"job": 1}
        while isinstance(ray.get(dispatcher.join.remote("there", "job", "another")), FailedPreconditionError):
            time.sleep(0.05)
        assert ray.get(dispatcher.status.remote())["jobs"] == {"job": 1}
        dataset = ps.Dataset.range(60).shuffle(9).map(numbered).batch(4)
        with dataset.distribute(f"ray-service://{name}", "paused", max_outstanding=1).iterator(epoch=0) as elements:
            found = [next(elements) for _ in range(2)]
            while ray.get(dispatcher.status.remote())["waiting"]:  # until it counts as dead
                time.sleep(0.1)
            assert_same_elements(found + list(elements), list(dataset.iterator(epoch=0)))
    finally:
        ray.get(dispatcher.stop.remote())
        ray.kill(dispatcher)


@pytest.mark.parametrize("seed", range(max(ROUNDS // 5, 1)))
def test_the_dispatcher_on_ray_is_killed_and_workers_with_it(ray, service, seed):
    chance = random.Random(seed)
    dataset = ps.Dataset.range(80).shuffle(40).map(slow).map(numbered).batch(5)
    found = []
    with dataset.distribute(service, f"killed {seed}").iterator(epoch=0) as elements:
        for batch in elements:
            found.append(batch)
            if chance.random() < 0.15:
                ray.kill(actor(ray, "tested"), no_restart=False)
            elif chance.random() < 0.1:
                listed = ray.util.list_named_actors(all_namespaces=True)  # the dispatcher may not be there to answer
                workers = sorted(each["name"] for each in listed if each["name"].startswith("tested/worker"))
                for name in workers[: chance.randrange(1, 3)]:
                    with suppress(ValueError):  # it has just ended
                        ray.kill(actor(ray, name))
    assert_same_elements(found, list(dataset.iterator(epoch=0)))


def test_a_worker_that_a_signal_has_stopped_is_replaced_also_without_consumers(ray):
    with ps.service.start(1, on="ray", name="stopped") as service:
        (before,) = service.status()["workers"]
        _, _, (pid, _) = ray.get(actor(ray, before).hello.remote())
        os.kill(pid, signal.SIGSTOP)
        until = time.monotonic() + 60
        while service.status()["workers"] in ([], [before]):
            assert time.monotonic() < until
            time.sleep(0.1)


def test_a_state_goes_on_behind_a_new_service(ray):
    dataset = ps.Dataset.range(100).shuffle(30).map(numbered).filter(lambda x: x % 3 > 0)
    wanted = list(dataset.iterator(epoch=0))
    with ps.service.start(1, on="ray", name="first") as first, dataset.distribute(first).iterator(epoch=0) as elements:
        given = [next(elements) for _ in range(17)]
        state = elements.state_dict()
    with ps.service.start(2, on="ray", name="first") as second, dataset.distribute(second).iterator() as elements:
        elements.load_state_dict(state)
        assert_same_elements(given + list(elements), wanted)


def test_a_service_ends_also_where_its_dispatcher_does_not_answer(ray, monkeypatch):
    service = ps.service.start(1, on="ray", name="silent")
    with monkeypatch.context() as changed:
        changed.setattr(ray_service, "_ANSWER", 0.0)
        service.stop()
    until = time.monotonic() + 30
    while any(each["name"].startswith("silent") for each in ray.util.list_named_actors(all_namespaces=True)):
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize("wrong", [{"compression": "GZIP"}, {"compression": 3}, {"target_workers": "NEAR"}])
def test_wrong_ways_are_refused(wrong):
    with pytest.raises(InvalidArgumentError, match=next(iter(wrong))):
        ps.Dataset.range(3).distribute("ray", **wrong)
    with pytest.raises(InvalidArgumentError, match="never compressed"):
        ps.Dataset.range(3).distribute(compression="LZ4")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="where open files are shown, which Linux does")
@pytest.mark.parametrize("wrong", [None, "mark", "path"])
def test_large_results_of_actors_beside_the_consumer_go_through_memory_that_it_lends(wrong, monkeypatch):
    """If an actor cannot open the memory, as in another container, results go through Ray's store; here without Ray."""
    if wrong is not None:
        there = on_ray.path_of
        monkeypatch.setattr(
            on_ray, "path_of", lambda region: (there(region)[0], b"other") if wrong == "mark" else ("/dev/null", b"")
        )
    monkeypatch.setattr(on_ray, "node", lambda: "node")
    monkeypatch.setattr(on_ray, "here", lambda ray: "node")
    part = cut(ps.Dataset.range(6).map(filled)._plan)
    whole = Remote(whole=part.whole, base=part.base, middle=part.middle, service=None, where=None)
    packet = Packet.of(whole, PlanPart(part.base, part.middle, ps.Options(), None, provenance=False))
    worker, before = on_ray.RayWorker(), shared_bytes()[0]
    methods = {name: SimpleNamespace(remote=getattr(worker, name)) for name in dir(worker) if not name.startswith("_")}
    ray = SimpleNamespace(get=lambda made: made, kill=lambda actor: None, exceptions=SimpleNamespace(RayError=OSError))
    found, lent = on_ray.ActorContact("one", SimpleNamespace(**methods), ray, wire.Wire()), []
    found.hear()
    found.begin("job", packet, 0)
    for start in range(6):
        found.ask("job", start, start + 1, 1 << 20 if start else 0)
        message = found.hear()
        (made,) = unpacked(message.content, message.buffers())
        (array,) = made.block.elements()
        assert array.tolist() == [start] * (1 << 17)
        lent.append(shared_bytes()[0] > before)
        del message, made, array
    assert lent == [False, *[wrong is None] * 5]
    assert len(worker._regions.get("", on_ray.Regions())._arrays) == (wrong is None)  # one, used repeatedly
    found.close()
    assert shared_bytes()[0] == before


@given(st.lists(st.binary(max_size=1 << 18), max_size=3), st.sampled_from(wire.CODECS))
def test_what_is_compressed_is_the_same_behind_it(values, codec):
    found = Pickled.of(b"head", [pickle.PickleBuffer(value) for value in values])
    content, buffers, sizes, _ = wire.compressed(found, codec)
    assert content == b"head"
    assert [bytes(part) for part in wire.plain(buffers, codec, sizes)] == values


@pytest.mark.parametrize(
    ("bandwidth", "ratios", "best"),
    [
        (1e10, {"lz4": 0.5, "zstd": 0.3}, None),
        (1e8, {"lz4": 0.5, "zstd": 0.45}, "lz4"),
        (1e6, {"lz4": 0.5, "zstd": 0.3}, "zstd"),
    ],
)
def test_the_way_that_takes_least_is_found(bandwidth, ratios, best):
    speed = {None: float("inf"), "lz4": 5e8, "zstd": 1e8}
    way, used = wire.Wire(), []
    for _ in range(20):
        codec = way.codec()
        used.append(codec)
        way.saw(codec, 10**6, 1e6 * (ratios.get(codec, 1.0) / bandwidth + 1 / speed[codec]))
    assert set(used[:6]) == set(wire.CODECS)
    assert set(used[6:]) == {best}


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


@pytest.fixture(scope="module")
def cluster(_short_folder):
    """Start two nodes, with this process on one of them."""
    pytest.importorskip("ray")
    if "PENSTOCK_SERVICE" not in os.environ:
        pytest.skip("part of `make service`")
    import ray
    from ray.cluster_utils import Cluster

    ray.shutdown()
    found = Cluster(initialize_head=True, head_node_args={**FEW, "num_cpus": 2, "include_dashboard": False})
    try:
        found.add_node(**FEW)
        ray.init(address=found.address, log_to_driver=False)
        yield found
    finally:
        ray.shutdown()
        found.shutdown()


@pytest.mark.parametrize("compression", [None, "LZ4", "ZSTD", "AUTO"])
@pytest.mark.parametrize("target", ["ANY", "LOCAL"])
def test_what_comes_from_other_nodes_is_the_same_by_any_way(cluster, compression, target, monkeypatch):
    apart = []
    made = on_ray.ActorContact.hear

    def heard(self):
        found = made(self)
        apart.append(self.apart)
        return found

    monkeypatch.setattr(on_ray.ActorContact, "hear", heard)
    images = ps.Dataset.range(48).map(lambda x: np.full((64, 64, 3), x, np.uint8)).batch(8)
    workers = 1 if target == "LOCAL" else 3
    remote = images.distribute("ray", workers=workers, compression=compression, target_workers=target)
    assert_same_elements(list(remote), list(images))
    assert target == "ANY" or not any(apart)


@pytest.mark.parametrize("seed", range(max(ROUNDS // 10, 1)))
def test_a_node_is_lost(seed):
    pytest.importorskip("ray")
    if "PENSTOCK_SERVICE" not in os.environ:
        pytest.skip("part of `make service`")
    import ray
    from ray.cluster_utils import Cluster

    ray.shutdown()
    cluster = Cluster(initialize_head=True, head_node_args={**FEW, "include_dashboard": False})
    try:
        node = cluster.add_node(**FEW)
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
