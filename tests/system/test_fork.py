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
