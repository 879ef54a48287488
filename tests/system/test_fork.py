"""A fork in the middle of an iteration: the child has none of the threads, and starts its own."""

import os
import re
import sys

import pytest
from tests.system.child import SOURCES, finish, start

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

SCRIPT = """
import os, sys, warnings
import penstock as ps
warnings.simplefilter("ignore")  # Python's own, about threads and fork

def branching(x):
    return x if x % 2 else x + 1

ds = ps.Dataset.range(1000).map(branching, 4).batch(10).prefetch(2)
with iter(ds) as elements:
    first = next(elements)
    pid = os.fork()
    if not pid:
        print(sum(len(batch) for batch in ds), flush=True)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    print(len(first) + sum(len(batch) for batch in elements))
"""


@pytest.mark.skipif(sys.platform == "darwin", reason="system libraries do not survive a fork there")
def test_a_child_runs_passes_of_its_own_while_its_parent_goes_on():
    done = finish(start(SCRIPT))
    assert done.code == 0, done.err
    assert done.out.split() == ["1000", "1000"]


INHERITED = """
import gc, os, sys, warnings
import penstock as ps
warnings.simplefilter("ignore")

def branching(x):
    return x if x % 2 else x + 1

untuned = ps.Options(autotune={"enabled": False})  # and so without a wish of its own
ds = ps.Dataset.range(1 << 40).map(branching, 2).batch(10).prefetch(2).with_options(untuned)
begun, later, plain = iter(ds), iter(ds.take(3)), iter(ps.Dataset.range(5))
begun_at, plain_at = next(begun), next(plain)
wish = ps.Options(threading={"switch_interval": 0.001})
wishing = iter(ds.with_options(wish))
next(wishing)
pid = os.fork()
if not pid:
    print(sys.getswitchinterval())
    try:
        while True:
            next(begun)
    except ps.errors.FailedPreconditionError as error:
        print(str(error).partition(":")[0])
    del begun, wishing
    gc.collect()
    print(sum(len(batch) for batch in later), [int(x) for x in plain])
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
print(sys.getswitchinterval(), len(next(begun)))
"""


@pytest.mark.skipif(sys.platform == "darwin", reason="system libraries do not survive a fork there")
def test_iterators_that_a_child_inherits_say_whose_they_are_and_end_without_waiting():
    done = finish(start(INHERITED))
    assert done.code == 0, done.err
    interval, said, counts, after = done.out.splitlines()
    assert (interval, after) == ("0.005", "0.001 10")
    assert said == "This iterator belongs to the process that this one was forked from"
    assert counts == "30 [1, 2, 3, 4]"


LOCKED = """
import contextlib, os, pathlib, signal, sys, tempfile, threading, warnings
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import penstock as ps
from penstock import forked
from penstock.block.arena import ARENA
warnings.simplefilter("ignore")

folder = pathlib.Path(tempfile.mkdtemp())
pyarrow.parquet.write_table(pa.table({"breed": [1, 2, 3, 4]}), folder / "a.parquet")
rows = ps.ParquetDataset(str(folder / "a.parquet"))
kept = ps.Dataset.range(6).map(lambda x: np.full(20_000, x)).cache().batch(3)
weights = ps.MixWeights([1, 1])
mixed = ps.Dataset.sample_from_datasets([ps.Dataset.range(3)] * 2, weights=weights)
skipping = ps.Dataset.range(4).map(lambda x: 1 // int(x)).ignore_errors(log_warning=False)

def use():
    return (
        [int(rows.at(i)["breed"]) for i in (3, 0)],
        [batch.shape for batch in kept],
        len(list(mixed)),
        [int(x) for x in skipping],
        len(list(ps.Dataset.range(4).map(lambda x: x + 1, 2))),
    )

use()
del mixed
mixed = ps.Dataset.sample_from_datasets([ps.Dataset.range(3)] * 2, weights=weights)
held, done = threading.Event(), threading.Event()

def hold():
    with contextlib.ExitStack() as locks:
        for lock in list(forked._LOCKS):
            locks.enter_context(lock)
        ARENA._inside = True
        held.set()
        done.wait()
        ARENA._inside = False

thread = threading.Thread(target=hold)
thread.start()
held.wait()
pid = os.fork()
if not pid:
    signal.alarm(30)
    print(use(), flush=True)
    taken = ARENA.empty((1 << 20,), np.uint8)
    at = taken.ctypes.data
    del taken
    print(ARENA.empty((1 << 20,), np.uint8).ctypes.data == at, flush=True)
    os._exit(7)
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
done.set()
thread.join()
print(use(), len(forked._LOCKS) > 10, code)
"""


@pytest.mark.skipif(sys.platform == "darwin", reason="system libraries do not survive a fork there")
def test_locks_that_a_thread_holds_are_free_in_a_child():
    done = finish(start(LOCKED))
    assert done.code == 0, done.err
    own, again, parents = done.out.splitlines()
    found = "([4, 1], [(3, 20000), (3, 20000)], 6, [1, 0, 0], 4)"
    assert (own, again, parents) == (found, "True", f"{found} True 7")


def test_no_lock_of_the_process_is_made_by_hand():
    module_level = re.compile(r"^\w+(?:: .*)? = threading\.(?:R?Lock|Condition|Event|Semaphore)\(", re.MULTILINE)
    found = {path.name for path in SOURCES.rglob("penstock/**/*.py") if module_level.search(path.read_text())}
    assert not found


def test_what_a_process_has_made_on_the_disk_goes_with_that_process_and_not_with_its_child(tmp_path):
    script = f"""
import atexit, os, warnings
from penstock.forked import when_gone
from penstock.io.storage import remove
warnings.simplefilter("ignore")

class Owner: ...

name = {str(tmp_path / "copy")!r}
open(name, "w").close()
owner = Owner()
when_gone(owner, remove, name)
pid = os.fork()
if not pid:
    atexit._run_exitfuncs()  # as in a worker of another library, which ends by itself
    os._exit(0)
os.waitpid(pid, 0)
print(os.path.exists(name))
del owner
print(os.path.exists(name))
"""
    done = finish(start(script))
    assert done.code == 0, done.err
    assert done.out.split() == ["True", "False"]
