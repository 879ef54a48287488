"""`ds.memory()`, and what users see of the budget for buffers."""

import gc
import itertools
import json

import numpy as np
import pytest
from tests.golden.golden import assert_golden

import penstock as ps
from penstock.errors import ResourceExhaustedError
from penstock.profiler.memory import MemoryReport, MemoryRow
from penstock.runtime.memory.ledger import live_ledgers

MiB = 1 << 20


CALLS = itertools.count()


def large(x):
    return np.full(1 << 15, x, np.float64) if next(CALLS) >= 0 else None  # 256 KiB; no rewrite moves what is seen


def bounded(ds, nbytes):
    return ds.with_options(ps.Options(autotune={"ram_budget": nbytes}))


LARGE = ps.Dataset.range(400).map(large, 2)
SHUFFLED = bounded(LARGE.shuffle(20).batch(2).prefetch(4), 64 * MiB)


def amount(report, kind):
    return sum(row.nbytes for row in report.rows if row.kind == kind)


def test_a_running_pass_shows_its_split():
    with iter(SHUFFLED) as elements:
        for _ in range(10):
            next(elements)
        report = SHUFFLED.memory()
    assert (report.passes, report.given, report.total) == (1, True, 64 * MiB)
    assert 20 << 18 <= amount(report, "shuffle") <= 40 << 18
    assert report.used == sum(row.nbytes for row in report.rows)
    ahead = [row for row in report.rows if row.kind == "ahead"]
    assert {row.stage for row in ahead} == {"map(large)", "prefetch(4)"}
    assert sum(row.limit for row in ahead) <= 64 * MiB - amount(report, "shuffle")
    assert all(row.limit is None for row in report.rows if row.kind != "ahead")
    assert json.loads(json.dumps(report.to_dict()))["rows"][0]["stage"] == report.rows[0].stage


def test_every_pass_of_the_data_set_is_shown_and_no_other():
    other = bounded(LARGE.shuffle(3), 32 * MiB)
    with iter(SHUFFLED) as one, iter(SHUFFLED) as two, iter(other) as third:
        next(one), next(two), next(third)
        assert (SHUFFLED.memory().passes, SHUFFLED.memory().total) == (2, 128 * MiB)
        assert other.memory().passes == 1
        assert "shuffle(20)" not in str(other.memory())
    assert SHUFFLED.memory().passes == other.memory().passes == 0


def test_data_sets_that_differ_in_their_budget_only_are_told_apart():
    plain, small = LARGE.shuffle(7), bounded(SHUFFLED, 32 * MiB)
    with iter(plain) as one, iter(bounded(plain, 16 * MiB)) as two, iter(SHUFFLED) as three, iter(small) as four:
        next(one), next(two), next(three), next(four)
        reports = [ds.memory() for ds in (plain, bounded(plain, 16 * MiB), SHUFFLED, small)]
    assert [report.passes for report in reports] == [1, 1, 1, 1]
    assert [report.given for report in reports] == [False, True, True, True]
    assert [report.total for report in reports[1:]] == [16 * MiB, 64 * MiB, 32 * MiB]


def test_a_finished_pass_holds_nothing():
    for _ in SHUFFLED:
        pass
    report = SHUFFLED.memory()
    assert (report.passes, report.used, report.rows) == (0, 0, ())


def test_the_budget_of_the_process_shows_what_others_hold():
    mine, other = LARGE.shuffle(8), LARGE.shuffle(5)
    with iter(mine) as one, iter(other) as two:
        next(one), next(two)
        report = mine.memory()
    assert not report.given
    assert amount(report, "all") >= 5 << 18
    assert [row.stage for row in report.rows if row.kind == "shuffle"] == ["shuffle(8)"]


def test_abandoned_passes_leave_the_ledger_empty():
    gc.collect()
    before = len(live_ledgers())
    for _ in range(20):
        next(iter(SHUFFLED))
    gc.collect()
    assert len(live_ledgers()) == before
    assert SHUFFLED.memory().passes == 0


def test_the_report_reads_well():
    rows = (
        MemoryRow("shuffle", "shuffle(1000)", "train.py:3", 128 << 20, None),
        MemoryRow("ahead", "map(decode)", "train.py:4", 31_000_000, 64 << 20),
        MemoryRow("for reuse", "this process", None, 9000, None),
    )
    reports = [
        MemoryReport(1 << 30, True, 165_226_728, 1, rows),
        MemoryReport(8 << 30, False, 0, 0, ()),
        MemoryReport(8 << 30, False, 9000, 2, rows[2:]),
    ]
    assert_golden("memory_report", "\n\n".join(map(repr, reports)))


OVER = {
    "shuffle": lambda: LARGE.shuffle(300),
    "shuffle_ignored": lambda: LARGE.shuffle(300).ignore_errors(),
    "shuffle_repeated": lambda: LARGE.shuffle(300).repeat(2).prefetch(2),
    "cache": lambda: LARGE.cache().prefetch(2),
    "window": lambda: LARGE.window(300),
    "padded": lambda: LARGE.padded_batch(300).prefetch(1),
    "token_batches": lambda: LARGE.batch_by_tokens(1 << 24, sort_window=300),
    "packed": lambda: LARGE.pack((1 << 15) + 1, open_rows=300),
    "groups": lambda: LARGE.group_by_window(lambda x: np.int64(x[0]) % 2, lambda key, window: window, 200),
    "batch": lambda: LARGE.batch(300).prefetch(1),  # inline, nothing is made before it is asked for
}


@pytest.mark.parametrize(
    ("case", "executor"), [(case, executor) for executor in ("thread", "inline") for case in OVER][:-1]
)
def test_a_buffer_larger_than_the_budget_ends_the_pass_with_an_error(case, executor):
    ds = bounded(OVER[case](), 16 * MiB)
    elements = ds.iterator(executor=executor)
    with pytest.raises(ResourceExhaustedError, match=r"ram_budget is 16(.8 MB|777216 bytes) for all buffers"):
        for _ in elements:
            pass
    with pytest.raises(ResourceExhaustedError, match="for all buffers"):  # still, and no end
        next(elements)
    assert ds.memory().passes == 0


def test_a_state_from_under_too_small_a_budget_goes_on_under_a_larger_one():
    wanted = [int(x[0]) for x in LARGE.shuffle(300).iterator(epoch=0)]
    small = bounded(LARGE.shuffle(300), 16 * MiB)
    with small.iterator(epoch=0) as elements, pytest.raises(ResourceExhaustedError):
        next(elements)
    large = bounded(LARGE.shuffle(300), 512 * MiB).iterator(epoch=0)
    large.load_state_dict(elements.state_dict())
    assert [int(x[0]) for x in large] == wanted


def test_an_element_larger_than_the_budget_ends_the_pass_with_both_numbers():
    ds = bounded(LARGE, 100_000)
    with pytest.raises(ResourceExhaustedError) as raised:
        list(ds)
    assert_golden("over_budget_one_element", str(raised.value))


def test_saving_tells_the_same(tmp_path):
    with pytest.raises(ResourceExhaustedError):
        bounded(LARGE.shuffle(300), 16 * MiB).save(str(tmp_path / "saved"))


@pytest.mark.parametrize("nbytes", [1 * MiB, 4 * MiB, 64 * MiB])
def test_elements_do_not_depend_on_the_budget(nbytes):
    ds = ps.Dataset.range(60).map(lambda x: np.full(1000, x), 2).shuffle(20).batch(3).prefetch(3).unbatch()
    wanted = [int(x[0]) for x in ds.iterator(epoch=0)]
    assert [int(x[0]) for x in bounded(ds, nbytes).iterator(epoch=0)] == wanted
