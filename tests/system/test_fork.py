"""A fork in the middle of a pass: the child has none of the threads, and makes its own."""

import os
import sys

import pytest
from tests.system.child import finish, start

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

ds = ps.Dataset.range(1 << 40).map(branching, 2).batch(10).prefetch(2)
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
