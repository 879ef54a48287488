"""Worker processes alone: start and reuse, transfer of arguments and results, time limits."""

import contextlib
import gc
import json
import os
import random
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import types
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock.block.block import Block
from penstock.block.column import DenseColumn, ListColumn
from penstock.block.numbers import Numbers
from penstock.errors import DeadlineExceededError, FailedPreconditionError, InvalidArgumentError
from penstock.physical.transform import MapTransform
from penstock.runtime.processes.failures import Unworkable
from penstock.runtime.processes.handle import Worker
from penstock.runtime.processes.pool import ProcessPool, ProcessTask, process_pool
from penstock.runtime.processes.worker import START

pytestmark = pytest.mark.system

SECONDS = 60


@pytest.fixture
def pool():
    made = ProcessPool(2)
    yield made
    made.close()
    assert made.size() == 0


def task_of(pool, function, element_timeout=None):
    return ProcessTask(pool, [MapTransform(function, "map(function)", None, vectorise=False)], element_timeout)


def numbers(*values):
    return Block.single(DenseColumn(np.array(values)))


def places(stretch):
    found = []
    for piece in stretch.pieces():
        found.extend([piece] if isinstance(piece, Exception) else piece.elements())
    return found


def test_a_pool_is_warmed_up_without_waiting(pool):
    assert not pool.ready()
    pool.warm_up()
    with pool._lock:
        assert pool._free.wait_for(pool.ready, SECONDS)
    assert pool.size() == 2
    pool.warm_up()
    assert places(task_of(pool, lambda x: x + 1)([], numbers(1, 2), Numbers(0))) == [2, 3]
    assert pool.size() == 2


def test_workers_stay_from_one_task_to_the_next(pool):
    pids = {
        int(pid)
        for _ in range(3)
        for (pid,) in places(task_of(pool, lambda x: [os.getpid()])([], numbers(1), Numbers(0)))
    }
    assert len(pids) == 1


@pytest.mark.parametrize(("seconds", "left"), [(60.0, 4), (0.0, 3)])
def test_a_worker_beyond_the_cores_ends_when_it_had_nothing_to_do_for_long(pool, monkeypatch, seconds, left):
    """A new worker was once mistaken for the worker with the longest idle time."""
    monkeypatch.setattr("penstock.runtime.processes.pool._UNUSED", seconds)
    pool.warm_up(4)
    with pool._lock:
        assert pool._free.wait_for(lambda: pool.size() == 4, SECONDS)
    assert places(task_of(pool, lambda x: x + 1)([], numbers(1), Numbers(0))) == [2]
    assert pool.size() == left


def test_more_parallel_calls_than_cores_run_at_once(tmp_path):
    """Each call waits until all eight have started."""
    address = str(tmp_path / "door")

    def meets(x):
        with socket.socket(socket.AF_UNIX) as end:
            end.settimeout(SECONDS)
            end.connect(address)
            return x if end.recv(1) else -x

    def opens(door):
        with contextlib.ExitStack() as stack:
            met = [stack.enter_context(door.accept()[0]) for _ in range(8)]
            for end in met:
                end.send(b"x")

    with socket.socket(socket.AF_UNIX) as door:
        door.settimeout(SECONDS)
        door.bind(address)
        door.listen()
        thread = threading.Thread(target=opens, args=(door,))
        thread.start()
        found = list(ps.Dataset.range(1, 9).map(meets, num_parallel_calls=8).iterator(executor="process"))
        thread.join(SECONDS)
    assert found == list(range(1, 9))


def test_a_task_counts_what_was_spent(pool):
    def spends(x):
        return sum(range(int(x)))

    task = task_of(pool, spends)
    task([], numbers(1, 2, 10**6), Numbers(0))
    task([], numbers(10**6), Numbers(0))
    assert (task.blocks, task.elements) == (2, 4)
    assert task.cpu_seconds > 0
    assert 0 < task.run_seconds < task.trip_seconds


def test_results_stay_as_they_are_while_others_are_made(pool):
    """Results are views of shared memory, which must not be written to until all references are gone."""

    def large(x):
        return np.full(50_000, x)

    task = task_of(pool, large)
    kept = [places(task([], numbers(k), Numbers(0)))[0][100:200] for k in range(30)]
    assert [set(part.tolist()) for part in kept] == [{k} for k in range(30)]
    del kept
    gc.collect()
    assert pool.memory.bytes()[0] == 0


def test_what_a_function_keeps_of_its_input_stays_as_it_is(pool):
    kept = []

    def keeps(x):
        kept.append(x[:10])
        return np.array([int(values[0]) for values in kept])

    task = task_of(pool, keeps)
    found = [
        places(task([], Block.single(DenseColumn(np.full((1, 50_000), k))), Numbers(k)))[0].tolist() for k in range(20)
    ]
    assert found == [list(range(k + 1)) for k in range(20)]


def test_memory_is_given_back_although_results_fail(pool):
    def fails(x):
        raise ValueError(x.sum())

    task = task_of(pool, fails)
    for _ in range(30):
        assert isinstance(task([], Block.single(DenseColumn(np.zeros((1, 50_000)))), Numbers(0)).error, ValueError)
    used, idle = pool.memory.bytes()
    assert used == 0
    assert idle <= 2 << 20


def test_without_shared_memory_everything_goes_by_the_socket(pool, monkeypatch):
    monkeypatch.setattr(pool.memory, "take", lambda owner, nbytes: None)
    block = Block.single(ListColumn([np.full((300, 400), k, np.float32) for k in range(6)]))
    task = task_of(pool, lambda x: (x + 1, b"text"))
    found = places(task([], block, Numbers(0)))
    assert [(float(a[0, 0]), a.shape, a.dtype, b) for a, b in found] == [
        (k + 1, (300, 400), np.float32, b"text") for k in range(6)
    ]


def test_results_larger_than_the_ones_before(pool):
    task = task_of(pool, lambda x: np.full(int(x), x, np.uint8))
    for size in (10, 100_000, 10, 3_000_000, 100_000, 20_000_000):
        (made,) = places(task([], numbers(size), Numbers(0)))
        assert made.shape == (size,)
        assert set(made[:: max(size // 7, 1)].tolist()) == {size % 256}


@pytest.mark.parametrize("layout", ["C", "F", "strided"])
def test_arrays_keep_their_values_whatever_their_layout(pool, layout):
    array = np.arange(240_000).reshape(2, 300, 400)
    array = {"C": array, "F": np.asfortranarray(array), "strided": array[:, ::2, ::3]}[layout]
    (one, two) = places(task_of(pool, lambda x: x.T)([], Block.single(DenseColumn(array)), Numbers(0)))
    np.testing.assert_array_equal(one, array[0].T)
    np.testing.assert_array_equal(two, array[1].T)


def test_ctrl_c_does_not_end_a_worker(pool):
    def interrupts(x):
        os.kill(os.getpid(), signal.SIGINT)
        return [os.getpid()]

    task = task_of(pool, interrupts)
    assert len({int(pid) for k in range(3) for (pid,) in places(task([], numbers(k), Numbers(0)))}) == 1


def test_folder_and_search_path_are_those_of_the_parent(pool, tmp_path, monkeypatch):
    task_of(pool, lambda x: x)([], numbers(1), Numbers(0))  # starts the worker
    (tmp_path / "only_found_here.py").write_text("answer = 42\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    def asks(x):
        import only_found_here

        return only_found_here.answer, str(Path.cwd())

    assert places(task_of(pool, asks)([], numbers(1), Numbers(0))) == [(42, str(tmp_path).encode())]


def test_libraries_use_one_thread_unless_told_otherwise(pool, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    task = task_of(pool, lambda x: (os.environ["OMP_NUM_THREADS"], os.environ["OPENBLAS_NUM_THREADS"]))
    assert places(task([], numbers(1), Numbers(0))) == [(b"1", b"3")]


def test_what_a_function_prints_is_seen():
    script = """
    import penstock as ps
    def speaks(x):
        print("element", int(x))
        return x
    list(ps.Dataset.range(2).map(speaks, 1).iterator(executor="process"))
    """
    said = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True, timeout=SECONDS
    )
    assert said.stdout == "element 0\nelement 1\n"
    assert said.stderr == ""


def test_a_script_runs_once_and_its_classes_travel():
    script = """
    from collections import namedtuple
    import penstock as ps
    print("started")
    Pair = namedtuple("Pair", "left right")
    first = ps.Dataset.range(3).map(lambda x: Pair(x, x + 1))
    ds = first.map(lambda pair: Pair(pair.right, type(pair).__name__), num_parallel_calls=1)
    found = list(ds.iterator(executor="process"))
    print([type(pair) is Pair for pair in found], found[2].right)
    """
    said = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True, timeout=SECONDS
    )
    assert said.stdout == "started\n[True, True, True] b'Pair'\n"


class Stubborn:
    """Can be sent, but not received."""

    def __init__(self, value):
        self.value = value

    def __reduce__(self):
        return refuse, (self.value,)


def refuse(value):
    raise RuntimeError(f"refused {value}")


class Shy:
    def __reduce__(self):
        raise RuntimeError("shy")


def test_an_element_that_cannot_travel_fails_alone(pool):
    task = task_of(pool, lambda x: 1)
    for odd, text in ((Stubborn(7), "refused 7"), (Shy(), "shy")):
        found = places(task([], Block.single(ListColumn([b"a", odd, b"c"])), Numbers(10)))
        assert [found[0], found[2]] == [1, 1]
        assert isinstance(found[1], InvalidArgumentError)
        assert text in str(found[1])
        assert found[1].context.element == 11


def test_a_result_that_cannot_travel_fails_alone(pool):
    inner = ps.Dataset.from_tensors(1)

    def gives(x):
        lock = threading.Lock()
        return inner.map(lambda y: (y, lock)[0]) if x == 1 else inner

    found = places(task_of(pool, gives)([], numbers(0, 1, 2), Numbers(0)))
    assert [type(x) for x in found] == [ps.Dataset, FailedPreconditionError, ps.Dataset]


def test_a_function_that_only_this_process_can_import_is_refused(pool):
    module = types.ModuleType("not_anywhere_else")
    exec("def f(x):\n    return x", vars(module))
    sys.modules["not_anywhere_else"] = module
    try:
        with pytest.raises(Unworkable, match=r"(?s)could not be set up.*not_anywhere_else") as raised:
            task_of(pool, module.f)([], numbers(1), Numbers(0))
        assert type(raised.value.error) is FailedPreconditionError
        assert raised.value.reason == (
            "map(function) could not be set up in a worker process: "
            "ModuleNotFoundError: No module named 'not_anywhere_else'"
        )
    finally:
        del sys.modules["not_anywhere_else"]
    assert places(task_of(pool, lambda x: x)([], numbers(1), Numbers(0))) == [1]


def test_a_worker_is_missed_although_a_process_it_started_lives_on(pool, tmp_path):
    """Child processes of a function do not inherit an end of the connection, which would keep it open."""
    started = tmp_path / "started"

    def leaves(x):
        if x == 2:
            child = os.fork()
            if not child:
                signal.alarm(SECONDS)
                signal.pause()
            with started.open("a") as file:
                print(child, file=file)
            os._exit(3)
        return x

    try:
        found = places(task_of(pool, leaves)([], numbers(1, 2, 3), Numbers(0)))
    finally:
        for pid in started.read_text().split():
            os.kill(int(pid), signal.SIGKILL)
    assert [found[0], found[2]] == [1, 3]
    assert "exit statuses 3 and 3" in str(found[1])


def test_a_worker_that_died_or_was_stopped_while_idle_gets_nothing_to_do(pool):
    for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGKILL):
        assert places(task_of(pool, lambda x: x)([], numbers(1), Numbers(0))) == [1]
        (worker,) = pool._workers
        os.kill(worker.process.popen.pid, number)
        os.waitid(os.P_PID, worker.process.popen.pid, os.WEXITED | os.WSTOPPED | os.WNOWAIT)


def test_a_worker_imports_all_of_penstock_only_when_a_function_asks_for_it(pool):
    def asks(x):
        before = any(f"penstock.{name}" in sys.modules for name in ("dataset", "plan", "store", "sources"))
        import penstock

        return before, len(list(penstock.Dataset.range(3))), hasattr(penstock, "no_such_name"), penstock.io is ps.io

    assert places(task_of(pool, asks)([], numbers(1), Numbers(0))) == [(False, 3, False, True)]


@pytest.mark.parametrize("name", ["element_key", "TextLineDataset", "image", "mixing"])
def test_the_first_name_that_a_function_asks_for_may_be_loaded_lazily(pool, name):
    def asks(x):
        import penstock

        return hasattr(penstock, name)

    assert places(task_of(pool, asks)([], numbers(1), Numbers(0))) == [True]


def test_every_public_name_can_be_the_first_one_in_a_worker():
    begin = START.replace("from penstock.runtime.processes.worker import serve", "").replace(
        "serve(int(sys.argv[1]), int(sys.argv[2]))", ""
    )
    check = textwrap.dedent("""
        import json, sys
        for name in json.loads(sys.argv[1]):
            exec(sys.argv[2], {})
            import penstock
            getattr(penstock, name)
    """)
    command = [sys.executable, "-c", check, json.dumps(dir(ps)), begin, *sys.path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_processes_that_cannot_be_started_are_an_error(pool, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(Unworkable, match="could not be started"):
        task_of(pool, lambda x: x)([], numbers(1), Numbers(0))


def test_a_process_that_ends_while_it_starts_is_an_error(pool, monkeypatch):
    monkeypatch.setattr("penstock.runtime.processes.start.START", "raise SystemExit(7)")
    with pytest.raises(Unworkable, match=r"exit status 7"):
        task_of(pool, lambda x: x)([], numbers(1), Numbers(0))


def test_a_process_that_ended_while_it_started_is_not_held_against_the_next_run(pool, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("penstock.runtime.processes.start.START", "raise SystemExit(7)")
        pool.warm_up()
        with pool._lock:
            assert pool._free.wait_for(lambda: not pool._starting, SECONDS)
    assert places(task_of(pool, lambda x: x)([], numbers(1), Numbers(0))) == [1]


def begun_by(pool, monkeypatch, done):
    """Record the processes that the pool has started. `done(worker, number)` is called before it waits for one."""
    wait, begun = Worker.wait_until_ready, []

    def waits(worker):
        begun.append(worker)
        done(worker, len(begun))
        wait(worker)

    monkeypatch.setattr(Worker, "wait_until_ready", waits)
    return begun


@pytest.fixture
def hangups_end_processes():
    """Under `nohup` hang-ups are ignored, in this process and in all started processes."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("seed", range(4))
def test_processes_that_somebody_ends_while_they_start_are_started_again(
    pool, monkeypatch, hangups_end_processes, seed
):
    chance = random.Random(seed)
    signals = chance.choices((signal.SIGKILL, signal.SIGTERM, signal.SIGHUP), k=6) + [signal.SIGSTOP][seed:]
    chance.shuffle(signals)

    def sends(worker, number):
        if number <= len(signals):
            os.kill(worker.process.popen.pid, signals[number - 1])

    begun = begun_by(pool, monkeypatch, sends)
    assert places(task_of(pool, lambda x: x)([], numbers(1), Numbers(0))) == [1]
    assert len(begun) == len(signals) + 1


@pytest.mark.parametrize(("number", "attempts"), [(signal.SIGKILL, 30), (signal.SIGSEGV, 3)])
def test_processes_that_never_come_are_an_error_in_the_end(pool, monkeypatch, number, attempts):
    monkeypatch.setattr("penstock.runtime.processes.handle._LONGEST_PAUSE", 0.01)
    begun = begun_by(pool, monkeypatch, lambda worker, _: os.kill(worker.process.popen.pid, number))
    with pytest.raises(Unworkable, match=rf"exit status {-number}") as raised:
        task_of(pool, lambda x: x)([], numbers(1), Numbers(0))
    assert len(begun) == attempts
    assert "-9 is what the system sends when memory runs out" in str(raised.value.error)


def test_a_pool_that_is_closed_makes_no_further_attempt(pool, monkeypatch):
    def kills(worker, number):
        pool.close()
        os.kill(worker.process.popen.pid, signal.SIGKILL)

    begun = begun_by(pool, monkeypatch, kills)
    pool.warm_up(1)
    with pool._lock:
        assert pool._free.wait_for(lambda: not pool._starting, SECONDS)
    assert len(begun) == 1


# -- time limits


def hanging(x):
    while x == 3:
        threading.Event().wait(SECONDS)
    return x


def test_an_element_that_hangs_fails_alone(pool):
    stretch = task_of(pool, hanging, element_timeout=1.5)([], numbers(1, 2, 3, 4, 5), Numbers(21))
    found = places(stretch)
    assert [found[k] for k in (0, 1, 3, 4)] == [1, 2, 4, 5]
    assert type(found[2]) is DeadlineExceededError
    assert found[2].context.element == 23
    assert "element_timeout=1.5 seconds" in str(found[2])


def test_a_block_that_is_late_as_a_whole_is_done_element_by_element(pool):
    def slow(x):
        threading.Event().wait(0.6)
        return x

    assert places(task_of(pool, slow, element_timeout=1.5)([], numbers(1, 2, 3), Numbers(0))) == [1, 2, 3]


def once(path):
    """Return True at the first call with this name in any process."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


@pytest.mark.parametrize("size", [1, 3])
def test_a_stopped_worker_is_replaced(pool, tmp_path, size):
    marker = str(tmp_path / "stopped")

    def stops(x):
        if x == 4 and once(marker):
            os.kill(os.getpid(), signal.SIGSTOP)
        return x

    found = places(task_of(pool, stops, element_timeout=1.0)([], numbers(*range(4, 4 + size)), Numbers(0)))
    assert found == list(range(4, 4 + size))
    assert Path(marker).exists()


def test_a_limit_does_not_count_what_a_function_imports(pool, tmp_path, monkeypatch):
    """Imports are not part of an element; only a stopped worker is given up during them."""
    (tmp_path / "slow_to_import.py").write_text("import threading\nthreading.Event().wait(1.5)\ndef f(x): return x\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import slow_to_import

    assert places(task_of(pool, slow_to_import.f, element_timeout=1.0)([], numbers(1), Numbers(0))) == [1]


def test_the_pool_of_the_process_is_one():
    assert process_pool() is process_pool()
