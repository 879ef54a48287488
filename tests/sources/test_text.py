"""Lines of text files."""

import gzip
import io
import random
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sources.passes import everything, kinds

import penstock as ps
from penstock import errors
from penstock.io import storage
from penstock.io.window import LineReader, whole_lines
from penstock.sources.text import TextLineSource
from penstock.testing import assert_resumes_exactly

COMPRESS = {None: bytes, "GZIP": gzip.compress, "ZLIB": zlib.compress}


def expected(content):
    *ended, last = content.split(b"\n")
    lines = [line[:-1] if line.endswith(b"\r") else line for line in ended]
    return lines + [last] * bool(last)


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize("content", [b"", b"\n", b"a", b"a\n", b"a\n\n", b"a\r\nb\rc\n\r\nlast\r", b"\r\n" * 3])
def test_lines_end_where_they_should(tmp_path, content, compression):
    path = tmp_path / "a.txt"
    path.write_bytes(COMPRESS[compression](content))
    assert everything(ps.TextLineDataset(path, compression)) == expected(content)


def test_tf_data_drops_every_carriage_return_and_this_keeps_those_inside(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"a\r\nb\rc\nlast\r")
    assert list(ps.TextLineDataset(path)) == [b"a", b"b\rc", b"last\r"]  # tf.data: a, bc, last


@given(st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r", b"\r\n", b"x" * 50]), max_size=40), st.integers(1, 70))
def test_any_content_by_any_pieces(tmp_path_factory, parts, buffer_size):
    content = b"".join(parts)
    path = tmp_path_factory.mktemp("lines") / "a.txt"
    path.write_bytes(gzip.compress(content))
    reader = LineReader(path, compression_type="GZIP", buffer_size=buffer_size)
    found = []
    while (chunk := reader.read(3)) is not None:
        assert [content[at:].startswith(line) for at, line in zip(chunk.offsets, chunk.records(), strict=True)]
        found += chunk.records()
    reader.close()
    assert found == expected(content)


def test_lines_longer_than_what_is_looked_through_at_once(tmp_path):
    path = tmp_path / "a.txt"
    lines = [bytes([97 + i]) * size for i, size in enumerate([3_000_000, 1, 0, 1_500_000, 5])]
    path.write_bytes(b"\n".join(lines))
    assert list(ps.TextLineDataset(path)) == lines
    path.write_bytes(gzip.compress(b"\n".join(lines)))
    assert list(ps.TextLineDataset(path, "GZIP", buffer_size=1000)) == lines


def test_as_many_lines_as_are_asked_for_and_there(tmp_path):
    path = tmp_path / "a.txt"
    lines = [b"x" * 300 + b"%d" % i for i in range(5000)]
    path.write_bytes(b"\n".join(lines))
    reader = LineReader(path)
    assert [reader.read(count).records() for count in (2, 4096)] == [lines[:2], lines[2:4098]]
    assert reader.left == len(b"\n".join(lines[4098:]))
    reader.close()
    path.write_bytes(gzip.compress(b"\n".join(lines)))
    streamed = LineReader(path, compression_type="GZIP", buffer_size=3050)
    assert streamed.read(4096).records() == lines[:10]  # for a larger request it would wait
    streamed.close()


def test_nothing_is_copied_out_of_a_mapped_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\ntwo\nthree\n")
    reader = ps.TextLineDataset(path)._plan.source.open()
    first, second = reader.read(2), reader.read(9)
    assert first.columns[0].buffers[0] is second.columns[0].buffers[0]
    reader.close()
    assert first.elements() == [b"one", b"two"]
    assert [second.origin.at(0), first.origin.at(1)] == [(str(path), 8), (str(path), 4)]


def test_files_come_one_after_the_other_or_in_turn(tmp_path):
    paths = []
    for name, count in (("a", 3), ("b", 0), ("c", 1), ("d", 2)):
        path = tmp_path / name
        path.write_text("".join(f"{name}{i}\n" for i in range(count)))
        paths.append(path)
    apart = [b"a0", b"a1", b"a2", b"c0", b"d0", b"d1"]
    assert everything(ps.TextLineDataset(paths)) == apart
    assert list(ps.TextLineDataset(ps.Dataset.list_files(tmp_path / "*", shuffle=False))) == apart
    in_turn = [b"a0", b"a1", b"c0", b"a2", b"d0", b"d1"]
    for names in (paths, list(map(str, paths)), [str(path).encode() for path in paths]):
        ds = ps.TextLineDataset(names, num_parallel_reads=2)
        assert list(ds) == in_turn
        assert ds.cardinality() == ps.UNKNOWN_CARDINALITY
    assert_resumes_exactly(ps.TextLineDataset(paths, num_parallel_reads=2))
    assert ps.TextLineDataset([]).cardinality() == 0
    assert list(ps.TextLineDataset([])) == []
    assert ps.TextLineDataset(paths).element_spec == ps.TensorSpec((), bytes)


def test_a_file_that_is_missing_takes_the_place_of_one_element(tmp_path):
    (tmp_path / "a").write_text("1\n2\n")
    (tmp_path / "c").write_text("3\n")
    found = everything(ps.TextLineDataset([tmp_path / name for name in ("a", "b", "c", ".")]))
    assert kinds(found) == [b"1", b"2", ("NotFoundError", None), b"3", ("InvalidArgumentError", None)]
    assert str(tmp_path / "b") in str(found[2])


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_damaged_compression_is_one_failure_and_the_next_file_follows(tmp_path, compression):
    rng = random.Random(0)
    lines = [rng.randbytes(40).hex().encode() for _ in range(200)]
    whole = COMPRESS[compression](b"\n".join(lines))
    (tmp_path / "a").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "b").write_bytes(COMPRESS[compression](b"last"))
    found = everything(ps.TextLineDataset([tmp_path / "a", tmp_path / "b"], compression, buffer_size=100))
    assert len(found) > 50
    assert found[:-2] == lines[: len(found) - 2]
    assert isinstance(found[-2], errors.DataLossError)
    assert found[-1] == b"last"


def test_a_url(tmp_path):
    import fsspec

    with fsspec.open("memory:///lines.txt", "wb") as file:
        file.write(b"one\r\ntwo\nthree")
    assert everything(ps.TextLineDataset("memory:///lines.txt", buffer_size=16)) == [b"one", b"two", b"three"]


def test_a_file_that_became_shorter_is_not_resumed(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\ntwo\n")
    source = ps.TextLineDataset([path, path])._plan.source
    reader = source.open()
    reader.read(1)
    reader.read(1)
    position = reader.position()
    reader.close()
    path.write_bytes(b"on")
    resumed = source.open(position)
    with pytest.raises(errors.DataLossError, match="was to continue at byte 8"):
        resumed.read(1)
    assert resumed.read(9).elements() == [b"on"]


def test_the_lines_of_a_batch_say_where_they_come_from(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"1\n2\nx\n")
    with pytest.raises(ValueError, match="invalid literal") as caught:
        list(ps.TextLineDataset(path).map(lambda line: np.int64(int(line))))
    assert f"in file {path} at byte 4" in caught.value.__notes__[0]


class Failing(io.BytesIO):
    """A connection that breaks after its content."""

    def read(self, size=-1):
        found = super().read(size)
        if not found:
            raise ConnectionResetError("the connection was lost")
        return found


def test_a_lost_connection_is_one_failure_behind_what_arrived(monkeypatch):
    contents = {"memory:///a": Failing, "memory:///b": io.BytesIO}
    monkeypatch.setattr(storage, "open_read", lambda name: contents[name](b"one\ntwo\nthr"))
    monkeypatch.setattr(storage, "size", lambda name: 11)
    found = everything(ps.TextLineDataset(list(contents), buffer_size=16))
    assert [item for item in found if isinstance(item, bytes)] == [b"one", b"two", b"one", b"two", b"thr"]
    assert isinstance(found[2], ConnectionResetError)


@given(st.lists(st.text(alphabet="a\r\n", max_size=9).map(str.encode), min_size=1, max_size=6))
def test_the_lines_of_several_files_are_those_of_each(contents):
    found = whole_lines(contents)
    if any(b"\r" in content and b"\n" not in content for content in contents):
        assert found is None
        return
    chunk, counts = found
    assert counts.tolist() == [len(expected(content)) for content in contents]
    assert chunk.records() == [line for content in contents for line in expected(content)]
    at = 0
    for content, count in zip(contents, counts.tolist(), strict=True):
        for line, offset in zip(chunk.records()[at : at + count], chunk.offsets[at : at + count].tolist(), strict=True):
            assert content[offset : offset + len(line)] == line
            assert offset == 0 or content[offset - 1 : offset] == b"\n"
        at += count


@pytest.mark.parametrize(("size", "buffers"), [(1 << 15, 1), ((1 << 15) + 1, 2)])
def test_small_files_that_are_read_together_share_buffers_of_64_kibibytes(size, buffers):
    sources = [TextLineSource((name,)) for name in ("a", "b")]
    block, counts = TextLineSource.together(sources, [b"a" * (size - 1) + b"\n", b"b" * (size - 1) + b"\n"])
    assert counts == [1, 1]
    assert [len(line) for line in block.elements()] == [size - 1, size - 1]
    assert len({id(buffer) for buffer in block.columns[0].buffers}) == buffers
