"""One budget over all buffers: its division, its counts, its refusals; a run leaves nothing in it."""

import gc
import threading
import warnings
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.golden.golden import assert_golden

import penstock as ps
from penstock.block.arena import SMALLEST, Arena
from penstock.block.block import Block
from penstock.block.column import BytesColumn, DenseColumn, ListColumn
from penstock.block.footprint import Footprints, footprint
from penstock.block.rows import ElementRows
from penstock.errors import BudgetWarning, ResourceExhaustedError
from penstock.io import storage
from penstock.physical.memory import UNCOUNTED, Overspent
from penstock.physical.stages.batch import stack_block
from penstock.physical.stages.cached import CachedStage
from penstock.physical.stages.grouped import GroupedStage
from penstock.physical.stages.mix import MixStage
from penstock.physical.stages.sampling import Constant, Sampling
from penstock.physical.stages.scan import ScanStage
from penstock.physical.stages.shuffle import ShuffleStage
from penstock.plan.node import INFINITE_CARDINALITY, StepName
from penstock.runtime.memory import budget as budget_module
from penstock.runtime.memory.budget import START, Budget, budget_for, fair_shares, process_budget
from penstock.runtime.memory.kept import KEPT, Follower, KeptMemory, Weakly
from penstock.runtime.memory.ledger import Ledger, live_ledgers
from penstock.sources.arrays import BlockSource
from penstock.sources.arrow_pieces import RECENT, Recent
from penstock.store.memory import MemoryStore

MiB = 1 << 20
WHERE = "train.py:12"
STEP = StepName("shuffle(50)", WHERE)


@pytest.fixture(autouse=True)
def kept(monkeypatch):
    """Set the process's reusable memory as if there were none."""
    found = KeptMemory()
    monkeypatch.setattr(budget_module, "KEPT", found)
    return found


def rows(count, width=1000):
    """A stage of `count` elements of 8 * `width` bytes."""
    return ScanStage(BlockSource(Block.single(DenseColumn(np.zeros((count, width)))), "rows"), StepName("rows", WHERE))


# -- dividing

wants = st.lists(st.tuples(st.integers(0, 1 << 40), st.integers(1, 64).map(lambda share: 1 / share)), max_size=30)


@given(st.integers(-5, 1 << 40), wants)
def test_shares_are_no_more_than_there_is_and_no_more_than_is_wanted(free, wanted):
    found = fair_shares(free, wanted)
    assert len(found) == len(wanted)
    assert sum(found) <= max(free, 0)
    assert all(0 <= share <= want for share, (want, _) in zip(found, wanted, strict=True))


@given(st.integers(0, 1 << 40), wants)
def test_nothing_is_left_over_while_somebody_wants_more(free, wanted):
    found = fair_shares(free, wanted)
    if sum(want for want, _ in wanted) > free:
        assert sum(found) >= free - len(found) - (free >> 40)


@given(st.integers(0, 1 << 40), wants)
def test_whoever_gets_less_than_he_wants_has_no_less_for_his_weight_than_others(free, wanted):
    found = fair_shares(free, wanted)
    levels = [share / weight for share, (_, weight) in zip(found, wanted, strict=True)]
    for i, (want, weight) in enumerate(wanted):
        if found[i] < want:
            assert all(level <= (found[i] + 1) / weight * (1 + 1e-9) for level in levels)


class Ledgered:
    """Operations of a budget's buffers and windows, one after the other."""

    steps = st.lists(
        st.tuples(
            st.sampled_from(["account", "window", "hold", "wish", "close", "drop"]),
            st.integers(0, 7),
            st.one_of(st.none(), st.integers(0, 2 * MiB)),
        ),
        max_size=60,
    )

    def __init__(self, total):
        self.budget = Budget(total, given=True)
        self.accounts, self.windows = [], []

    def take(self, what, which, amount):
        amount = amount or 0
        if what == "account":
            self.accounts.append(self.budget.account("at hand", f"stage {which}"))
        elif what == "window":
            self.windows.append(self.budget.window(f"map {which}", which + 1))
        elif what == "hold" and self.accounts:
            self.accounts[which % len(self.accounts)].hold(amount)
        elif what == "wish" and self.windows:
            self.windows[which % len(self.windows)].wish(amount or None)
        elif self.accounts and which % 2:
            gone = self.accounts.pop(which % len(self.accounts))
            if what == "close":
                gone.close()
        elif self.windows:
            gone = self.windows.pop(which % len(self.windows))
            if what == "close":
                gone.close()


@given(Ledgered.steps, st.integers(1, 4 * MiB))
def test_limits_never_come_to_more_than_the_budget_less_what_is_held(steps, total):
    run = Ledgered(total)
    for step in steps:
        run.take(*step)
        limits = [window.limit for window in run.windows]
        held = sum(account.nbytes for account in run.accounts)
        assert min(limits, default=0) >= 0
        assert sum(limits) <= max(total - held, 0)


def test_windows_begin_equal_and_end_as_wished():
    budget = Budget(1000 * MiB, given=True)
    one, other, third = (budget.window(f"map {i}") for i in range(3))
    assert one.limit == other.limit == third.limit == START
    one.wish(400 * MiB)
    assert one.limit == 400 * MiB
    assert other.limit == START
    other.wish(900 * MiB)
    third.wish(10)
    assert third.limit == 10
    assert one.limit == 400 * MiB
    assert 590 * MiB < other.limit <= 600 * MiB - 10
    one.wish(None)
    assert one.limit == START


def test_windows_side_by_side_share_one_part():
    budget = Budget(10 * MiB, given=True)
    alone, *many = (budget.window("input", share) for share in (1, 4, 4, 4, 4))
    assert sum(window.limit for window in many) == pytest.approx(alone.limit, abs=8)


def test_a_window_that_goes_leaves_its_part_to_the_others():
    budget = Budget(10 * MiB, given=True)
    stays, closed, dropped = (budget.window(f"map {i}") for i in range(3))
    assert stays.limit == 10 * MiB // 3
    closed.close()
    closed.close()
    assert stays.limit == 5 * MiB
    del dropped
    assert stays.limit == 10 * MiB


def test_a_buffer_that_grows_and_shrinks_moves_the_windows():
    budget = Budget(10 * MiB, given=True)
    window, account = budget.window("map"), budget.account("shuffle", "shuffle")
    account.hold(8 * MiB)
    assert window.limit <= 2 * MiB
    account.hold(MiB)
    assert window.limit >= 8 * MiB
    account.close()
    assert window.limit == 10 * MiB


def test_small_changes_go_unnoticed_but_never_in_the_wrong_direction():
    budget = Budget(1000 * MiB, given=True)
    windows = [budget.window("map") for _ in range(20)]
    account = budget.account("shuffle", "shuffle")
    account.hold(100 * MiB)
    before = sum(window.limit for window in windows)
    account.hold(101 * MiB)
    assert sum(window.limit for window in windows) == before <= 899 * MiB


def test_threads_may_do_all_of_it_at_once():
    total, failed = 64 * MiB, []
    budget = Budget(total, given=True)
    start = threading.Barrier(4)

    def hammer(seed):
        draw = np.random.default_rng(seed)
        run = Ledgered(total)
        run.budget = budget
        start.wait()
        try:
            for _ in range(2000):
                what = ("account", "window", "hold", "wish", "close", "drop")[draw.integers(6)]
                run.take(what, int(draw.integers(8)), int(draw.integers(2 * MiB)))
                assert all(0 <= window.limit <= total for window in run.windows)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=hammer, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    gc.collect()
    assert budget.members() == []
    assert budget.window("the only one").limit == START


def test_reading_a_limit_while_somebody_divides_waits_for_nobody():
    budget = Budget(10 * MiB, given=True)
    window = budget.window("map")
    before = window.limit
    with budget._dividing:  # as if another thread had stopped inside
        other = budget.window("another")
        assert window.limit == before
    assert window.limit == other.limit == before // 2


# -- the owner of a budget


def test_runs_without_a_budget_of_their_own_share_one():
    assert budget_for(ps.Options()) is budget_for(ps.Options()) is process_budget()
    assert not process_budget().given
    options = ps.Options(autotune={"ram_budget": 5 * MiB})
    assert budget_for(options) is not budget_for(options)
    assert (budget_for(options).total, budget_for(options).given) == (5 * MiB, True)


def test_a_ledger_knows_its_own_buffers_and_closes_them_only():
    budget, plan = Budget(10 * MiB, given=True), object()
    one, other = Ledger(budget, plan), Ledger(budget, plan)
    held = [ledger.account("shuffle", "shuffle", WHERE) for ledger in (one, other)]
    window = other.window("map")
    assert [member.label for member in other.members()] == ["shuffle", "map"]
    assert live_ledgers(plan) == [one, other]
    one.close()
    one.close()
    assert live_ledgers(plan) == [other]
    assert budget.members() == [held[1], window]


def test_an_abandoned_ledger_leaves_nothing():
    budget, plan = Budget(10 * MiB, given=True), object()
    ledger = Ledger(budget, plan)
    stage = ShuffleStage(rows(10), 5, 0, StepName("shuffle(5)", WHERE), memory=ledger)
    stage.next(1)
    window = ledger.window("map")
    assert len(ledger.members()) == 2
    del ledger, stage, window
    gc.collect()
    assert live_ledgers(plan) == []
    assert budget.members() == []


def test_what_several_runs_share_counts_once_and_as_long_as_one_of_them_holds_it():
    class Shared:
        """The shared object."""

    budget, shared = Budget(10 * MiB, given=True), Shared()
    one, other = Ledger(budget), Ledger(budget)
    first, second = (ledger.account("cache", "cache", of=shared) for ledger in (one, other))
    assert first is second
    assert one.account("cache", "cache", of=Shared()) is not first
    first.hold(MiB)
    assert one.members() == other.members() == [first]
    one.close()
    assert [member.nbytes for member in budget.members()] == [MiB]
    del first, second
    assert budget.members() == []


def test_uncounted_memory_counts_nothing():
    account = UNCOUNTED.account("shuffle", "shuffle")
    account.hold(1 << 60)
    account.close()
    assert not account.lasting


def test_weakly_held_things_go_when_they_die():
    class Thing:
        """Any object."""

    gone = []
    known = Weakly(lambda: gone.append(True))
    one, other = Thing(), Thing()
    known.add(one)
    known.add(other)
    assert known.listed() == [one, other]
    del one
    assert known.listed() == [other]
    known.remove(other)
    known.remove(other)
    assert known.listed() == []
    assert len(gone) == 2


# -- bytes of stages

BUFFERS = {
    "shuffle": lambda memory: ShuffleStage(rows(100), 50, 0, STEP, memory=memory),
    "shuffle_known": lambda memory: ShuffleStage(
        ones(100), 50, 0, STEP, memory=memory, cardinality=INFINITE_CARDINALITY
    ),
    "cache": lambda memory: CachedStage(rows(100), MemoryStore(), StepName("cache", WHERE), memory=memory),
    "batch": lambda memory: GroupedStage(
        ones(100), 50, stack_block, StepName("batch(50)", WHERE), drop_remainder=False, memory=memory
    ),
}


def ones(count):
    """Build a stage whose Blocks have one element each."""

    class Ones(ScanStage):
        def next(self, want):
            return super().next(1)

    stage = rows(count)
    return Ones(stage._source, stage)


def drained(stage):
    count = 0
    while (block := stage.next(10)) is not None:
        count += block.size
    return count


@pytest.mark.parametrize("kind", BUFFERS)
def test_a_buffer_larger_than_a_given_budget_ends_the_run_with_both_numbers(kind):
    stage = BUFFERS[kind](Budget(100_000, given=True))
    with pytest.raises(Overspent) as raised:
        drained(stage)
    assert isinstance(raised.value.error, ResourceExhaustedError)
    assert isinstance(raised.value.error, MemoryError)
    assert_golden(f"over_budget_{kind}", f"{type(raised.value.error).__name__}: {raised.value.error}")


def test_what_is_known_beforehand_is_refused_before_the_buffer_fills():
    source = rows(100)
    stage = ShuffleStage(source, 50, 0, STEP, memory=Budget(300_000, given=True), cardinality=100)
    with pytest.raises(Overspent):
        stage.next(1)
    small = ShuffleStage(rows(20), 50, 0, STEP, memory=Budget(300_000, given=True), cardinality=20)
    assert drained(small) == 20


@pytest.mark.parametrize("kind", BUFFERS)
def test_a_buffer_that_fits_a_given_budget_runs(kind):
    assert drained(BUFFERS[kind](Budget(MiB, given=True))) in (100, 2)


def test_the_default_budget_warns_once_for_each_stage_and_goes_on(monkeypatch):
    monkeypatch.setattr(budget_module, "_TOLD", set())
    budget = Budget(100_000, given=False)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(2):
            assert drained(BUFFERS["shuffle"](budget)) == 100
        assert drained(BUFFERS["cache"](budget)) == 100
    assert [warning.category for warning in told] == [BudgetWarning] * 2
    assert (told[0].filename, told[0].lineno) == ("train.py", 12)
    assert_golden("over_budget_warning", "\n".join(str(warning.message) for warning in told))


def test_a_result_larger_than_a_given_budget_is_refused():
    budget = Budget(MiB, given=True)
    budget.check_fits(MiB, "map(decode)", WHERE)
    budget.check_fits(5 * MiB, "map(decode)", WHERE, elements=5)
    with pytest.raises(ResourceExhaustedError) as raised:
        budget.check_fits(3 * MiB, "map(decode)", WHERE, elements=2)
    assert_golden("over_budget_element", str(raised.value))


def lengths(count):
    return ps.Dataset.range(count).map(lambda x: np.full(int(x) % 3 + 20, x))


LARGE = {
    "range": lambda: ps.Dataset.range(8),
    "map": lambda: lengths(8),
    "batch": lambda: ps.Dataset.range(80).batch(40),
    "padded_batch": lambda: ps.Dataset.range(80).padded_batch(40),
    "ragged_batch": lambda: ps.Dataset.range(80).ragged_batch(40),
    "rebatch": lambda: ps.Dataset.range(80).batch(5).rebatch(40),
    "unbatch": lambda: ps.Dataset.from_tensors(np.zeros((4, 40))).unbatch(),
    "window": lambda: ps.Dataset.range(80).window(20).flat_map(lambda window: window.batch(20)),
    "group_by_window": lambda: ps.Dataset.range(80).group_by_window(
        lambda x: np.int64(0), lambda key, window: window.batch(20), window_size=20
    ),
    "bucket": lambda: lengths(8).bucket_by_sequence_length(len, [21], [2, 2]),
    "shuffle": lambda: lengths(8).shuffle(2),
    "interleave": lambda: ps.Dataset.range(2).interleave(lambda x: ps.Dataset.range(80).batch(40)),
    "ignored": lambda: lengths(8).ignore_errors(log_warning=False),
}


@pytest.mark.parametrize("executor", ["auto", "inline"])
@pytest.mark.parametrize("kind", LARGE)
def test_an_element_larger_than_a_given_budget_ends_the_run_whichever_step_makes_it(kind, executor):
    total = 4 if kind == "range" else 100
    ds = LARGE[kind]().with_options(ps.Options(autotune={"ram_budget": total}))
    with (
        ds.iterator(executor=executor) as elements,
        pytest.raises(ResourceExhaustedError, match=rf"\d+ bytes( already)?, and .* is {total} bytes") as raised,
    ):
        list(elements)
    assert "test_budget.py" in str(raised.value)
    with pytest.raises(ResourceExhaustedError) as again:  # it is not the end, for any caller
        list(elements)
    assert str(again.value) == str(raised.value)


def test_a_budget_says_nothing_of_arrays_that_are_in_memory_anyway_and_of_elements_that_fit():
    budget = ps.Options(autotune={"ram_budget": 1000})
    whole = ps.Dataset.from_tensors(np.zeros((200, 5))).unbatch()
    assert len(list(whole.with_options(budget))) == 200
    assert len(list(ps.Dataset.range(1000).padded_batch(100).with_options(budget))) == 10


def test_stages_that_are_looked_at_go_with_their_run():
    with ps.Dataset.range(8).batch(2).with_options(ps.Options(autotune={"ram_budget": 1000})).iterator() as elements:
        next(elements)
        stage = weakref.ref(elements._run.root)
        assert "next" in vars(stage())
    del elements
    assert stage() is None


def test_two_sizes_that_look_alike_are_told_in_bytes():
    with pytest.raises(ResourceExhaustedError, match=r"has 1048577 bytes, and .* is 1048576 bytes"):
        Budget(MiB, given=True).check_fits(MiB + 1, "map(decode)")


def test_what_the_engine_chooses_is_never_refused():
    budget = Budget(1000, given=True)
    window, account = budget.window("map"), budget.account("at hand", "interleave")
    account.hold(1 << 20)
    assert window.limit == 0
    account.close()
    assert window.limit == 1000


def test_sources_of_a_mix_count_what_they_have_at_hand():
    ledger = Ledger(Budget(10 * MiB, given=True))
    key, known = 3, Constant((0.5, 0.5))
    mixed = MixStage((rows(9), rows(9)), Sampling(key, known), "continue", STEP, same_kind=True, memory=ledger)
    assert mixed.next(4) is not None
    (account,) = ledger.members()
    assert account.kind == "at hand"
    assert account.nbytes in (9 * 8000, 2 * 9 * 8000)
    mixed.close()
    assert ledger.members() == []


def test_a_cache_counts_while_it_fills_and_then_once_for_all():
    budget, store = Budget(10 * MiB, given=True), MemoryStore()
    first = CachedStage(rows(100), store, StepName("cache", WHERE), memory=budget)
    drained(first)
    again, third = (CachedStage(rows(100), store, StepName("cache", WHERE), memory=budget) for _ in range(2))
    again.next(1)
    third.next(1)
    assert sum(member.nbytes for member in budget.members()) == store.nbytes == 800_000
    first.close()
    again.close()
    third.close()
    del first, again, third
    assert budget.members() == []


def test_a_cache_counts_in_the_process_s_budget_as_long_as_it_is_kept():
    budget, store = Budget(10 * MiB, given=False), MemoryStore()
    stage = CachedStage(rows(100), store, StepName("cache", WHERE), memory=budget)
    drained(stage)
    stage.close()
    del stage
    assert [member.nbytes for member in budget.members()] == [800_000]
    store.clear()
    assert budget.members() == []


def test_a_pass_that_fills_no_cache_gives_its_bytes_back():
    budget = Budget(10 * MiB, given=True)
    stage = CachedStage(rows(100), MemoryStore(), StepName("cache", WHERE), memory=budget)
    stage.next(10)
    assert sum(member.nbytes for member in budget.members()) == 80_000
    stage.close()
    assert sum(member.nbytes for member in budget.members()) == 0


# -- bytes that are kept alive


def test_a_slice_keeps_the_whole_alive():
    block = Block.single(DenseColumn(np.zeros((10, 100))))
    assert footprint(None) == 0
    assert footprint(block.slice(3, 4)) == 8000
    items = Block.single(ListColumn([np.zeros(5), np.zeros(7), "text"]))
    assert footprint(items) == 40 + 56 + 64
    strings = BytesColumn.from_values([b"abc", b"defgh"])
    assert footprint(Block.single(strings)) == 8 + 2 * 16


def test_mapped_files_count_nothing_and_lent_memory_counts_whole(tmp_path):
    path = tmp_path / "content"
    path.write_bytes(bytes(1 << 15))  # smaller files are read
    assert footprint(Block.single(DenseColumn(storage.map_file(path)[10:20]))) == 0
    lent = Arena().empty((4, SMALLEST), np.uint8)
    assert 4 * SMALLEST <= footprint(Block.single(DenseColumn(lent[:1]))) <= 4 * SMALLEST + 64


@given(st.lists(st.integers(0, 5), max_size=30))
def test_footprints_come_back_to_nothing(chosen):
    arrays = [np.zeros(10 + i) for i in range(3)]
    values = [arrays[i % 3][i:] for i in chosen]
    alive = Footprints()
    for value in values:
        alive.add(value)
    assert alive.nbytes == sum(array.nbytes for i, array in enumerate(arrays) if any(j % 3 == i for j in chosen))
    for value in values:
        alive.remove(value)
    assert alive.nbytes == 0


def test_rows_count_what_is_in_their_slots():
    small = ElementRows(100)
    small.put(np.arange(10), Block.single(DenseColumn(np.zeros((10, 4)))))
    assert (small.nbytes, small.slot_bytes) == (320, 32)
    large = ElementRows(100)
    block = Block.single(DenseColumn(np.zeros((4, 1 << 14))))
    large.put(np.arange(4), block)
    assert (large.nbytes, large.slot_bytes) == (block.nbytes, None)
    large.put(np.arange(3), Block.single(DenseColumn(np.zeros((3, 1 << 14)))))
    assert large.nbytes == 7 << 17
    large.put(np.arange(3, 4), Block.single(DenseColumn(np.zeros((1, 1 << 14)))))
    assert large.nbytes == 4 << 17
    strings = ElementRows(100)
    strings.put(np.arange(3), Block.single(BytesColumn.from_values([b"x" * 100] * 3)))
    assert 300 < strings.nbytes < 400


# -- reusable memory of the process


class Pool:
    """Holds memory like the arena."""

    def __init__(self):
        self.bounds = []

    @property
    def most(self):
        return self.bounds[-1]

    def bound(self, nbytes):
        self.bounds.append(nbytes)

    def watch(self, changed):
        self.changed = changed
        changed(0)


def test_what_is_kept_for_use_again_follows_the_smallest_budget(kept):
    pool, told = Pool(), []
    kept.add("for reuse", pool)
    large, small = (Follower(lambda name=name: told.append(name), most) for name, most in (("l", 800), ("s", 320)))
    kept.follow(large)
    assert pool.most == 800
    kept.follow(small)
    assert pool.most == 320
    told.clear()
    pool.changed(100)
    assert told == ["l", "s"]
    assert kept.reserved(800) == 100
    assert 100 <= kept.reserved(1 << 20) <= 130
    assert kept.held() == [("for reuse", 100)]
    pool.changed(101)
    assert told == ["l", "s"]
    pool.changed(0)
    assert told == ["l", "s", "l", "s"]
    assert kept.reserved(800) == 0
    del small
    assert pool.most == 800
    del large
    assert pool.most == 1 << 28
    huge = Follower(lambda: None, 1 << 40)
    kept.follow(huge)
    assert pool.most == huge.most
    kept.trim(1 << 20)
    assert pool.bounds[-2:] == [1 << 20, 1 << 40]


def test_memory_for_large_results_is_kept_while_they_are_computed(kept):
    pool = Pool()
    kept.add("for reuse", pool)
    budget = Budget(1 << 33, given=False)
    window = budget.window("map")
    window.ask(1 << 20)
    assert window.limit >= 1 << 20
    assert not pool.bounds  # no change
    window.ask(1 << 29)
    assert window.limit >= 1 << 29
    assert pool.most == (1 << 29) + (1 << 26)
    window.ask(1 << 32)
    assert window.limit >= 1 << 32
    assert pool.most == 1 << 30  # an eighth of the budget
    window.close()
    budget.settle()
    assert pool.most == 1 << 28


def test_polled_memory_counts_too(kept):
    kept.poll("shared", lambda: 7)
    assert kept.reserved(800) == 7
    assert kept.reserved(16) == 2
    assert kept.held() == [("shared", 7)]
    kept.poll("in heaps", lambda: 90, share=2)
    assert kept.reserved(800) == 97
    assert kept.reserved(800, {"in heaps": 30}) == 67
    assert kept.reserved(800, {"in heaps": 100}) == 7
    assert kept.reserved(80) == 7 + 40


def test_holes_in_heaps_are_taken_off_the_windows_up_to_half(monkeypatch):
    """Each thread's heap holds memory that it once used, which no eighth of a budget bounds."""
    holes = [0]
    monkeypatch.setattr(KEPT, "_polled", dict(KEPT._polled))
    KEPT.poll("in heaps, for reuse", lambda: holes[0], share=2)
    monkeypatch.setattr(budget_module, "KEPT", KEPT)
    budget = Budget(256 * MiB, given=True)
    elsewhere = KEPT.reserved(256 * MiB, KEPT.polled())  # reusable memory of other tests
    windows = [budget.window(f"map {i}") for i in range(8)]
    for holes[0], counted in ((0, 0), (100 * MiB, 100 * MiB), (1 << 40, 128 * MiB)):
        budget.changed()
        assert sum(window.limit for window in windows) == pytest.approx(256 * MiB - elsewhere - counted, abs=8)
    later = Budget(256 * MiB, given=True)  # memory that was free before the start is reusable
    windows = [later.window(f"map {i}") for i in range(8)]
    assert sum(window.limit for window in windows) == pytest.approx(256 * MiB - elsewhere, abs=8)


@pytest.fixture
def arena(kept):
    """Return the arena of a process without another pool."""
    found = Arena()
    kept.add("for reuse", found)
    return found


def test_an_arena_keeps_an_eighth_of_the_smallest_budget_and_nothing_when_it_is_short(arena):
    lent = [arena.empty((SMALLEST,), np.uint8) for _ in range(20)]
    budget = Budget(64 * SMALLEST, given=True)
    account, window = budget.account("shuffle", "shuffle"), budget.window("map")
    lent.clear()
    assert arena.idle_bytes() == 8 * SMALLEST
    account.hold(60 * SMALLEST)
    assert window.limit <= 4 * SMALLEST
    assert arena.idle_bytes() == 0
    account.close()
    assert window.limit == 64 * SMALLEST
    lent = [arena.empty((SMALLEST,), np.uint8) for _ in range(20)]
    lent.clear()
    assert arena.idle_bytes() == 8 * SMALLEST
    del budget, account, window
    lent = [arena.empty((SMALLEST,), np.uint8) for _ in range(20)]
    lent.clear()
    assert arena.idle_bytes() == 20 * SMALLEST


def test_idle_buffers_are_taken_off_the_windows(arena):
    budget = Budget(640 * SMALLEST, given=True)
    window = budget.window("map")
    assert window.limit == 640 * SMALLEST
    lent = [arena.empty((16, SMALLEST), np.uint8) for _ in range(4)]
    assert window.limit == 640 * SMALLEST
    lent.clear()
    assert arena.idle_bytes() == 64 * SMALLEST
    assert 560 * SMALLEST <= window.limit <= 576 * SMALLEST
    arena.clear()
    assert window.limit == 640 * SMALLEST


def test_an_arena_tells_and_obeys():
    told, arena = [], Arena()
    arena.watch(told.append)
    for _ in range(3):
        arena.empty((SMALLEST,), np.uint8)
    arena.bound(0)
    arena.empty((SMALLEST,), np.uint8)
    assert told == [0, SMALLEST, 0, SMALLEST, 0, SMALLEST, 0, 0]
    with arena._lock:
        others = threading.Thread(target=arena.bound, args=(10 * SMALLEST,))
        others.start()
        others.join()
    arena.empty((SMALLEST,), np.uint8)
    assert told[-1] == SMALLEST
    arena.bound(0)
    assert told[-1] == 0
    assert arena.idle_bytes() == 0


class Part:
    lasts = True  # nothing failed for lack of memory

    def __init__(self, nbytes):
        self.nbytes = nbytes


class Reader:
    """Owns parts of a file."""


def test_recent_parts_tell_and_obey():
    told, recent = [], Recent(100)
    recent.watch(told.append)
    reader = Reader()
    recent.get(reader, 0, lambda: [Part(60)])
    recent.at(reader, 30)
    recent.get(reader, 1, lambda: [Part(40)])
    recent.bound(50)
    assert told == [0, 60, 90, 130, 70]
    recent.at(reader, 0)
    del reader
    assert told[-1] == 0


def test_the_process_s_pools_are_counted():
    assert {kind for kind, _ in KEPT.held()} == {"for reuse", "row groups", "shared, for reuse", "in heaps, for reuse"}
    reader = Reader()
    before = dict(KEPT.held())["row groups"]
    RECENT.at(reader, 1234)
    assert dict(KEPT.held())["row groups"] == before + 1234
    del reader
    assert dict(KEPT.held())["row groups"] == before


def test_what_is_listed_stands_while_others_die_in_collections_inside():
    """The thresholds cause a collection at nearly every allocation, also inside the listing."""
    before = gc.get_threshold()
    known = Weakly()
    kept = [Mortal() for _ in range(20)]
    for item in kept:
        known.add(item)
    gc.set_threshold(1, 1, 1)
    try:
        for _ in range(2000):
            cycle = Mortal()
            cycle.itself = cycle
            known.add(cycle)
            del cycle
            assert set(kept) <= set(known.listed())
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert known.listed() == kept


class Mortal:
    """An object with weak references that a cycle keeps until a collection."""
