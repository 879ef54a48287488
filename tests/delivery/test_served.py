"""A service with several consumers: a dispatcher, its workers, and the effect of their deaths on iterations."""

import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.delivery.test_delivered import failing, numbered, positions
from tests.delivery.test_local import at_length, gone, slow
from tests.golden.golden import assert_golden

import penstock as ps
from penstock.cli import main
from penstock.delivery import contact, on_ray, worker
from penstock.delivery.jobs import Jobs
from penstock.delivery.part import Packet, PlanPart
from penstock.delivery.results import unpacked
from penstock.delivery.sockets import connected, token_of
from penstock.errors import FailedPreconditionError, InvalidArgumentError
from penstock.plan.distribution import Remote, cut
from penstock.runtime.processes.link import Link
from penstock.testing import assert_same_elements

pytestmark = pytest.mark.system
ROUNDS = max(int(os.environ.get("PENSTOCK_SERVICE", "5")) // 5, 1)


@pytest.fixture(scope="module")
def service():
    with ps.service.start(workers=2) as found:
        yield found


def noted(folder):
    def note(x):
        (Path(folder) / f"{int(x)}-{os.getpid()}-{time.monotonic_ns()}").touch()
        return x * 2

    return note


def test_trainers_that_share_a_job_each_get_all_of_it_made_once(service, tmp_path):
    dataset = ps.Dataset.range(40).shuffle(9).map(noted(tmp_path)).batch(4)
    shared = dataset.distribute(service, "shared")
    wanted = [batch.tolist() for batch in ps.Dataset.range(40).shuffle(9).map(lambda x: x * 2).batch(4)]
    iterators = [iter(shared), shared.iterator(epoch=0)]
    found = [[next(iterators[0]).tolist()], []]
    for who in (1, 0, 1):  # one is ahead, then the other
        for _ in range(4):
            batch = next(iterators[who], None)
            found[who] += [] if batch is None else [batch.tolist()]
    assert service.status()["jobs"] == {"shared": 2}
    for who, iterator in enumerate(iterators):
        found[who] += [batch.tolist() for batch in iterator]
    assert found == [wanted, wanted]
    assert len(list(tmp_path.iterdir())) == 40


def test_shares_of_a_job_are_made_once(service, tmp_path):
    dataset = ps.Dataset.range(10**6).map(noted(tmp_path))  # neither trainer ends before the other begins
    shared = dataset.distribute(service, "shares", sharding="static", workers=3, max_outstanding=2)
    with iter(shared) as first, shared.iterator(epoch=0) as second:
        found = [[int(next(each)) for each in (first, second)] for _ in range(12)]
        assert service.status()["jobs"] == {f"shares, part {part}": 2 for part in range(3)}
    assert found == [[2 * x, 2 * x] for x in range(12)]
    made = [path.name.partition("-")[0] for path in tmp_path.iterdir()]
    assert len(made) == len(set(made))


def test_a_trainer_that_is_far_behind_has_elements_made_again(tmp_path):
    """A worker may store four results. A second trainer finds two of them."""
    dataset = ps.Dataset.range(6).map(noted(tmp_path)).map(lambda x: np.full(25_000, x)).batch(1)
    part = cut(dataset._plan)
    packet = Packet.of(
        Remote(whole=part.whole, base=part.base, middle=part.middle, service=None, where=None),
        PlanPart(part.base, part.middle, dataset._options, None, provenance=False),
    )
    server, contacts = worker.Server(kept_bytes=900_000), []
    for name in ("first", "second"):
        ours, theirs = socket.socketpair()
        server.attach(Link(theirs))
        contacts.append(contact.Contact(name, Link(ours)))
    running = threading.Thread(target=server.run)
    running.start()
    for each in contacts:
        assert each.hear() is None
        each.begin("job", packet, 0, kept=True)
        for start in range(6) if each is contacts[0] else (5, 4, 0, 1):
            each.ask("job", start, start + 1, 0)
            message = each.hear()
            (found,) = unpacked(message.content, message.buffers())
            assert [int(x[0, 0]) for x in found.block.elements()] == [2 * start]
            assert server._makers.kept_bytes <= 900_000
    assert sorted(path.name.partition("-")[0] for path in tmp_path.iterdir()) == list("00112345")
    for each in contacts:
        each.close()
    server.stop()
    running.join()


def refused(start, parts):
    raise OSError(f"no place for {start}")


def test_what_a_failed_pass_has_open_is_closed(tmp_path):
    """`finish` is no user function: its failure is that of the range, and ends it in the worker."""

    def source():
        try:
            yield from range(9)
        finally:
            (tmp_path / f"closed-{time.monotonic_ns()}").touch()
            raise ValueError("the worker goes on")

    dataset = ps.Dataset.from_generator(source, ps.TensorSpec((), "int64")).map(lambda x: x)
    part = cut(dataset._plan)
    whole = Remote(whole=part.whole, base=part.base, middle=part.middle, service=None, where=None)
    packet = Packet.of(
        whole, PlanPart(part.base, part.middle, dataset._options, None, provenance=False, finish=refused)
    )
    ours, theirs = socket.socketpair()
    server, consumer = worker.Server(), contact.Contact("one", Link(ours))
    server.attach(Link(theirs))
    running = threading.Thread(target=server.run)
    running.start()
    consumer.hear()
    consumer.begin("job", packet, 0)
    actor = on_ray.RayWorker()
    actor.begin("job", packet.digest, 0, False, "", packet.packed.content, packet.packed.buffers)
    for start in range(2):
        consumer.ask("job", start, start + 1, 0)
        for head in (consumer.hear().head, actor.make("job", start, start + 1, None)[0]):
            assert head[0] == "mistaken"
            assert f"no place for {start}" in head[3]
    consumer.close()
    server.stop()
    running.join()
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize("sharding", ["static", "off"])
@at_length
def test_shares_survive_killed_workers(service, sharding):
    dataset = ps.Dataset.range(100).map(slow).distribute(service, sharding=sharding, workers=2)
    found = []
    with dataset.iterator(epoch=0) as elements:
        for number, x in enumerate(elements):
            found.append(int(x))
            if number % 40 == 20:
                os.kill(next(iter(service.status()["workers"].values())), signal.SIGKILL)
    wanted = list(range(100))
    assert found == (wanted if sharding == "static" else sorted(wanted * 2))


def test_a_job_is_of_one_data_set(service):
    first = iter(ps.Dataset.range(5).map(lambda x: x + 1).distribute(service, "one"))
    next(first)
    with pytest.raises(FailedPreconditionError) as caught:
        next(iter(ps.Dataset.range(6).map(lambda x: x + 1).distribute(service, "one")))
    assert_golden("service-another-job", str(caught.value))
    first.close()


def test_failures_and_states_are_those_without_a_service(service):
    dataset = ps.Dataset.range(60).shuffle(20).map(numbered).batch(4)
    wanted = list(dataset.iterator(epoch=0))
    with dataset.distribute(service).iterator(epoch=0) as elements:
        given_now = [next(elements) for _ in range(5)]
        state = elements.state_dict()
    with dataset.distribute(service.address, "named").iterator() as elements:
        elements.load_state_dict(state)
        assert_same_elements(given_now + list(elements), wanted)
    remote = ps.Dataset.range(9).map(failing)
    assert positions(iter(remote.distribute(service))) == positions(iter(remote))


@at_length
def test_a_killed_worker_is_replaced_and_nothing_is_lost(service):
    dataset = ps.Dataset.range(200).map(slow).batch(5)
    found = []
    for number, batch in enumerate(dataset.distribute(service)):
        found += batch.tolist()
        if number == 3:
            os.kill(next(iter(service.status()["workers"].values())), signal.SIGKILL)
    assert found == list(range(200))


@at_length
def test_a_service_has_more_workers_while_consumers_wait_and_fewer_without():
    with ps.service.start() as service:
        most = service.status()["most_workers"]
        few = max(most // 2, 1)
        assert 1 <= len(service.status()["workers"]) <= few
        with iter(ps.Dataset.range(10**6).map(slow).distribute(service)) as elements:
            for _ in elements:
                status = service.status()
                if len(status["workers"]) == most:
                    break
        assert status["waiting"][0] > 0.1
        while len(service.status()["workers"]) > few:
            time.sleep(0.1)


def killed_and_started_again(folder, kills):
    """Iterate through the service of a folder whose dispatcher dies `kills` times."""
    dataset = ps.Dataset.range(40 * (kills + 1)).shuffle(30).map(slow).map(numbered).batch(5)
    service = ps.service.start(workers=2, folder=folder)
    found = []
    try:
        for number, batch in enumerate(dataset.distribute(service).iterator(epoch=0)):
            found.append(batch)
            if number % 8 == 4 and kills:
                kills -= 1
                status = service.status()
                os.kill(status["pid"], signal.SIGKILL)
                assert gone([status["pid"], *status["workers"].values()])
                service = ps.service.start(workers=1, folder=folder)
    finally:
        service.stop()
    assert_same_elements(found, list(dataset.iterator(epoch=0)))


@at_length
def test_a_dispatcher_that_dies_takes_its_workers_and_the_next_one_goes_on():
    import tempfile

    with tempfile.TemporaryDirectory(dir="/tmp", prefix="penstock-") as folder:
        killed_and_started_again(folder, 1)


@at_length
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_dispatchers_are_killed_again_and_again(seed):
    import tempfile

    with tempfile.TemporaryDirectory(dir="/tmp", prefix="penstock-") as folder:
        killed_and_started_again(folder, 2 + seed % 3)


def test_who_does_not_know_the_token_is_not_heard(service):
    door = str(Path(service.folder, "dispatcher"))
    assert Path(service.folder).stat().st_mode & 0o077 == 0
    with pytest.raises(OSError, match="digest"):
        connected(door, b"another")
    link = connected(door, token_of(service.folder))
    assert link.receive().head == ("ready", worker.version())
    link.close()


def test_a_folder_that_others_may_write_to_is_not_believed(tmp_path):
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "token").write_bytes(b"known to everybody")
    for mode in (0o777, 0o750, 0o701):
        folder.chmod(mode)
        with pytest.raises(FailedPreconditionError, match="Others may enter the folder"):
            ps.service.connect(f"unix://{folder}")
        with pytest.raises(FailedPreconditionError, match="Others may enter the folder"):
            next(iter(ps.Dataset.range(3).map(lambda x: x).distribute(f"unix://{folder}")))


def test_another_version_is_refused(service, monkeypatch):
    monkeypatch.setattr(contact, "version", lambda: "penstock 0.0.1, Python 3.1")
    with pytest.raises(FailedPreconditionError, match=r"runs penstock .*, and this process penstock 0\.0\.1"):
        next(iter(ps.Dataset.range(3).map(lambda x: x).distribute(service)))


def test_a_handle_travels_as_its_address(service):
    again = pickle.loads(pickle.dumps(service))
    assert again.address == service.address
    assert again.status()["workers"] == service.status()["workers"]
    dataset = pickle.loads(pickle.dumps(ps.Dataset.range(3).map(lambda x: x + 1).distribute(service)))
    assert [int(x) for x in dataset] == [1, 2, 3]


def test_a_folder_may_begin_with_a_tilde(monkeypatch):
    with tempfile.TemporaryDirectory(dir="/tmp") as home:
        monkeypatch.setenv("HOME", home)
        with ps.service.start(workers=1, folder="~/service") as service:
            assert service.folder == f"{home}/service"
            assert ps.service.connect("unix://~/service").status()["pid"] == service.status()["pid"]


def test_wrong_calls_say_what_to_do(service, tmp_path):
    open_to_all = tmp_path / "open"
    open_to_all.mkdir(mode=0o755)
    texts = []
    for wrong in (
        lambda: ps.service.start(workers=0),
        lambda: ps.service.connect("tcp://host:1"),
        lambda: ps.service.connect("unix:///nowhere"),
        lambda: ps.service.start(folder="/tmp/" + "long" * 30),
        lambda: ps.service.start(folder=open_to_all),
        lambda: ps.service.start(folder=service.folder),
        lambda: ps.Dataset.range(3).distribute(job_name="mine"),
        lambda: ps.Dataset.range(3).distribute(service, job_name=3),
        lambda: ps.Dataset.range(3).distribute("unix:///nowhere", workers=3),
    ):
        with pytest.raises((InvalidArgumentError, FailedPreconditionError, TypeError)) as caught:
            wrong()
        texts.append(str(caught.value).replace(service.folder, "FOLDER"))
    assert_golden("service-wrong-calls", "\n\n".join(texts))


def test_the_command_line_starts_tells_and_stops(capsys):
    command = [sys.executable, "-m", "penstock.cli", "service", "start", "--workers", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        try:
            address = running.stdout.readline().strip()
            assert main(["service", "status", address]) == 0
            assert json.loads(capsys.readouterr().out)["pid"] == running.pid
            assert main(["service", "stop", address]) == 0
            assert running.wait() == 0
        finally:
            running.kill()
    assert main(["service", "stop", address]) == 1
    assert "No service answers" in capsys.readouterr().err
    assert not Path(address.removeprefix("unix://")).exists()


def test_the_command_line_takes_a_folder_with_a_tilde(capsys, monkeypatch):
    with tempfile.TemporaryDirectory(dir="/tmp") as home:
        monkeypatch.setenv("HOME", home)
        command = [sys.executable, "-m", "penstock.cli", "service", "start", "--workers", "1", "--folder", "~/service"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
            try:
                assert running.stdout.readline().strip() == f"unix://{home}/service"
                assert main(["service", "stop", "unix://~/service"]) == 0
                assert running.wait() == 0
            finally:
                running.kill()


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), max_size=40), st.integers(0, 3))
def test_whoever_asks_is_told_the_same_cuts(questions, lost):
    jobs, workers = Jobs(), ["a", "b", "c"]
    told = {}
    for number, (start, length) in enumerate(questions):
        if number == len(questions) // 2:
            workers = workers[lost:]
        stop, who = jobs.cut("job", 0, start, length, workers)
        assert stop > start
        assert who in workers or (who is None and not workers)
        before = told.get(start)
        if before is not None and workers:
            assert stop <= before[0]  # a range that was inserted splits it
        told[start] = stop, who
        at = start
        while at < 40 and workers:  # the cuts from any place lead to the end of it
            at = jobs.cut("job", 0, at, 5, workers)[0]
