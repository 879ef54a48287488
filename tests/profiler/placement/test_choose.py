"""The place of a cache follows from figures alone."""

import pytest

from penstock.profiler.placement.choose import Room, Spot, choose

GB = 10**9
PLENTY = Room(memory=100 * GB, disk=1000 * GB)
MEMORY, DISK = Room(memory=100 * GB), Room(disk=1000 * GB)
READ = Spot("scan#1", "TFRecordDataset", seconds=0.2, nbytes=0.1 * GB)
DECODE = Spot("map#1", "map(decode)", seconds=10.0, nbytes=1 * GB)
WIDEN = Spot("map#2", "map(widen)", seconds=10.1, nbytes=4 * GB)
SHUFFLE = Spot("shuffle#1", "shuffle(100)", seconds=10.2, nbytes=4 * GB, why_not="has another order in every epoch")
PLAN = [READ, DECODE, WIDEN, SHUFFLE]


def test_of_those_that_save_alike_the_smallest_is_chosen():
    found = choose(PLAN, MEMORY, 1)
    assert (found.spot, found.kind, found.place) == (DECODE, "memory", "memory:map#1")
    assert found.saved == pytest.approx(10 - 1 / 8)


def test_more_bytes_are_worth_it_where_they_save_more():
    dear = Spot("map#2", "map(dear)", seconds=20.0, nbytes=4 * GB)
    assert choose([READ, DECODE, dear], MEMORY, 1).spot is dear


def test_memory_comes_before_disk_where_there_is_room_for_either():
    assert choose(PLAN, PLENTY, 1).kind == "memory"
    assert choose(PLAN, Room(memory=GB // 2, disk=1000 * GB), 5).place == "disk:map#1"
    assert choose(PLAN, DISK, 5).place == "disk:map#1"


def test_what_does_not_fit_is_left_out():
    assert choose([READ, DECODE], Room(memory=GB // 2), 1).spot is None
    assert "map#1 needs 1 GB, but there is room for 500 MB memory" in choose([DECODE], Room(memory=GB // 2), 1).reason
    assert choose([READ, DECODE], Room(memory=GB - 1), 1).spot is None
    assert choose([READ, DECODE], Room(memory=GB), 1).spot is DECODE


def test_nothing_random_is_chosen_however_much_it_would_save():
    costly = Spot("shuffle#1", "shuffle(9)", seconds=1000.0, nbytes=1.0, why_not="has another order in every epoch")
    assert choose([costly], PLENTY, 9).spot is None
    assert choose([costly], PLENTY, 9).reason == "shuffle#1 has another order in every epoch"


def test_writing_has_to_be_earned_back_by_as_many_epochs_as_were_seen():
    slow = Spot("map#1", "map(f)", seconds=2.0, nbytes=1 * GB)  # on disk: 3.3 s to write, 1 s to read
    assert [choose([slow], DISK, epochs).spot is slow for epochs in (1, 2, 3, 4, 5)] == [False] * 3 + [True] * 2
    assert "1 GB about as much after 2 epochs" in choose([slow], DISK, 2).reason


def test_what_is_read_as_slowly_as_it_is_made_stays_uncached():
    assert choose([Spot("map#1", "map(f)", seconds=0.99, nbytes=1 * GB)], DISK, 1000).spot is None


@pytest.mark.parametrize("seconds", [0.001, 0.4])
def test_little_is_not_worth_it(seconds):
    dear = Spot("map#1", "map(random)", seconds=10.0, nbytes=1e6, why_not="draws from random.random")
    found = choose([Spot("scan#1", "range", seconds=seconds, nbytes=8e3), dear], MEMORY, 100)
    assert found.spot is None
    assert found.reason == f"the steps up to scan#1 take only {seconds} s of CPU time in an iteration"


def test_nothing_measured_and_nowhere_to_go():
    assert choose([], PLENTY, 1).reason == "no step was measured"
    assert choose([Spot("map#1", "map(f)", seconds=10.0)], PLENTY, 1).spot is None
    assert choose(PLAN, Room(), 1).spot is None


def test_the_order_of_the_figures_does_not_matter():
    assert {choose(order, PLENTY, 3).place for order in (PLAN, PLAN[::-1], [*PLAN[2:], *PLAN[:2]])} == {"memory:map#1"}
