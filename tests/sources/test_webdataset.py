"""Samples of tar archives, and the walk over archives: equal to Python's tarfile and the shell."""

import gzip
import io
import shutil
import subprocess
import tarfile

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.golden.golden import assert_golden
from tests.sources.passes import everything, kinds

import penstock as ps
from penstock import errors
from penstock.dataset.sample_files import expand_braces
from penstock.sources.webdataset import BLOCK, CutShort, TarDamage, read_member

FORMATS = {"pax": tarfile.PAX_FORMAT, "gnu": tarfile.GNU_FORMAT, "ustar": tarfile.USTAR_FORMAT}


def archive(members, kind="pax"):
    """Build a tar archive of (name, content) pairs, TarInfo objects without content, and (TarInfo, content) pairs."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=FORMATS[kind]) as writer:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                writer.addfile(member)
                continue
            info, content = member
            if isinstance(info, str):
                info = tarfile.TarInfo(info)
            info.size = len(content)
            writer.addfile(info, io.BytesIO(content))
    return out.getvalue()


def special(name, kind, target=""):
    found = tarfile.TarInfo(name)
    found.type, found.linkname = kind, target
    return found


# -- the archive


def walked(content):
    """Return (name, content) of all regular files, by our own walk."""
    buffer = np.frombuffer(content, np.uint8)
    found, at = [], 0
    while (member := read_member(buffer, at)) is not None:
        if member.is_file:
            found.append((member.name, content[member.start : member.start + member.size]))
        assert member.begin == at
        at = member.stop
    return found


def by_tarfile(content):
    with tarfile.open(fileobj=io.BytesIO(content)) as reader:
        return [(os_bytes(member.name), reader.extractfile(member).read()) for member in reader if member.isfile()]


def os_bytes(name):
    return name.encode("utf-8", "surrogateescape")


PARTS = st.text(st.characters(codec="utf-8", exclude_characters="\0/"), min_size=1, max_size=60)
NAMES = st.lists(PARTS, min_size=1, max_size=6).map("/".join).filter(lambda name: name.strip("./") and name[-1] != "/")


@pytest.mark.parametrize("kind", ["pax", "gnu"])
@given(members=st.lists(st.tuples(NAMES, st.binary(max_size=1100)), max_size=5))
@example(members=[("a" * 100, b"1"), ("b" * 101, b"2"), ("c/" * 90 + "d", b"3"), ("é" * 99, b"4"), ("x", b"")])
def test_every_archive_is_walked_as_tarfile_does(kind, members):
    content = archive(members, kind)
    assert walked(content) == by_tarfile(content) == [(name.encode(), data) for name, data in members]


def test_long_names_of_the_oldest_format_are_put_together():
    content = archive([("d" * 80 + "/" + "e" * 90, b"x")], "ustar")
    assert walked(content) == [(b"d" * 80 + b"/" + b"e" * 90, b"x")]


def test_what_is_no_file_is_passed_over():
    members = [
        special("dir", tarfile.DIRTYPE), special("link", tarfile.SYMTYPE, "a.txt"), ("a.txt", b"x"),
        special("hard", tarfile.LNKTYPE, "a.txt"), special("pipe", tarfile.FIFOTYPE), ("b.txt", b"y"),
    ]  # fmt: skip
    for kind in FORMATS:
        assert walked(archive(members, kind)) == [(b"a.txt", b"x"), (b"b.txt", b"y")]


def test_sizes_in_all_spellings():
    head = bytearray(archive([("a", b"xyz")], "gnu")[:BLOCK])
    head[124:136] = b"\x80" + bytes(10) + b"\x03"
    stated = sum(head[:148]) + sum(head[156:]) + 8 * 32
    head[148:156] = b"%06o\0 " % stated
    assert walked(bytes(head) + b"xyz".ljust(BLOCK, b"\0")) == [(b"a", b"xyz")]
    pax = tarfile.TarInfo("a")
    pax.pax_headers = {"size": "3", "comment": "é = \n"}
    assert walked(archive([(pax, b"xyz")])) == [(b"a", b"xyz")]


def test_archives_of_the_tar_program(tmp_path):
    tar = shutil.which("tar")
    assert tar, "the tests need the tar program"
    for name in ("a", "b" * 120, "é"):
        (tmp_path / f"{name}.txt").write_text(name)
    for option in ("gnu", "pax", "ustar", "v7"):
        chosen = ["a.txt"] if option in ("ustar", "v7") else sorted(path.name for path in tmp_path.iterdir())
        made = subprocess.run([tar, f"--format={option}", "-c", *chosen], cwd=tmp_path, check=True, capture_output=True)
        assert walked(made.stdout) == by_tarfile(made.stdout)
        assert len(walked(made.stdout)) == len(chosen)


@pytest.mark.parametrize("at", [0, 100, 124, 148, 200, 511])
def test_a_changed_header_is_noticed(at):
    content = bytearray(archive([("a", b"x"), ("b", b"y")]))
    content[1024 + at] ^= 1
    with pytest.raises(TarDamage, match="checksum") as caught:
        walked(bytes(content))
    assert caught.value.at == 1024


@given(st.binary(min_size=BLOCK, max_size=3 * BLOCK))
def test_noise_is_no_archive(content):
    if any(content[:BLOCK]):
        with pytest.raises(TarDamage):
            read_member(np.frombuffer(content, np.uint8), 0)


@given(st.integers(1, 5 * BLOCK - 1))
def test_an_archive_cut_short_says_how_much_is_missing(size):
    """The reported size is enough for a new request: repeated requests reach the whole member."""
    content = archive([("n" * 150, b"x" * 700)])
    buffer = np.frombuffer(content, np.uint8)
    for _ in range(6):
        cut = shortfall(buffer[:size])
        if cut is None:
            assert read_member(buffer[:size], 0).size == 700
            return
        assert cut.wanted > size
        size = cut.wanted
    raise AssertionError


def shortfall(buffer):
    try:
        read_member(buffer, 0)
    except CutShort as cut:
        return cut


# -- samples


def shard(path, members, kind="pax", compress=False):
    content = archive(members, kind)
    path.write_bytes(gzip.compress(content) if compress else content)
    return str(path)


def samples(numbers, prefix="d/"):
    return [(f"{prefix}{i}.{suffix}", f"{suffix}{i}".encode() * i) for i in numbers for suffix in ("jpg", "cls")]


def wanted(numbers, prefix="d/"):
    return [
        {"__key__": f"{prefix}{i}".encode(), "jpg": f"jpg{i}".encode() * i, "cls": f"cls{i}".encode() * i}
        for i in numbers
    ]


@pytest.fixture(params=["plain", "gzip"])
def compress(request):
    return request.param == "gzip"


def test_samples_of_shards(tmp_path, compress):
    files = [shard(tmp_path / f"{i}.tar", samples(range(4 * i, 4 * i + n)), compress=compress) for i, n in
             enumerate((4, 0, 1))]  # fmt: skip
    assert everything(ps.WebDataset(files)) == wanted([0, 1, 2, 3, 8])
    assert everything(ps.WebDataset([])) == []
    assert ps.WebDataset(files).cardinality() == ps.UNKNOWN_CARDINALITY


def test_large_samples_of_compressed_shards(tmp_path):
    rng = np.random.default_rng(0)
    members = [(f"{i}.bin", rng.bytes(int(rng.integers(0, 600_000)))) for i in range(6)]
    found = everything(ps.WebDataset(shard(tmp_path / "a.tar.gz", members, compress=True)))
    assert [sample["bin"] for sample in found] == [content for _, content in members]


def test_names_are_cut_at_the_first_dot_of_the_last_part(tmp_path):
    members = [("a.b/0.1.JPG", b"x"), ("a.b/0.seg.png", b"y"), ("a.b/1.seg.png", b"z"), ("a.b/1.1.jpg", b"w")]
    found = everything(ps.WebDataset(shard(tmp_path / "a", members)))
    assert found == [
        {"__key__": b"a.b/0", "1.jpg": b"x", "seg.png": b"y"},
        {"__key__": b"a.b/1", "1.jpg": b"w", "seg.png": b"z"},
    ]


def test_files_that_belong_to_no_sample_are_left_out(tmp_path):
    members = [("README", b""), *samples([1])[:1], special("d/", tarfile.DIRTYPE), ("d/.hidden.jpg", b""),
               *samples([1])[1:], ("d/LICENSE", b"")]  # fmt: skip
    assert everything(ps.WebDataset(shard(tmp_path / "a", members))) == wanted([1])


def test_chosen_suffixes(tmp_path):
    members = [("1.cls", b"1"), ("1.jpg", b"a"), ("1.json", b"{}"), ("2.jpg", b"b"), ("2.cls", b"2"), ("3.jpg", b"c"),
               ("4.cls", b"4"), ("4.jpg", b"d")]  # fmt: skip
    ds = ps.WebDataset(shard(tmp_path / "a", members), suffixes=("jpg", ".CLS"))
    found = everything(ds)
    assert [list(sample) for sample in found if isinstance(sample, dict)] == [["__key__", "jpg", "cls"]] * 3
    assert kinds(found)[2] == ("InvalidTypeError", 7 * 512 * 1 + 3 * 512)
    assert ds.element_spec == {name: ps.TensorSpec((), bytes) for name in ("__key__", "jpg", "cls")}


def test_a_sample_with_other_suffixes_is_one_failure(tmp_path, compress):
    other = [("x.jpg", b""), ("y.jpg", b""), ("y.cls", b""), ("y.txt", b"")]
    files = [
        shard(tmp_path / "a", [*samples([1]), *other, *samples([2])], compress=compress),
        shard(tmp_path / "b", [*other[:1], *samples([3])], compress=compress),
    ]
    found = everything(ps.WebDataset(files))
    assert [item for item in found if isinstance(item, dict)] == wanted([1, 2, 3])
    assert [isinstance(item, errors.InvalidTypeError) for item in found] == [False, True, True, False, True, False]


def test_a_suffix_that_comes_twice_is_one_failure(tmp_path, compress):
    members = [("1.jpg", b""), ("1.JPG", b""), *samples([2])]
    found = everything(ps.WebDataset(shard(tmp_path / "a", members, compress=compress)))
    assert isinstance(found[0], errors.InvalidArgumentError)
    assert found[1:] == wanted([2])


def test_damages_are_one_failure_and_the_next_shard_follows(tmp_path):
    good = shard(tmp_path / "good", samples([1, 2]))
    content = archive(samples([1, 2, 3]))
    header = bytearray(content)
    header[4 * 1024 + 3] ^= 1  # the first file of the third sample
    inside = bytearray(content)
    inside[3 * 1024 + 3] ^= 1  # the second file of the second sample
    cases = {
        "header": (bytes(header), [1, 2], 4096),
        "inside": (bytes(inside), [1], 3072),
        "cut": (content[:4700], [1, 2], 4096),
        "noise": (b"noise" * 300, [], 0),
        "short": (b"short", [], 0),
    }
    for name, (damaged, before, offset) in cases.items():
        (tmp_path / name).write_bytes(damaged)
        found = everything(ps.WebDataset([good, tmp_path / name, tmp_path / "missing", good]))
        assert found[: 2 + len(before)] == wanted([1, 2]) + wanted(before), name
        assert kinds(found)[2 + len(before)] == ("DataLossError", offset)
        assert kinds(found)[3 + len(before)] == ("NotFoundError", None)
        assert found[4 + len(before) :] == wanted([1, 2])


def test_damaged_compression_is_one_failure(tmp_path):
    good = shard(tmp_path / "good", samples([1]), compress=True)
    whole = gzip.compress(archive(samples(range(1, 60))))
    (tmp_path / "cut").write_bytes(whole[: len(whole) // 2])
    found = everything(ps.WebDataset([tmp_path / "cut", good]))
    assert isinstance(found[-2], errors.DataLossError)
    assert found[-1:] == wanted([1])
    assert found[:-2] == wanted(range(1, len(found) - 1))


def test_an_archive_without_its_last_blocks_is_whole(tmp_path, compress):
    for kept in (4096, 4096 + 512):
        content = archive(samples([1, 2]))[:kept]
        (tmp_path / "a").write_bytes(gzip.compress(content) if compress else content)
        assert everything(ps.WebDataset(tmp_path / "a")) == wanted([1, 2])


@pytest.mark.parametrize("blocks", [1, 2, 8])
def test_zeros_over_a_header_do_not_end_an_archive_in_silence(tmp_path, compress, blocks):
    content = bytearray(archive(samples([1, 2, 3, 4, 5, 6])))
    content[2048 : 2048 + blocks * BLOCK] = bytes(blocks * BLOCK)
    (tmp_path / "a").write_bytes(gzip.compress(content) if compress else content)
    found = everything(ps.WebDataset([tmp_path / "a", shard(tmp_path / "good", samples([1]))]))
    assert found[:1] == wanted([1])
    assert kinds(found)[1] == ("DataLossError", 2048)
    assert "data follows" in str(found[1])
    assert found[2:] == wanted([1])


def test_archives_that_were_put_together_are_an_error(tmp_path, compress):
    content = archive(samples([1])) + archive(samples([2]))
    (tmp_path / "a").write_bytes(gzip.compress(content) if compress else content)
    found = everything(ps.WebDataset(tmp_path / "a"))
    assert found[:1] == wanted([1])
    assert kinds(found)[1:] == [("DataLossError", 2048)]


def test_each_flipped_bit_of_a_compressed_archive_is_an_error(tmp_path):
    content = archive(samples(range(1, 30)))
    whole = gzip.compress(content)
    for place in np.random.default_rng(0).integers(10, len(whole), 100):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        (tmp_path / "a").write_bytes(damaged)
        found = everything(ps.WebDataset(tmp_path / "a"))
        assert isinstance(found[-1], errors.PenstockError) or gzip.decompress(damaged) == content, place


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_a_link_in_a_sample_is_one_failure(tmp_path, kind, compress):
    members = [*samples([1]), special("d/2.jpg", kind, "d/1.jpg"), samples([2])[1], *samples([3])]
    path = shard(tmp_path / "a", members, compress=compress)
    found = everything(ps.WebDataset(path))
    assert [found[0], found[2]] == wanted([1, 3])
    assert kinds(found)[1] == ("InvalidArgumentError", 2048)
    assert "--hard-dereference" in str(found[1])
    assert len(everything(ps.WebDataset(path, suffixes=("cls",)))) == 3


def test_the_tar_program_makes_links_by_itself(tmp_path):
    (tmp_path / "1.jpg").write_text("one")
    (tmp_path / "2.jpg").hardlink_to(tmp_path / "1.jpg")
    tar = shutil.which("tar")
    for more, count in (((), 1), (("--hard-dereference",), 2)):
        subprocess.run([tar, "-cf", "a.tar", *more, "1.jpg", "2.jpg"], cwd=tmp_path, check=True)
        found = everything(ps.WebDataset(tmp_path / "a.tar"))
        assert len(found) == 2
        assert sum(isinstance(item, dict) for item in found) == count


def test_sparse_files_and_those_of_several_volumes_are_damages(tmp_path):
    pax = tarfile.TarInfo("GNUSparseFile.0/1.jpg")
    pax.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.name": "1.jpg"}
    for member, said in (((pax, b"0"), "sparse"), (special("1.jpg", b"M"), "another volume")):
        with pytest.raises(TarDamage, match=said):
            walked(archive([member]))


def test_local_archives_are_not_copied(tmp_path):
    block = ps.WebDataset(shard(tmp_path / "a", samples([1, 2])))._plan.source.open().read(5)
    assert block.columns[1].buffers[0] is block.columns[2].buffers[0]
    assert len(block.columns[1].buffers[0]) == (tmp_path / "a").stat().st_size
    assert block.origin.at(1) == (str(tmp_path / "a"), 2048)


def test_shards_named_with_braces_and_read_in_turn(tmp_path):
    for i in range(3):
        shard(tmp_path / f"s-{i:02d}.tar", samples([10 * i + 1, 10 * i + 2]))
    pattern = tmp_path / "s-{00..02}.tar"
    assert [sample["__key__"] for sample in ps.WebDataset(pattern)] == [
        f"d/{i}".encode() for i in (1, 2, 11, 12, 21, 22)
    ]
    turns = ps.WebDataset(pattern, num_parallel_reads=2)
    assert [sample["__key__"] for sample in turns] == [f"d/{i}".encode() for i in (1, 11, 2, 12, 21, 22)]


# -- braces


@pytest.mark.parametrize(
    "pattern",
    [
        "a", "a{b,c}d", "{1..3}", "{01..10}", "{3..1}", "{1..10..4}", "{10..1..3}", "{-2..2}", "{a,b}{c,d}",
        "{a,{b,c}}", "{a,b{1..2}}", "{}", "{a}", "a{", "}a{b,c}", "{a,b", "x{,a}", "{1..}", "x{a}{b,c}", "{{a,b}}",
        "{001..3}", "{5..5}", "{-05..5..5}",
    ],
)  # fmt: skip
def test_braces_stand_for_what_the_shell_makes_of_them(pattern):
    bash = shutil.which("bash")
    assert bash, "the tests need bash"
    made = subprocess.run([bash, "-c", f"printf '%s\\n' {pattern}"], check=True, capture_output=True, text=True)
    assert expand_braces(pattern) == made.stdout.removesuffix("\n").split("\n")


# -- errors

ARGUMENTS = {
    "suffixes_text": lambda: ps.WebDataset("a.tar", suffixes="jpg"),
    "suffixes_empty": lambda: ps.WebDataset("a.tar", suffixes=[]),
    "suffixes_key": lambda: ps.WebDataset("a.tar", suffixes=["__key__"]),
    "suffixes_number": lambda: ps.WebDataset("a.tar", suffixes=[1]),
    "shards_number": lambda: ps.WebDataset(3),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_wrong_arguments_are_refused_where_they_are_given(name):
    with pytest.raises(errors.PenstockError) as caught:
        ARGUMENTS[name]()
    assert_golden(f"argument_webdataset_{name}", f"{type(caught.value).__name__}: {caught.value}")


LATE = {
    "other_suffixes": [("1.jpg", b""), ("1.cls", b""), ("2.jpg", b"")],
    "twice": [("1.jpg", b""), ("1.jpg", b"")],
}


@pytest.mark.parametrize("name", [*LATE, "noise"])
def test_what_only_the_archive_can_tell_comes_with_the_pass(name, tmp_path):
    (tmp_path / "a.tar").write_bytes(archive(LATE[name]) if name in LATE else b"noise" * 200)
    found = everything(ps.WebDataset(tmp_path / "a.tar"))[-1]
    assert_golden(f"error_webdataset_{name}", f"{type(found).__name__}: {found}")
