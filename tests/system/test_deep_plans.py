"""Plans of thousands of steps in a row: built, inspected, run, saved, continued and closed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import penstock as ps

COMMON = """
import json, sys
import penstock as ps

def add(x):
    return x + 1

def keep(x):
    return x >= 0

KINDS = [
    lambda ds: ds.take(10), lambda ds: ds.shuffle(2), lambda ds: ds.enumerate().map(lambda i, x: x),
    lambda ds: ds.filter(keep), lambda ds: ds.map(add, num_parallel_calls=2).prefetch(1), lambda ds: ds.skip(0),
    lambda ds: ds.batch(2).unbatch(), lambda ds: ds.concatenate(ps.Dataset.range(0)), lambda ds: ds.map(add),
]

def deep(steps):
    ds = ps.Dataset.range(3)
    for i in range(steps):
        ds = KINDS[i % len(KINDS)](ds)
    return ds
"""

LOOKED_AT = """
ds = deep(5000)
assert ds._plan.height > 5000
print(repr(ds)[:8], ds.cardinality(), ds.element_spec.dtype, len(str(ds.fingerprint())) > 5)
it = iter(ds)  # rewritten, verified, made to stages
state = json.loads(json.dumps(it.state_dict()))
it.load_state_dict(state)
it.close()
del it, ds
print("closed")
"""

RUN = """
ds = deep(400)
for executor in ("inline", "thread"):
    wanted = sorted(int(x) for x in ds.iterator(epoch=0, executor=executor))
    it = ds.iterator(epoch=0, executor=executor)
    first = int(next(it))
    other = ds.iterator(epoch=0, executor=executor)
    other.load_state_dict(json.loads(json.dumps(it.state_dict())))
    assert sorted([first, *(int(x) for x in other)]) == wanted, wanted
    print(wanted)
assert "shuffle(2)" in str(ds.explain())
"""

COUNTED = """
from penstock.physical.stages.scan import ScanStage

asked = []
told = ScanStage.state
ScanStage.state = lambda scan: asked.append(1) or told(scan)  # at the bottom of all that is asked

def states(steps):
    asked.clear()
    ds = ps.Dataset.range(9)
    for _ in range(steps):
        ds = ds.take(9).skip(0).shuffle(1)
    it = ds.iterator(executor="inline")
    next(it)
    return len(asked)

print(states(90) < 90 or states(90))  # not once for each of the 270 above
"""

ONE_STAGE = """
ds = ps.Dataset.range(4)
for i in range(2000):
    ds = ds.map(add) if i % 2 else ds.filter(keep)
print([int(x) for x in ds])
"""


def run(program):
    source = Path(ps.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", COMMON + program], capture_output=True, text=True, timeout=200,
        env={"PYTHONPATH": str(source), "PATH": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


def test_a_plan_of_five_thousand_steps_is_looked_at_and_made_to_stages():
    assert run(LOOKED_AT) == ["<Dataset -2 int64 True", "closed"]


def test_hundreds_of_stages_run_and_go_on():
    found = run(RUN)
    assert found[0] == found[1]
    assert len(json.loads(found[0])) == 3


def test_no_stage_asks_again_for_what_the_one_above_was_told():
    """Otherwise the first element over n stages causes n * n / 2 requests."""
    assert run(COUNTED) == ["True"]


def test_thousands_of_steps_that_become_one():
    assert run(ONE_STAGE) == ["[1000, 1001, 1002, 1003]"]


ENTRIES = {
    "lint behind a cache": "ds.cache(folder).map(lambda x: x).lint()",
    "repr": "repr(ds), ds._repr_html_()",
    "spec": "ds.element_spec, ds.cardinality(), ds.fingerprint()",
    "pickle": "pickle.loads(pickle.dumps(ds)).fingerprint()",
    "save": "ds.save(folder)",
}
ENTERED = """
import pickle, tempfile

ds = ps.Dataset.range(5)
for _ in range(sys.getrecursionlimit() + 100):  # that of a new interpreter: what runs raises it
    ds = ds.map(add)
with tempfile.TemporaryDirectory() as parent:
    folder = parent + "/kept"
    {entry}
print("done")
"""


@pytest.mark.parametrize("entry", ENTRIES)
def test_no_entry_recurses_over_the_depth(entry):
    assert run(ENTERED.format(entry=ENTRIES[entry])) == ["done"]
