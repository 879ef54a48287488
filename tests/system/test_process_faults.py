"""Worker processes that are killed, stopped or hang, a killed parent, a fork in the middle: real signals."""

import os
import random
import select
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from tests.system.child import finish, run, start

import penstock as ps
from penstock.block.block import Block
from penstock.block.column import DenseColumn
from penstock.block.numbers import Numbers
from penstock.physical.stretch import join
from penstock.physical.transform import MapTransform
from penstock.runtime.processes.pool import ProcessPool, ProcessTask, process_pool

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="counts what a process holds where Linux shows it"),
]

SECONDS = 60
ROUNDS = settings.default.max_examples // 7  # `make fuzz` has more
LIMIT = 3.0  # seconds for a Block, which needs far less


def worker_pids(pool):
    return sorted(worker.process.popen.pid for worker in list(pool._workers))


def send_to_one(chance, pool, number):
    """Send a signal to a worker of the pool, if there is one: it may have just ended."""
    pids = worker_pids(pool)
    if pids:
        try:
            os.kill(chance.choice(pids), number)
        except ProcessLookupError:
            return


def made_by(x):
    """Return small and large results in turn, and some failures."""
    if x % 29 == 3:
        raise ValueError(int(x))
    return np.full(20_000 if x % 4 == 0 else 3, x)


def assert_exact(number, found):
    if number % 29 == 3:
        assert isinstance(found, ValueError), found
        assert found.args == (number,)
    else:
        assert found.shape == (20_000 if number % 4 == 0 else 3,)
        assert (found == number).all()


@pytest.mark.slow
def test_a_pass_whose_workers_are_killed_gives_every_element_once_and_in_order():
    """Each round has its own position in the iteration."""
    dataset = ps.Dataset.range(120).map(made_by, num_parallel_calls=2)
    list(dataset.take(3).iterator(executor="process"))
    for seed in range(ROUNDS):
        chance = random.Random(seed)
        moment = chance.randrange(120)
        with dataset.iterator(executor="process") as elements:
            for number in range(120):
                if number == moment:
                    send_to_one(chance, process_pool(), signal.SIGKILL)
                try:
                    found = next(elements)
                except ValueError as error:
                    found = error
                assert_exact(number, found)
            assert next(elements, None) is None


def parted(chance, count):
    """Split the numbers below `count` into Blocks of any size."""
    first = 0
    while first < count:
        size = min(chance.randint(1, 12), count - first)
        yield first, Block.single(DenseColumn(np.arange(first, first + size)))
        first += size


def in_threads(task, blocks, done, count):
    """Return the outcome of every Block, by the number of its first element. `done(k)` is called after k Blocks."""
    waiting, found, lock = iter(list(blocks)), {}, threading.Lock()

    def work():
        while True:
            with lock:
                first, block = next(waiting, (None, None))
            if block is None:
                return
            made = task([], block, Numbers(first))
            with lock:
                found[first] = made
                done(len(found))

    threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    return join([found[first] for first in sorted(found)])


@pytest.mark.slow
def test_workers_that_are_stopped_or_hang_are_replaced(tmp_path):
    """Run several rounds in four lanes, because most of the time is spent waiting: one Block of a round is late.

    In half of the rounds each worker has the next Block already, which then has to move to another worker.
    """
    failed = []

    def lane(number):
        pool = ProcessPool(2, most=2, at_once=1 + number % 2)
        try:
            for seed in range(number // 2, ROUNDS, 2):
                one_round(seed, pool, str(tmp_path / f"{seed}-{pool.at_once}"))
        except BaseException as error:
            failed.append(error)
        pool.close()

    threads = [threading.Thread(target=lane, args=(number,), daemon=True) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(ROUNDS * SECONDS)
    assert failed == []
    assert not any(thread.is_alive() for thread in threads)


def one_round(seed, pool, marker):
    """A worker is stopped at some moment, or a function hangs once at some element."""
    chance = random.Random(seed)
    hangs, victim, moment = seed % 2 == 0, chance.randrange(60), chance.randrange(1, 5)

    def function(x):
        if hangs and x == victim:
            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                pass
            else:
                threading.Event().wait(10 * SECONDS)
        return made_by(x)

    def done(count):
        if not hangs and count == moment:
            send_to_one(chance, pool, signal.SIGSTOP)

    transforms = [MapTransform(function, "map(function)", None, vectorise=False)]
    made = in_threads(ProcessTask(pool, transforms, LIMIT), parted(chance, 60), done, 2 * pool.at_once)
    assert made.size == 60
    number = 0
    for piece in made.pieces():
        for found in [piece] if isinstance(piece, Exception) else piece.elements():
            assert_exact(number, found)
            number += 1
    assert Path(marker).exists() == hangs


def test_nothing_outlives_a_parent_that_is_killed():
    """No worker inside an endless function, no stopped worker, and no named memory stays."""
    script = """
    import os, signal, threading
    import numpy as np
    import penstock as ps
    from penstock.runtime.processes.pool import process_pool

    def endless(x):
        if x < 2:
            return np.full(50_000, x)
        while True:
            pass

    elements = ps.Dataset.range(8).map(endless, 3).iterator(executor="process")
    next(elements)
    pool = process_pool()
    with pool._lock:
        pool.warm_up(4)
        pool._free.wait_for(lambda: pool.size() >= 4, 50)
    pids = [worker.process.popen.pid for worker in pool._workers]
    os.kill(pids[0], signal.SIGSTOP)
    print(*pids)
    threading.Event().wait()
    """
    before = sorted(Path("/dev/shm").iterdir())
    process = start(script)
    pids = [int(word) for word in process.stdout.readline().split()]
    assert len(pids) >= 4, finish(process).err
    watched = [os.pidfd_open(pid) for pid in pids]
    process.kill()
    finish(process)
    try:
        for descriptor in watched:
            assert ended(descriptor), "a worker outlived its parent"
    finally:
        for descriptor in watched:
            os.close(descriptor)
    assert sorted(Path("/dev/shm").iterdir()) == before


def ended(descriptor):
    """The descriptor of a process can be read when the process has ended."""
    return bool(select.select([descriptor], [], [], SECONDS)[0])


@pytest.mark.slow
def test_hundreds_of_abandoned_passes_leave_nothing():
    script = """
    import gc, os, threading
    from pathlib import Path
    import numpy as np
    import penstock as ps

    def function(x):
        return np.full(25_000, x)

    dataset = ps.Dataset.range(10**6).map(function, num_parallel_calls=2)

    def abandon(times):
        for _ in range(times):
            elements = dataset.iterator(executor="process")
            assert next(elements)[0] == 0
            del elements

    def held():
        gc.collect()
        for thread in threading.enumerate():
            if thread.name.startswith("penstock"):
                thread.join(30)
        children = Path("/proc/self/task").glob("*/children")
        memory = sum(int(line.split()[1]) for line in Path("/proc/self/status").read_text().splitlines()
                     if line.startswith(("RssAnon", "RssShmem")))
        return (
            sum(len(path.read_text().split()) for path in children),
            len(list(Path("/proc/self/fd").iterdir())),
            len(list(Path("/dev/shm").iterdir())),
            threading.active_count(),
            memory,
        )

    abandon(60)
    before = held()
    abandon(200)
    after = held()
    print(before, after)
    assert after[0] == before[0] and after[2] == before[2] and after[3] == before[3], (before, after)
    assert after[1] <= before[1] + 40 and after[4] <= before[4] + 30_000, (before, after)
    """
    done = run(script)
    assert done.code == 0, done.err
    done.assert_quiet()


def test_a_forked_child_leaves_the_parents_workers_alone():
    script = """
    import os
    import numpy as np
    import penstock as ps
    from penstock.block.block import Block
    from penstock.block.column import DenseColumn
    from penstock.block.numbers import Numbers
    from penstock.physical.transform import MapTransform
    from penstock.runtime.processes.pool import ProcessTask, process_pool

    def function(x):
        return np.full(30_000, x)

    elements = ps.Dataset.range(300).map(function, 2).iterator(executor="process")
    kept = [next(elements) for _ in range(20)]
    parents = {worker.process.popen.pid for worker in process_pool()._workers}
    child = os.fork()
    if not child:
        pool = process_pool()
        task = ProcessTask(pool, [MapTransform(function, "map", None, vectorise=False)])
        made = task([], Block.single(DenseColumn(np.arange(5))), Numbers(0)).block.elements()
        own = {worker.process.popen.pid for worker in pool._workers}
        exact = all((a == i).all() for i, a in enumerate(made)) and all((a == i).all() for i, a in enumerate(kept))
        for array in kept:
            array[:] = -1
        pool.close()
        os._exit(0 if exact and own and not own & parents else 1)
    found = kept + list(elements)
    assert os.waitpid(child, 0)[1] == 0
    assert len(found) == 300 and all((a == i).all() for i, a in enumerate(found))
    print("exact")
    """
    done = run(script)
    assert (done.code, done.out) == (0, "exact\n"), done.err
    done.assert_quiet()


@pytest.mark.parametrize("ending", ["", "sys.exit(0)", "raise SystemExit"])
def test_the_interpreter_exits_in_the_middle_without_a_word(ending):
    script = f"""
    import sys
    import penstock as ps

    def function(x):
        return [int(x)]

    elements = iter(ps.Dataset.range(10**6).map(function, 2).iterator(executor="process"))
    for _ in range(10):
        next(elements)
    {ending}
    """
    done = run(script)
    assert (done.code, done.out, done.err) == (0, "", "")


def test_the_interpreter_does_not_wait_for_a_thread_that_hangs():
    script = """
    import threading
    import numpy as np
    from penstock.block.block import Block
    from penstock.block.column import DenseColumn
    from penstock.block.numbers import Numbers
    from penstock.physical.transform import MapTransform, run_all
    from penstock.runtime.transform_runner import TimedRunner

    def hangs(x):
        threading.Event().wait()

    made = TimedRunner(run_all, 0.1)(
        [MapTransform(hangs, "map", None, vectorise=False)], Block.single(DenseColumn(np.arange(3))), Numbers(0))
    print(*(type(error).__name__ for _, error in made.failures))
    """
    done = run(script)
    assert (done.code, done.out, done.err) == (0, "DeadlineExceededError " * 2 + "DeadlineExceededError\n", "")
