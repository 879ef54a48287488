"""Ctrl-C and interpreter exit in real processes: prompt, with at most one traceback and no output of threads."""

import signal

import pytest
from tests.system.child import finish, interrupt_when, run, start

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Ctrl-C reaches processes otherwise on Windows"),
]

PIPELINE = """
import threading
import numpy as np
import penstock as ps

def branching(x):
    return x if x % 2 else x + 1

def slow(x):
    threading.Event().wait(0.005)
    return np.full((64, 64), x)

pipelines = {
    "map": lambda: ps.Dataset.range(10**9).map(branching, 4),
    "map and batch": lambda: ps.Dataset.range(10**9).map(slow, 4).batch(4).prefetch(2),
    "shuffle": lambda: ps.Dataset.range(10**9).map(branching, ps.AUTOTUNE).shuffle(50).prefetch(4),
    "interleave": lambda: ps.Dataset.range(10**9).interleave(
        lambda i: ps.Dataset.range(5).map(branching), 4, num_parallel_calls=4).batch(2),
    "free order": lambda: ps.Dataset.range(10**9).map(slow, 4, deterministic=False),
    "inline": lambda: ps.Dataset.range(10**9).map(branching),
}
ds = pipelines[sys.argv[1]]()
"""
NAMES = ("map", "map and batch", "shuffle", "interleave", "free order", "inline")


@pytest.mark.parametrize("name", NAMES)
def test_ctrl_c_during_a_pass_ends_the_process_with_keyboard_interrupt(name):
    process = start(PIPELINE + "for i, x in enumerate(ds):\n    if i == 20: print('running')\n", name)
    interrupt_when(process, "running")
    done = finish(process)
    assert done.code in (130, -signal.SIGINT)
    assert done.err.rstrip().endswith("KeyboardInterrupt")
    assert done.err.count("Traceback (most recent call last)") == 1, done.err
    done.assert_quiet()


def test_ctrl_c_reaches_a_consumer_that_waits_for_a_worker():
    script = """
    import threading
    import penstock as ps
    entered, never = threading.Event(), threading.Event()

    def stuck(x):
        if x == 3:
            print("stuck")
            never.wait(3)
        return x

    for x in ps.Dataset.range(10).map(stuck, 2):
        pass
    """
    process = start(script)
    interrupt_when(process, "stuck")
    done = finish(process)
    assert done.code in (130, -signal.SIGINT)
    assert "KeyboardInterrupt" in done.err
    done.assert_quiet()


def test_after_ctrl_c_is_caught_no_worker_is_left_and_the_data_set_works():
    script = (
        PIPELINE
        + """
try:
    for i, x in enumerate(ds):
        if i == 20:
            print("running")
except KeyboardInterrupt:
    print("caught")
left = [t for t in threading.enumerate() if t.name.startswith("penstock")]
for thread in left:
    thread.join(20)
print("alive", sum(t.is_alive() for t in left))
print([int(x) for x in ps.Dataset.range(3).map(branching, 2)])
"""
    )
    process = start(script, "map")
    interrupt_when(process, "running")
    done = finish(process)
    assert done.code == 0
    assert done.out.splitlines() == ["caught", "alive 0", "[1, 1, 3]"]
    assert done.err == ""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ending", ["open", "sys.exit", "raises"])
def test_the_interpreter_exits_in_the_middle_of_a_pass_without_a_word(name, ending):
    last = {"open": "", "sys.exit": "sys.exit(0)", "raises": "raise SystemExit"}[ending]
    done = run(PIPELINE + f"iterator = iter(ds)\nfor _ in range(10): next(iterator)\n{last}\n", name)
    assert (done.code, done.out, done.err) == (0, "", "")


def test_an_exception_in_the_loop_is_the_only_thing_said():
    done = run(PIPELINE + "for i, x in enumerate(ds):\n    if i == 10: raise ValueError('mine')\n", "map and batch")
    assert done.code == 1
    assert done.err.rstrip().endswith("ValueError: mine")
    assert done.err.count("Traceback (most recent call last)") == 1
    done.assert_quiet()


def test_a_pass_in_a_thread_of_the_user_does_not_keep_the_process_alive():
    script = (
        PIPELINE
        + """
def consume():
    for i, x in enumerate(ds):
        if i == 10:
            begun.set()

begun = threading.Event()
threading.Thread(target=consume, daemon=True).start()
assert begun.wait(30)
"""
    )
    done = run(script, "map")
    assert done.code == 0
    done.assert_quiet()
