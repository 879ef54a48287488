"""service="local", with real processes: they start, die, restart and end."""

import gc
import os
import random
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from tests.delivery.test_delivered import failing, numbered, positions
from tests.golden.golden import assert_golden

import penstock as ps
from penstock.block.shared_memory import shared_bytes
from penstock.delivery import crew, served
from penstock.errors import FailedPreconditionError, InvalidArgumentError, InvalidTypeError
from penstock.testing import assert_same_elements

pytestmark = pytest.mark.system
at_length = pytest.mark.skipif("PENSTOCK_SERVICE" not in os.environ, reason="part of `make service`")


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def gone(pids):
    """Wait until these processes are gone, for at most the limit of the test."""
    while any(map(alive, pids)):
        time.sleep(0.01)
    return True


def pids():
    """Return the processes of all crews."""
    return [member.process.popen.pid for member in list(crew.births.living) if isinstance(member, crew.CrewMember)]


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=at_length)])
def test_elements_and_order_are_those_without_workers(workers):
    dataset = ps.Dataset.range(300).shuffle(50).map(numbered).filter(lambda x: x % 2 == 0).batch(8)
    remote = dataset.distribute(workers=workers)
    for epoch in range(2):
        assert_same_elements(list(remote.iterator(epoch=epoch)), list(dataset.iterator(epoch=epoch)))


def test_failures_come_with_their_stage_and_line():
    dataset = ps.Dataset.range(10).map(failing).batch(2)
    assert positions(iter(dataset.distribute(workers=1))) == positions(iter(dataset))
    with pytest.raises(ValueError, match="no 3") as caught:
        list(ps.Dataset.range(10).map(failing).distribute(workers=1))
    notes = "\n".join(caught.value.__notes__)
    assert "in stage map(failing), defined at" in notes
    assert "test_local.py:" in notes
    assert "raise ValueError(message)" in notes


def slow(x):
    time.sleep(0.002)
    return x


def test_killed_workers_change_nothing():
    dataset = ps.Dataset.range(250).map(slow).map(numbered).batch(5)
    killed = 0
    with iter(dataset.distribute(workers=2)) as elements:
        found = [next(elements)]
        for number, element in enumerate(elements):
            found.append(element)
            if number % 20 == 5:
                victims = [pid for pid in pids() if alive(pid)]
                os.kill(victims[number % len(victims)], signal.SIGKILL)
                killed += 1
    assert killed > 1
    assert_same_elements(found, list(dataset.iterator(epoch=0)))


@at_length
def test_a_worker_that_was_stopped_is_replaced(monkeypatch):
    monkeypatch.setattr(crew, "_STOPPED", 0.0)
    dataset = ps.Dataset.range(60).map(slow).batch(5)
    with iter(dataset.distribute(workers=1)) as elements:
        found = next(elements).tolist()
        os.kill(next(pid for pid in pids() if alive(pid)), signal.SIGSTOP)
        for batch in elements:
            found += batch.tolist()
    assert found == list(range(60))


@at_length
def test_more_workers_come_while_the_loop_waits(monkeypatch):
    monkeypatch.setattr(served, "granted_cpus", lambda: 2)
    before = set(pids())
    most = 0
    with iter(ps.Dataset.range(10**6).map(slow).distribute()) as elements:
        for _ in elements:
            most = max(most, len(set(pids()) - before))
            if most == 2:
                break
    assert most == 2


@at_length
def test_a_state_goes_on_with_another_number_of_workers():
    dataset = ps.Dataset.range(100).shuffle(30).map(numbered).filter(lambda x: x % 3 > 0)
    wanted = list(dataset.iterator(epoch=0))
    with dataset.distribute(workers=2).iterator(epoch=0) as elements:
        given = [next(elements) for _ in range(31)]
        state = elements.state_dict()
    with dataset.distribute(workers=1).iterator() as elements:
        elements.load_state_dict(state)
        assert_same_elements(given + list(elements), wanted)


def setting(x):
    return os.environ["PENSTOCK_TESTED"].encode()


def test_workers_know_the_environment_as_it_is_when_a_pass_begins(monkeypatch):
    """Resting workers have the environment of an earlier iteration: other keys, another server address."""
    dataset = ps.Dataset.range(2).map(setting).distribute(workers=1)
    for value in ("one", "two"):
        monkeypatch.setenv("PENSTOCK_TESTED", value)
        assert list(dataset) == [value.encode()] * 2


def test_processes_end_soon_after_the_iterator(monkeypatch):
    """They do not wait until an earlier resting one is due."""
    monkeypatch.setenv("PENSTOCK_TESTED", "rests")
    monkeypatch.setattr(crew, "_LINGER", 600.0)
    list(ps.Dataset.range(2).map(setting).distribute(workers=1))
    resting = set(pids())
    with monkeypatch.context() as other:
        other.setenv("PENSTOCK_TESTED", "ends")  # a process with another environment starts its own workers
        other.setattr(crew, "_LINGER", 0.2)
        elements = iter(ps.Dataset.range(10**6).map(lambda x: x).distribute(workers=1))
        next(elements)
        mine = set(pids()) - resting
        assert mine
        del elements
        assert gone(mine)
    crew.crew(1).end()  # the resting worker


def test_processes_end_with_a_consumer_that_is_killed():
    near, far = os.pipe()
    child = os.fork()
    if not child:
        os.close(near)
        try:
            elements = iter(ps.Dataset.range(10**6).map(lambda x: x).distribute(workers=2))
            next(elements)
            mine = [pid for pid in pids() if alive(pid)]
            os.write(far, ",".join(map(str, mine)).encode())
            time.sleep(600)
        finally:
            os._exit(1)
    os.close(far)
    theirs = [int(pid) for pid in os.read(near, 1000).decode().split(",")]
    os.close(near)
    assert len(theirs) == 2
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert gone(theirs)


def holding(file):
    return lambda x: (x, file.name)


@pytest.mark.parametrize("what", ["lock", "file", "file to read"])
def test_what_belongs_to_one_process_is_named_before_anything_starts(what, tmp_path):
    before = set(pids())
    (tmp_path / "open.txt").touch()
    with (tmp_path / "open.txt").open("w" if what == "file" else "r") as file:
        lock = threading.Lock()
        function = (lambda x: (x, lock is None)) if what == "lock" else holding(file)
        dataset = ps.Dataset.range(3).map(function).distribute()
        with pytest.raises(InvalidArgumentError) as caught:
            iter(dataset)
    assert_golden(f"distribute-{what.split()[0]}", str(caught.value))
    assert set(pids()) <= before  # resting workers of other tests end at any time


def leaving(x):
    if x == 3:
        raise SystemExit(4)
    return x


@at_length
def test_a_function_that_ends_the_program_does():
    with pytest.raises(SystemExit):
        list(ps.Dataset.range(5).map(leaving).distribute(workers=1))


def crashing(x):
    if x == 40:
        os.kill(os.getpid(), signal.SIGSEGV)
    return x


@at_length
def test_elements_that_crash_their_workers_are_named():
    dataset = ps.Dataset.range(50).map(crashing).batch(8).distribute(workers=1)
    with pytest.raises(FailedPreconditionError, match="3 workers ended while they made elements"):
        list(dataset)


ROUNDS = int(os.environ.get("PENSTOCK_SERVICE", "1"))


@at_length
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_workers_are_killed_at_random(seed):
    chance = random.Random(seed)
    dataset = ps.Dataset.range(150).shuffle(40).map(slow).map(numbered).filter(lambda x: x % 7 > 0).batch(5)
    wanted = list(dataset.iterator(epoch=0))
    remote = dataset.distribute(workers=chance.randrange(1, 4))
    found = []
    elements = remote.iterator(epoch=0)
    while len(found) < len(wanted):
        found.append(next(elements))
        if chance.random() < 0.2:
            victims = [pid for pid in pids() if alive(pid)]
            if victims:
                os.kill(chance.choice(victims), signal.SIGKILL)
        if chance.random() < 0.05:  # the trainer restarts too, with other workers
            state = elements.state_dict()
            elements.close()
            elements = dataset.distribute(workers=chance.randrange(1, 4)).iterator()
            elements.load_state_dict(state)
    assert next(elements, None) is None
    assert_same_elements(found, wanted)


@at_length
def test_two_passes_at_once_have_workers_of_their_own():
    dataset = ps.Dataset.range(20).map(numbered).distribute(workers=1)
    pairs = [(int(a), int(b)) for a, b in ps.Dataset.zip((dataset, dataset))]
    assert [a for a, _ in pairs] == [b for _, b in pairs] == [int(x) for x in dataset.iterator(epoch=0)]


def test_a_data_set_with_workers_can_be_sent_itself():
    import pickle

    dataset = ps.Dataset.range(5).map(lambda x: x + 1).distribute(workers=1)
    assert [int(x) for x in pickle.loads(pickle.dumps(dataset))] == [1, 2, 3, 4, 5]


def large(x):
    return np.full((600, 600), x, np.float32)


def test_memory_of_large_batches_is_used_again_and_freed_whoever_dies():
    used, _ = shared_bytes()
    with iter(ps.Dataset.range(40).map(large).distribute(workers=1, max_outstanding=2)) as elements:
        kept = [next(elements) for _ in range(8)]
        for _ in range(3):  # each is released before the next request
            next(elements)
        assert shared_bytes()[0] > used
        os.kill(next(pid for pid in pids() if alive(pid)), signal.SIGKILL)
        kept += elements
    assert [int(each[3, 4]) for each in kept] == [*range(8), *range(11, 40)]
    assert all((each == each[0, 0]).all() for each in kept)
    kept[0][:] = 7.0
    assert kept[1][0, 0] == 1.0
    del kept
    gc.collect()
    assert shared_bytes()[0] <= used + 2 * 1.25 * 600 * 600 * 4  # results that were requested but not computed


def test_large_batches_come_whole_and_can_be_written_to():
    dataset = ps.Dataset.range(6).map(lambda x: np.full((500, 500), x, np.float32)).batch(2).distribute(workers=1)
    for number, batch in enumerate(dataset):
        assert batch[:, 0, 0].tolist() == [2 * number, 2 * number + 1]
        batch += 1


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("workers", {"workers": 0}, InvalidArgumentError),
        ("workers-text", {"workers": "many"}, InvalidTypeError),
        ("service", {"service": "grpc://host"}, InvalidArgumentError),
        ("service-type", {"service": 3}, InvalidTypeError),
        ("outstanding", {"max_outstanding": 0}, InvalidArgumentError),
        ("sharding", {"sharding": "file"}, InvalidArgumentError),
        ("sharding-auto", {"sharding": "static"}, InvalidArgumentError),
        ("consumer", {"num_consumers": 2}, InvalidArgumentError),
        ("consumer-index", {"num_consumers": 2, "consumer_index": 2}, InvalidArgumentError),
    ],
)
def test_wrong_arguments(name, arguments, error):
    with pytest.raises(error) as caught:
        ps.Dataset.range(3).distribute(**arguments)
    assert_golden(f"distribute-{name}", str(caught.value))
