"""Forked workers have the program's objects, end with their user and their parent, and are replaced."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from penstock.block.block import Block
from penstock.block.column import DenseColumn
from penstock.block.numbers import Numbers
from penstock.physical.transform import MapTransform
from penstock.runtime.processes.forks import ForkedPool, others_at_rest
from penstock.runtime.processes.handle import Worker
from penstock.runtime.processes.task import ProcessTask

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(sys.platform != "linux", reason="forks, as multiprocessing does by itself on Linux"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning", "ignore:.*fork:RuntimeWarning"),
]

SECONDS = 60
HELD = {}  # set in a worker only


def hold(held, number):
    HELD.update(held, number=number)


@pytest.fixture
def forked():
    pools = []

    def make(count=2, at_once=1, **held):
        pools.append(ForkedPool(multiprocessing.get_context("fork"), count, partial(hold, held), at_once=at_once))
        pools[-1].fork()
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()
        assert pool.size() == 0
    assert not multiprocessing.active_children()


def made(pool, function, *values, element_timeout=None):
    task = ProcessTask(pool, [MapTransform(function, "map(function)", None, vectorise=False)], element_timeout)
    found = []
    for piece in task([], Block.single(DenseColumn(np.array(values))), Numbers(0)).pieces():
        found.extend([piece] if isinstance(piece, Exception) else piece.elements())
    return found


def test_a_worker_has_what_the_program_holds(forked, tmp_path):
    """This includes objects that cannot be pickled, with their value at the fork."""
    (tmp_path / "text").write_text("read by a worker")
    with (tmp_path / "text").open() as file:
        values = [1, 2]
        pool = forked(1, file=file, lock=threading.Lock(), values=values, double=lambda x: 2 * x)
        values.append(3)

        def asks(x):
            from tests.runtime.test_forked_workers import HELD

            with HELD["lock"]:
                return HELD["double"](x), HELD["file"].read(), len(HELD["values"])

        assert made(pool, asks, 21) == [(42, b"read by a worker", 2)]


def test_an_exception_of_the_users_script_is_its_own(forked, monkeypatch):
    """A copy by value would have another class, which `except` in the script does not match."""
    kind = type("OfTheScript", (Exception,), {"__module__": "__main__"})
    monkeypatch.setattr(sys.modules["__main__"], "OfTheScript", kind, raising=False)

    def fails(x):
        raise sys.modules["__main__"].OfTheScript(int(x))

    (found,) = made(forked(1), fails, 5)
    assert type(found) is kind
    assert found.args == (5,)


def test_workers_are_there_at_once_and_have_numbers_of_their_own(forked):
    pool = forked(3)
    assert pool.size() == 3
    workers = [pool._take(None, None, again=False) for _ in range(3)]
    for worker in workers:
        pool._give_back(worker)
    assert len({worker.process.popen.pid for worker in workers}) == 3
    assert {number for worker in workers for number in made(only(pool, worker), number_of, 1)} == {0, 1, 2}


def only(pool, worker):
    """Return the pool with this worker as the next one."""
    pool._idle.remove(worker)
    pool._idle.append(worker)
    return pool


def number_of(x):
    from tests.runtime.test_forked_workers import HELD

    return HELD["number"]


def test_results_go_through_memory_that_is_written_again(forked):
    pool = forked(1)
    kept = [made(pool, lambda x: np.full(50_000, x), k)[0][100:200] for k in range(10)]
    assert [set(part.tolist()) for part in kept] == [{k} for k in range(10)]
    del kept
    gc.collect()
    assert pool.memory.bytes()[0] == 0


def test_one_that_dies_is_replaced_under_its_number(forked, tmp_path):
    """Even if another worker was forked after it, and so had its ends of socket and pipe for a moment."""
    once = str(tmp_path / "once")

    def dies_once(x):
        try:
            os.close(os.open(once, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return number_of(x)
        return os.kill(os.getpid(), signal.SIGKILL)

    pool = forked(2)
    with pool.here:
        assert made(pool, dies_once, 1)[0] in (0, 1)
        workers = [pool._take(None, None, again=False) for _ in range(2)]
    for worker in workers:
        pool._give_back(worker)
    assert {number for worker in workers for number in made(only(pool, worker), number_of, 1)} == {0, 1}


def test_an_element_that_kills_every_worker_fails_alone(forked):
    def dies(x):
        if x == 2:
            os._exit(3)
        return x

    pool = forked(1)
    with pool.here:
        found = made(pool, dies, 1, 2, 3)
    assert [found[0], found[2]] == [1, 3]
    assert "exit statuses 3 and 3" in str(found[1])


def test_one_that_hangs_is_replaced_also_while_nobody_waits(forked):
    def hangs(x):
        if x == 2:
            threading.Event().wait(SECONDS)
        return x

    found = made(forked(1), hangs, 1, 2, element_timeout=0.5)
    assert found[0] == 1
    assert "element_timeout=0.5 seconds" in str(found[1])


def behind_each_other(forked, function, *values, element_timeout=None):
    """Return one worker's result for each value. All values are sent before it starts with the first."""
    begin, go = os.pipe()

    def waits(x):
        from tests.runtime.test_forked_workers import HELD

        if x == values[0]:
            os.read(HELD["begin"], 1)
        return function(x)

    pool = forked(1, at_once=len(values), begin=begin)
    task = ProcessTask(pool, [MapTransform(waits, "map(waits)", None, vectorise=False)], element_timeout)
    found, threads = {}, []

    def ask(x):
        (piece,) = task([], Block.single(DenseColumn(np.array([x]))), Numbers(0)).pieces()
        found[x] = piece if isinstance(piece, Exception) else next(iter(piece.elements()))

    (worker,) = pool._workers
    with pool.here:
        for x in values:
            threads.append(threading.Thread(target=ask, args=(x,)))
            threads[-1].start()
            while len(worker._asked) < len(threads):
                threads[-1].join(0.001)
        os.write(go, b"more than once, where it is asked again")
        for thread in threads:
            thread.join(SECONDS)
    os.close(begin)
    os.close(go)
    assert not any(thread.is_alive() for thread in threads)
    return [found[x] for x in values]


def test_a_worker_has_its_next_block_while_it_is_at_work(forked):
    """Each thread gets its own results, also if they need larger memory than was offered."""
    found = behind_each_other(forked, lambda x: np.full(50_000 * x, x), 1, 2, 3)
    assert [(set(part.tolist()), len(part)) for part in found] == [({x}, 50_000 * x) for x in (1, 2, 3)]


def test_what_waits_behind_an_element_that_kills_its_worker_is_not_charged_with_it(forked):
    def dies(x):
        if x == 1:
            os._exit(3)
        return x

    first, *others = behind_each_other(forked, dies, 1, 2, 3, 4)
    assert "exit statuses 3 and 3" in str(first)
    assert others == [2, 3, 4]


def test_what_waits_behind_one_that_hangs_has_its_own_time(forked):
    def hangs(x):
        if x == 1:
            threading.Event().wait(SECONDS)
        return x

    first, *others = behind_each_other(forked, hangs, 1, 2, 3, element_timeout=1.0)
    assert "element_timeout=1 seconds" in str(first)
    assert others == [2, 3]


def test_a_worker_that_is_stopped_by_another_thread_loses_nothing(forked, monkeypatch):
    """One thread is interrupted while it waits for its turn. Later answers still have to match."""
    come, calls = Worker._come_to_turn, []

    def comes(worker, asked):
        calls.append(asked)
        if len(calls) == 3:
            raise InterruptedError
        return come(worker, asked)

    monkeypatch.setattr(Worker, "_come_to_turn", comes)
    assert behind_each_other(forked, lambda x: x, 1, 2, 3) == [1, 2, 3]
    assert len(calls) > 3


def test_signals_are_the_parents_matter(forked):
    before = signal.signal(signal.SIGTERM, lambda number, frame: None)
    try:
        pool = forked(1)
    finally:
        signal.signal(signal.SIGTERM, before)

    def interrupts(x):
        os.kill(os.getpid(), signal.SIGINT)
        return os.getpid(), signal.getsignal(signal.SIGTERM) == signal.SIG_DFL

    (pid, default), (again, _) = made(pool, interrupts, 1, 2)
    assert (pid, default) == (again, True)


def test_a_fork_waits_until_nobody_else_imports(tmp_path, monkeypatch):
    """A module that another thread has half imported would be locked for ever in the child."""
    (tmp_path / "module_that_waits.py").write_text(
        "import tests.runtime.test_forked_workers as test\ntest.BEGUN.set()\ntest.GO.wait(60)\nwhole = True\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    importing = threading.Thread(target=__import__, args=("module_that_waits",))
    importing.start()
    BEGUN.wait(SECONDS)
    whole = []

    def fork():
        with others_at_rest(SECONDS):
            whole.append(hasattr(sys.modules["module_that_waits"], "whole"))

    with others_at_rest(0.0):  # with no patience it does not wait
        assert not hasattr(sys.modules["module_that_waits"], "whole")
    forking = threading.Thread(target=fork)
    forking.start()
    GO.set()
    forking.join()
    importing.join()
    assert whole == [True]


BEGUN, GO = threading.Event(), threading.Event()


def test_workers_end_with_their_parent(tmp_path):
    """Even if the parent is killed, and they are inside a function: the script's output ends with the last worker."""
    script = f"""
    import multiprocessing, os, signal, sys, threading
    sys.path.insert(0, {str(Path(__file__).parents[2])!r})
    from tests.runtime.test_forked_workers import ForkedPool, hold, made, partial

    def waits(x):
        os.write(1, b"at work\\n")
        threading.Event().wait(60)

    pool = ForkedPool(multiprocessing.get_context("fork"), 2, partial(hold, {{}}))
    pool.fork()
    threading.Thread(target=made, args=(pool, waits, 1), daemon=True).start()
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGKILL)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as script:
        assert script.stdout.readline() == b"at work\n"
        out, _ = script.communicate(timeout=SECONDS)
        assert out == b""
        assert script.returncode == -signal.SIGKILL
