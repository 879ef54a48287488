"""LmdbDataset: pairs by number, resumes, damaged and hostile files, and the library's own files."""

from __future__ import annotations

import gzip
import pickle
import struct
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.errors import DataLossError, InvalidArgumentError, NotFoundError, PenstockError, UnimplementedError
from penstock.sources.lmdb import LmdbFile

# Written by lmdb 3.0.0 (LMDB 0.9.36): two levels of pages, every sixth value on overflow pages.
SAMPLE = gzip.decompress((Path(__file__).parents[1] / "data" / "lmdb.mdb.gz").read_bytes())
PAIRS = [
    (b"%06d" % i + b"k" * (i % 7 * 20), bytes([65 + i % 20]) * (i * 7 % 50 if i % 6 else 2100 + 40 * i))
    for i in range(60)
]
PAGE = 4096


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data.mdb").write_bytes(SAMPLE)
    return tmp_path


def test_pairs_have_numbers_and_come_in_the_order_of_their_keys(folder):
    ds = ps.LmdbDataset(folder)
    assert list(ds) == PAIRS == list(ps.LmdbDataset(str(folder / "data.mdb")))
    assert len(ds) == 60
    assert [ds[i] for i in (0, 31, -1)] == [PAIRS[i] for i in (0, 31, 59)]
    assert sorted(ds.shuffle(ps.ALL, seed=1)) == PAIRS
    assert list(ds.shuffle(ps.ALL, seed=1)) != PAIRS
    assert list(pickle.loads(pickle.dumps(ds))) == PAIRS
    assert list(ps.LmdbDataset([folder, folder])) == PAIRS * 2
    assert sorted(ps.LmdbDataset([folder, folder], num_parallel_reads=2)) == sorted(PAIRS * 2)


def test_a_pass_goes_on_in_another_one(folder):
    ds = ps.LmdbDataset(folder)
    first = iter(ds)
    before = [next(first) for _ in range(33)]
    then = iter(ds)
    then.load_state_dict(first.state_dict())
    assert before + list(then) == PAIRS


def test_worker_processes_share_it(folder):
    ds = ps.LmdbDataset(folder)
    assert len(ds) == 60  # the file is open here
    lengths = ds.map(lambda key, value: len(value), num_parallel_calls=2)
    with lengths.iterator(executor="process") as found:
        assert [int(length) for length in found] == [len(value) for _, value in PAIRS]


def test_what_is_not_there(tmp_path):
    with pytest.raises(NotFoundError, match="There is no LMDB database"):
        list(ps.LmdbDataset(tmp_path / "missing"))
    with pytest.raises(NotFoundError):
        list(ps.LmdbDataset(tmp_path))
    (tmp_path / "data.mdb").write_bytes(b"no database" * 1000)
    with pytest.raises(DataLossError, match="no LMDB database"):
        list(ps.LmdbDataset(tmp_path))
    with pytest.raises(InvalidArgumentError, match="Only local"):
        list(ps.LmdbDataset("s3://bucket/a"))


def test_a_file_that_is_cut_short_gives_what_is_whole_or_says_so(folder):
    for size in range(0, len(SAMPLE), PAGE // 2):
        (folder / "data.mdb").write_bytes(SAMPLE[:size])
        ds = ps.LmdbDataset(folder)
        found = list(ds.ignore_errors())
        assert set(found) <= set(PAIRS)
        if found == PAIRS:  # the last page is not full
            assert size > len(SAMPLE) - PAGE
            continue
        with pytest.raises(DataLossError) as raised:
            list(ds)
        assert raised.value.context.file == str(folder / "data.mdb")


def test_a_file_that_is_cut_short_while_it_is_read(folder):
    ds = ps.LmdbDataset(folder)
    assert len(ds) == 60
    with (folder / "data.mdb").open("r+b") as file:
        file.truncate(3 * PAGE)
    with pytest.raises(DataLossError, match="ends before its time"):
        [ds[i] for i in range(60)]


def _pages(kind):
    return [n for n in range(2, len(SAMPLE) // PAGE) if struct.unpack_from("<Q2xH", SAMPLE, n * PAGE) == (n, kind)]


def test_a_damaged_value_fails_alone(folder):
    content = bytearray(SAMPLE)
    content[_pages(4)[0] * PAGE + 10] ^= 0xFF  # its flags
    (folder / "data.mdb").write_bytes(content)
    ds = ps.LmdbDataset(folder)
    assert len(ds) == 60
    assert len(list(ds.ignore_errors())) == 59
    with pytest.raises(DataLossError, match="no value where there should be one"):
        list(ds)


def test_pages_that_lead_in_a_circle(folder):
    content = bytearray(SAMPLE)
    (branch,) = _pages(1)
    for slot in range(3):
        (place,) = struct.unpack_from("<H", content, branch * PAGE + 16 + 2 * slot)
        struct.pack_into("<HH", content, branch * PAGE + place, branch, 0)
    (folder / "data.mdb").write_bytes(content)
    with pytest.raises(DataLossError, match="damaged"):
        list(ps.LmdbDataset(folder))


def test_pages_that_lead_to_one_another_twice_take_no_longer(folder):
    """A tree of 30 levels with two references to the next page in each page would take years."""
    content = bytearray(SAMPLE)
    (branch,) = _pages(1)
    for heading in (0, PAGE):  # its size, its levels
        struct.pack_into("<H", content, heading + 16 + 24 + 48 + 6, 32)
    first = len(content) // PAGE
    for level in range(30):
        page = bytearray(SAMPLE[branch * PAGE : (branch + 1) * PAGE])
        struct.pack_into("<Q", page, 0, first + level - 1 if level else branch)
        for slot in range(2):
            (place,) = struct.unpack_from("<H", page, 16 + 2 * slot)
            struct.pack_into("<HH", page, place, first + level, 0)
        if level == 29:  # a page without entries
            struct.pack_into("<H", page, 12, 16)
        if level:
            content += page
        else:
            content[branch * PAGE : (branch + 1) * PAGE] = page
    (folder / "data.mdb").write_bytes(content)
    with pytest.raises(DataLossError, match="in a circle"):
        list(ps.LmdbDataset(folder))


@given(places=st.lists(st.tuples(st.integers(0, len(SAMPLE) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_damage_anywhere_is_an_entry_or_an_error_of_ours(places):
    content = bytearray(SAMPLE)
    for place, value in places:
        content[place] = value
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(content)
        try:
            found = LmdbFile(file.name)
        except PenstockError:
            return
        for row in range(found.size):
            try:
                assert isinstance(found.read([row])[0].value, bytes)
            except PenstockError as error:
                assert error.context.file == file.name  # noqa: PT017 - not each row fails


# -- the library ------------------------------------------------------------------------------------------------------


def _write(folder, pairs, name=None, **options):
    lmdb = pytest.importorskip("lmdb")
    with lmdb.open(str(folder), map_size=1 << 26, max_dbs=3) as environment:
        database = environment.open_db(name, **options)
        with environment.begin(write=True, db=database) as transaction:
            for key, value in pairs:
                transaction.put(key, value)


def test_a_database_by_its_name(tmp_path):
    _write(tmp_path, PAIRS, b"train")
    _write(tmp_path, PAIRS[:7], b"test")
    assert list(ps.LmdbDataset(tmp_path, database="train")) == PAIRS
    assert list(ps.LmdbDataset(tmp_path, database=b"test")) == PAIRS[:7]
    with pytest.raises(InvalidArgumentError, match="database='test'"):
        list(ps.LmdbDataset(tmp_path))
    with pytest.raises(InvalidArgumentError, match="There is 'test', 'train'"):
        list(ps.LmdbDataset(tmp_path, database="val"))


def test_several_values_for_a_key_are_not_read(tmp_path):
    _write(tmp_path, [(b"a", b"1"), (b"a", b"2")], b"several", dupsort=True)
    with pytest.raises(UnimplementedError, match="several values for a key"):
        list(ps.LmdbDataset(tmp_path, database="several"))


def test_a_tree_of_many_levels_and_what_was_deleted(tmp_path):
    lmdb = pytest.importorskip("lmdb")
    pairs = {b"%06d" % i * 30: b"%d" % i for i in np.random.default_rng(1).permutation(8000).tolist()}
    _write(tmp_path, pairs.items())
    with lmdb.open(str(tmp_path), map_size=1 << 26) as environment:
        for part in range(3):
            with environment.begin(write=True) as transaction:
                for key in list(pairs)[part::3]:
                    transaction.delete(key)
                    del pairs[key]
    assert list(ps.LmdbDataset(tmp_path)) == sorted(pairs.items())


@settings(max_examples=25)
@given(pairs=st.dictionaries(st.binary(min_size=1, max_size=500), st.binary(max_size=6000), max_size=40))
def test_what_the_library_writes(pairs):
    with tempfile.TemporaryDirectory() as folder:
        _write(folder, pairs.items())
        assert list(ps.LmdbDataset(folder)) == sorted(pairs.items())
