"""Memory shared with a worker is reused after its last read, bounded, without a name, and private after a fork."""

import os
import socket
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.block import shared_memory
from penstock.block.footprint import leased
from penstock.block.shared_memory import RegionOwner, SharedMemory, mapped, shared_bytes

pytestmark = pytest.mark.skipif(not hasattr(socket, "send_fds"), reason="no descriptors can be sent here")

KIB = 1 << 10
OPEN_FILES = Path("/proc/self/fd")
MIB = 1 << 20


@pytest.fixture(params=["memfd", "file"])
def memory(request, monkeypatch):
    if request.param == "memfd" and not hasattr(os, "memfd_create"):
        pytest.skip("no memfd here")
    if request.param == "file":
        monkeypatch.delattr(os, "memfd_create", raising=False)
    return SharedMemory(1 << 32)


def test_a_lease_ends_with_the_last_view():
    ended = []
    array = leased(np.zeros(100, np.uint8), lambda: ended.append(True))
    assert type(array) is np.ndarray
    parts = [array[10:20].view(np.uint16).reshape(5, 1), np.frombuffer(array, np.uint32), memoryview(array)[3:]]
    del array
    while parts:
        assert not ended
        parts.pop()
    assert ended == [True]


def test_both_sides_see_the_same_bytes(memory):
    region = memory.take(RegionOwner(), 100 * KIB)
    copy = os.dup(region.descriptor)
    region.sent()
    _, theirs = mapped(copy, region.nbytes)
    os.close(copy)
    theirs[7] = 77
    assert region.array[7] == 77
    region.array[8] = 88
    assert theirs[8] == 88


def test_a_region_is_used_again_when_the_last_array_over_it_is_gone(memory):
    owner = RegionOwner()
    region = memory.take(owner, 100 * KIB)
    part = memory.lend(region)[5:9]
    other = memory.take(owner, 100 * KIB)
    assert other is not region
    assert memory.bytes() == (region.nbytes + other.nbytes, 0)
    del part
    assert memory.bytes() == (other.nbytes, region.nbytes)
    assert memory.take(owner, 90 * KIB) is region


def test_a_region_is_its_workers_alone(memory):
    region = memory.take(RegionOwner(), 100 * KIB)
    memory.give_back(region)
    assert memory.take(RegionOwner(), 100 * KIB) is not region


def test_the_smallest_region_that_will_do_is_taken(memory):
    owner = RegionOwner()
    regions = [memory.take(owner, size * MIB) for size in (8, 2, 1)]
    for region in regions:
        memory.give_back(region)
    assert memory.take(owner, 3 * MIB // 2) is regions[1]
    assert memory.take(owner, MIB // 8) not in regions  # all regions are far too large


@given(st.integers(1, 1 << 34))
def test_sizes_are_few_and_waste_little(nbytes):
    rounded = shared_memory._rounded(nbytes)
    assert nbytes <= rounded <= max(1.25 * nbytes + 1, 1 << 16)
    assert rounded == shared_memory._rounded(rounded)


def test_idle_memory_is_bounded_and_the_oldest_goes():
    memory, owner = SharedMemory(128 * MIB), RegionOwner()  # a 32nd may be idle
    regions = [memory.take(owner, MIB) for _ in range(6)]
    for region in regions:
        memory.give_back(region)
    assert memory.bytes() == (0, 4 * MIB)
    assert owner.dropped == [regions[0].number, regions[1].number]


def open_files():
    return len(list(OPEN_FILES.iterdir()))


@pytest.mark.skipif(not OPEN_FILES.is_dir(), reason="the system does not show open files")
def test_few_idle_regions_of_an_owner_are_kept_and_the_others_hold_no_open_file(memory):
    owners = [RegionOwner(), RegionOwner()]
    before = open_files()
    regions = [[memory.take(owner, 64 * KIB) for _ in range(100)] for owner in owners]
    arrays = [memory.lend(region) for those in regions for region in those]
    while arrays:
        arrays.pop(0)
    most = shared_memory._IDLE_REGIONS
    assert [owner.idle for owner in owners] == [most, most]
    assert [len(owner.dropped) for owner in owners] == [100 - most] * 2
    # includes other processes that know the dropped regions: two files each
    assert open_files() <= before + 2 * 2 * most
    kept = {region.number for region in regions[0][-most:]}  # the regions used last
    assert {memory.take(owners[0], 64 * KIB).number for _ in range(most)} == kept
    assert owners[0].idle == 0
    assert memory.take(owners[0], 64 * KIB).number not in kept


def test_there_is_no_more_than_the_limit_and_idle_regions_make_room():
    memory, one, other = SharedMemory(64 * MIB), RegionOwner(), RegionOwner()  # an eighth may be idle
    first = memory.take(one, 2 * MIB)
    held = [memory.take(one, 2 * MIB) for _ in range(3)]
    assert memory.take(other, MIB) is None
    assert memory.scarce()
    memory.give_back(first)
    assert memory.take(other, MIB) is not None
    assert one.dropped == [first.number]
    del held


def test_the_number_of_regions_is_bounded(monkeypatch):
    monkeypatch.setattr(shared_memory, "_MOST_REGIONS", 10)
    memory, owner = SharedMemory(1 << 40), RegionOwner()
    regions = [memory.take(owner, KIB) for _ in range(11)]
    assert regions.pop() is None
    assert len(set(regions)) == 10


def test_what_a_worker_wrote_outlives_it(memory):
    owner = RegionOwner()
    written, asked, idle = (memory.take(owner, 100 * KIB) for _ in range(3))
    written.array[:] = 5
    result = memory.lend(written)[:10]
    memory.give_back(idle)
    del asked
    memory.forget(owner)
    assert memory.bytes() == (written.nbytes, 0)
    assert (result == 5).all()
    del result
    assert memory.bytes() == (0, 0)


def test_clearing_lets_go_of_idle_memory(memory):
    owner = RegionOwner()
    region = memory.take(owner, MIB)
    memory.give_back(region)
    assert shared_bytes()[1] >= MIB
    memory.clear()
    assert memory.bytes() == (0, 0)
    assert owner.dropped == [region.number]


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


DESCRIPTORS, NAMED = Path("/proc/self/fd"), Path("/dev/shm")


@pytest.mark.skipif(not DESCRIPTORS.is_dir(), reason="counts descriptors where Linux shows them")
def test_nothing_stays_open_and_nothing_has_a_name(memory):
    before, names = len(names_in(DESCRIPTORS)), names_in(NAMED)
    owner = RegionOwner()
    regions = [memory.take(owner, MIB) for _ in range(20)]
    assert names_in(NAMED) == names
    for region in regions:
        memory.give_back(region)
    memory.clear()
    del regions, region
    assert len(names_in(DESCRIPTORS)) == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_after_a_fork_arrays_belong_to_each_side_alone(memory):
    owner = RegionOwner()
    region = memory.take(owner, 100 * KIB)
    array = memory.lend(region)[:8]
    array[:] = range(8)
    ours, theirs = socket.socketpair()
    child = os.fork()
    if not child:  # assertions must not leave this branch
        ours.close()
        theirs.recv(1)  # the parent has written by now
        seen = bytes(array)
        array[:] = 99
        idle_before = memory.bytes()
        del array
        theirs.send(seen + bytes([idle_before == (0, 0)]))
        os._exit(0)
    theirs.close()
    array[0] = 50
    ours.send(b"x")
    said = ours.recv(100)
    ours.close()
    assert os.waitpid(child, 0)[1] == 0
    assert list(said) == [*range(8), 1]
    assert array.tolist() == [50, 1, 2, 3, 4, 5, 6, 7]
    del array
    assert memory.take(owner, 100 * KIB) is not region  # the child may still read it
