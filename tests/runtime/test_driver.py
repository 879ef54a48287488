"""The driver of the knobs: the time of its checks, its use of a decision, and its memory. The tuner is simulated."""

from dataclasses import replace

import pytest

from penstock.options import Options
from penstock.runtime.autotune import driver as module
from penstock.runtime.autotune import remembered
from penstock.runtime.autotune.driver import Driver
from penstock.runtime.autotune.figures import Decision, Knobs, Means, TunerLimits
from penstock.runtime.autotune.remembered import Remembered, tuning_digest
from penstock.runtime.machine.switching import Switching
from penstock.runtime.memory.budget import Budget
from penstock.runtime.memory.ledger import Ledger
from penstock.runtime.observers import Silent

MAP, READS = (0, "map(f)", "script.py:1"), (1, "interleave input", "script.py:2")
BOTH = ("thread", "process")


class Threads:
    def __init__(self):
        self.wanted = []

    def want(self, workers):
        self.wanted.append(workers)

    def delays(self):
        return {}


class Processes:
    def __init__(self, come):
        self.come = come
        self.asked = 0

    def warm_up(self):
        self.asked += 1

    def ready(self):
        return self.come


@pytest.fixture
def decisions(monkeypatch):
    """Play the tuner's decisions one after the other, and record its input."""
    said, seen = [], []

    def decide(history, means):
        seen.append(list(history))
        return said.pop(0) if said else Decision({})

    monkeypatch.setattr(module, "decide", decide)
    monkeypatch.setattr(module, "granted_cpus", lambda: 2)
    return said, seen


def driver(*, come=True, tuned=True, digest=None, means=lambda: Means(2.0, 1 << 30)):
    threads, processes = Threads(), Processes(come)
    made = Driver(
        Silent(),
        threads,
        Ledger(Budget(1 << 30, given=True)),
        Switching(None),
        means=means,
        processes=lambda: processes,
        tuned=tuned,
        digest=None if digest is None else lambda: digest,
    )
    return made, threads, processes


def lane(made, place=MAP, limits=TunerLimits(1, 64), executors=lambda: BOTH):  # noqa: B008 - a frozen value
    return made.lane(place, Knobs(2), limits, bounded=True, executors=executors)


def test_a_place_has_one_lane_however_often_it_is_made():
    made, _, _ = driver()
    assert lane(made) is lane(made)
    assert lane(made, READS) is not lane(made)
    again = lane(made, (0, "map(f)", "script.py:9"))
    assert [found.name for found in made.lanes] == ["0:map(f)", "1:interleave input", "0:map(f)#2"]
    assert again is made.lanes[2]


def test_a_decision_turns_the_knobs_and_asks_for_threads(decisions):
    said, seen = decisions
    made, threads, _ = driver()
    found = lane(made)
    made.look(10.0)
    assert seen == []  # the first check only starts a period
    assert made.due == pytest.approx(10.1)
    said.append(Decision({found.name: Knobs(16, window=1 << 20)}, {found.name: "because"}, period=0.5))
    made.look(10.05)
    assert seen == []  # no check is due
    made.look(10.2)
    (sample,) = seen[0]
    assert (sample.start, sample.stop) == (10.0, 10.2)
    assert (found.knobs.parallelism, found.knobs.window, found.reason) == (16, 1 << 20, "because")
    assert threads.wanted == [16]
    assert made.due == pytest.approx(10.7)


def test_cores_are_for_those_who_compute_and_more_for_those_who_wait():
    made, _, _ = driver()
    for number in range(3):
        lane(made, (number, f"map({number})", None))
    assert made.workers() == 2
    lane(made, READS).turn(Knobs(16), None)
    assert made.workers() == 18


def test_who_is_not_tuned_never_looks(decisions):
    made, _, _ = driver(tuned=False)
    lane(made)
    for now in (1.0, 2.0, 3.0):
        made.look(now)
    assert decisions[1] == []
    assert made.patience() is None


def test_processes_that_do_not_come_are_no_choice_any_more(decisions):
    said, _ = decisions
    made, _, processes = driver(come=False)
    free, wanted = lane(made), lane(made, READS, executors=lambda: ("process",))
    said.extend(Decision({}, want_processes=True, period=0.1) for _ in range(3))
    for now, executors in ((0.0, BOTH), (1.0, BOTH), (15.0, BOTH), (22.0, ("thread",))):
        made.look(now)
        assert free.choice.limits.executors == executors
    assert processes.asked == 3
    assert wanted.choice.limits.executors == ("process",)  # the user's own choice
    said.append(Decision({}, {free.name: "2 workers"}))
    made.look(30.0)
    assert free.reason == "2 workers; worker processes did not start"


def test_a_run_begins_with_what_is_remembered_as_far_as_it_may(monkeypatch, tmp_path, decisions):
    monkeypatch.setenv("PENSTOCK_REMEMBER", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    digest = tuning_digest("f" * 32, Options())
    said, _ = decisions
    made, _, _ = driver(digest=digest)
    found = lane(made)
    found.turn(Knobs(48, "process"), None)
    best = Decision({found.name: Knobs(48, "process")}, {found.name: "it was best"}, settled=True)
    said.extend([replace(best, crowded=True), best])
    made.look(10.0)
    made.look(20.0)
    assert remembered.recall(digest) == {}  # it may not be the best without other programs
    made.look(30.0)
    assert remembered.recall(digest)["0:map(f)"].reason == "it was best"
    assert isinstance(remembered.recall(digest)["0:map(f)"], Remembered)
    assert lane(driver(digest=digest)[0]).knobs == Knobs(48, "process")
    narrow = lane(driver(digest=digest)[0], limits=TunerLimits(1, 8), executors=lambda: ("thread",))
    assert narrow.knobs == Knobs(8, "thread")
    assert lane(driver(digest="another plan")[0]).knobs == Knobs(2)


def test_what_is_remembered_takes_nothing_away(monkeypatch, tmp_path):
    """The next run tries the settings again that a run gave up, perhaps under a passing load."""
    monkeypatch.setenv("PENSTOCK_REMEMBER", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    digest = tuning_digest("a" * 32, Options())
    reason = "worker processes gave 0.967 times as much as threads"
    remembered.remember(digest, {"0:map(f)": Remembered(Knobs(1, window=1), reason, 1280.0, 700.0)})
    assert lane(driver(digest=digest)[0]).knobs == Knobs(2)
    remembered.remember(digest, {"0:map(f)": Remembered(Knobs(1, "process", window=1), "", 2800.0, 700.0)})
    assert lane(driver(digest=digest)[0]).knobs == Knobs(2, "process")
