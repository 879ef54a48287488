"""MDSDataset and LitDataset: values of the libraries' own writers, indices, resumes, and damaged files."""

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from tests.sources.numbers import everything_by_number
from tests.sources.passes import assert_equal
from tests.sources.shard_files import unpack_written, write_litdata, write_mds

import penstock as ps
from penstock.errors import DataLossError, InvalidTypeError, NotFoundError, UnimplementedError
from penstock.testing import assert_resumes_exactly

COUNT = 8


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return unpack_written(tmp_path_factory.mktemp("written"))


def mds_row(n):
    return {
        "a": np.arange(n + 1, dtype=np.int16).reshape(1, -1),
        "at": np.full((2, n + 1), n, np.int32),
        "ats": np.full((2, 3), n, np.float32),
        "b": bytes([n]) * n,
        "f2": np.float16(n / 4),
        "f8": np.float64(n / 3),
        "i": np.int64(n - 5),
        "j": json.dumps({"k": [n] * n}).encode(),
        "p": np.array([2, 3, 1], np.uint32).tobytes() + b"L" + bytes([n]) * 6,
        "pk": (np.int64(n), b"t"),
        "s": "é".encode() * n,
        "sd": str(n / 4).removesuffix(".0").encode(),
        "sf": str(n / 7).encode(),
        "si": str(10**n).encode(),
        "u8": np.uint8(n),
    }


@pytest.mark.parametrize("compression", ["raw", "zstd", "gz", "bz2", "br", "snappy"])
def test_samples_are_those_that_mosaicml_wrote(compression, written):
    ds = ps.MDSDataset(written / "mds" / compression, allow_pickle=True)
    wanted = [mds_row(n) for n in range(COUNT)]
    assert len(ds) == COUNT
    assert_equal(everything_by_number(ds), wanted)
    assert sorted(int(row["u8"]) for row in ds.shuffle(ps.ALL, seed=1)) == list(range(COUNT))


LIT = {
    "dicts": lambda i: {
        "a": np.int64(i),
        "b": "é".encode() * i,
        "c": np.arange(i + 1),
        "f": np.float64(i / 3),
        "t": np.bool_(i % 2 == 0),
    },
    "nest": lambda i: (
        np.int64(i),
        (np.float64(1.5 * i), b"ab" * i),
        np.full(3, i, np.float32),
        np.ones((2, i + 1), np.float32),
        {"x": np.full((2, i + 1), i, np.float16), "t": np.bool_(i % 2 == 0)},
    ),
    "batch": lambda i: np.int64(i * i),
    "batchdict": lambda i: {"a": np.int64(i), "b": b"x" * i},  # stored as Arrow rows
    "arrow": lambda i: {"a": np.int64(i), "b": np.full(i, i, np.int64)},
    "chunk": lambda i: (np.int64(i), b"x" * i),
    "pickle": lambda i: (np.int64(i), np.complex64(1 + 2j)),
}


@pytest.mark.parametrize("name", LIT)
def test_samples_are_those_that_litdata_wrote(name, written):
    ds = ps.LitDataset(written / "litdata" / name, allow_pickle=name == "pickle")
    assert len(ds) == COUNT
    assert_equal(everything_by_number(ds), [LIT[name](i) for i in range(COUNT)])


@pytest.mark.parametrize(("name", "dtype", "per_chunk"), [("tokens", np.int32, 4), ("tokens-zstd", np.uint16, 2)])
def test_tokens_are_cut_into_rows_as_litdata_cuts_them(name, dtype, per_chunk, written):
    chunks = json.loads((written / "litdata" / name / "index.json").read_text())["chunks"]
    tokens = np.concatenate([np.arange(i * 7 + 3, dtype=dtype) for i in range(COUNT)])
    wanted = []
    for chunk in chunks:
        part, tokens = tokens[: chunk["dim"]], tokens[chunk["dim"] :]
        wanted += list(part[: len(part) // 16 * 16].reshape(-1, 16))
    ds = ps.LitDataset(written / "litdata" / name, 16)
    assert ds.element_spec == ps.TensorSpec((16,), dtype)
    assert len(ds) == len(wanted) > len(chunks)
    assert_equal(everything_by_number(ds), wanted)


def test_arrays_of_litdata_with_headers(tmp_path):
    rows = [
        [np.array([2, 2, 2, i], np.uint32).tobytes() + bytes(8 * i), np.array([12], "i1").tobytes()] for i in (1, 2)
    ]
    ds = ps.LitDataset(write_litdata(tmp_path / "d", [0, 0], ["numpy", "no_header_tensor:12"], rows))
    assert_equal(list(ds), [(np.zeros((2, i), np.int32), np.array([12], np.int8)) for i in (1, 2)])


def _mds(folder, **options):
    columns = {"n": ("int64", 8), "s": ("str", None), "a": ("ndarray:int32:2", 8)}
    rows = [[np.int64(i).tobytes(), b"x" * i, np.array([i, -i], np.int32).tobytes()] for i in range(12)]
    return write_mds(folder, columns, rows, per_shard=5, **options)


def test_only_fixed_sizes_and_static_specs(tmp_path):
    ds = ps.MDSDataset(_mds(tmp_path / "d"))
    assert ds.element_spec["a"] == ps.TensorSpec((2,), np.int32)
    only = ps.MDSDataset(write_mds(tmp_path / "o", {"n": ("int", 8)}, [[np.int64(i).tobytes()] for i in range(7)], 3))
    assert [int(row["n"]) for row in only] == list(range(7))


def test_samples_are_resumed_at_every_element(tmp_path):
    ds = ps.MDSDataset(_mds(tmp_path / "d"))
    assert_resumes_exactly(ds)
    assert_resumes_exactly(ds.shuffle(ps.ALL, seed=1))
    rows = [[np.int64(i).tobytes()] for i in range(12)]
    assert_resumes_exactly(ps.LitDataset(write_litdata(tmp_path / "l", 0, ["int"], rows, 5)))


_RESUME = """
import json, sys
import penstock as ps
path, kind, states = sys.argv[1:]
rests = []
for state in json.loads(states):
    with getattr(ps, kind)(path).shuffle(ps.ALL, seed=3).iterator() as elements:
        elements.load_state_dict(state)
        rests.append([str(element) for element in elements])
print(json.dumps(rests))
"""


@pytest.mark.parametrize("kind", ["MDSDataset", "LitDataset"])
def test_samples_are_resumed_at_every_element_in_another_process(kind, tmp_path):
    path = tmp_path / "d"
    if kind == "MDSDataset":
        _mds(path)
    else:
        write_litdata(path, {"n": 0}, ["int"], [[np.int64(i).tobytes()] for i in range(12)], 5)
    states, found = [], []
    with getattr(ps, kind)(path).shuffle(ps.ALL, seed=3).iterator() as elements:
        states.append(elements.state_dict())
        for element in elements:
            found.append(str(element))
            states.append(elements.state_dict())
    assert len(found) == 12
    command = [sys.executable, "-c", _RESUME, path, kind, json.dumps(states)]
    other = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(other.stdout) == [found[count:] for count in range(len(states))]


# -- damage


def _change(path, change):
    index = json.loads((path / "index.json").read_text())
    change(index)
    (path / "index.json").write_text(json.dumps(index))


def _unhashed(path):
    _change(path, lambda index: [shard["raw_data"]["hashes"].clear() for shard in index["shards"]])
    return path


def _outcomes(ds):
    found = []
    with ds.iterator() as elements:
        while True:
            try:
                found.append(next(elements))
            except StopIteration:
                return found
            except ps.errors.PenstockError as error:
                found.append(error)


@pytest.mark.parametrize("size", [0, 3, 20, 60, -1])
def test_a_truncated_shard_is_one_failure_and_the_next_follows(size, tmp_path):
    path = _unhashed(_mds(tmp_path / "d"))
    shard = path / "shard.00001.mds"
    shard.write_bytes(shard.read_bytes()[:size])
    ds = ps.MDSDataset(path)
    found = _outcomes(ds)
    assert [type(one) for one in found] == [dict] * 5 + [DataLossError] + [dict] * 2
    assert (found[5].context.file, found[5].context.offset is None) == (str(shard), False)
    assert len(ds) == 12
    assert int(ds[11]["n"]) == 11
    with pytest.raises(DataLossError, match="samples"):
        ds[7]


def test_a_wrong_hash_is_an_error(tmp_path):
    path = _mds(tmp_path / "d")
    shard = path / "shard.00002.mds"
    content = bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)
    error = _outcomes(ps.MDSDataset(path))[10]
    assert isinstance(error, DataLossError)
    assert "Its sha1 is not" in str(error)
    assert error.context.file == str(shard)


@pytest.mark.parametrize("kind", ["xxh32", "xxh64", "xxh128", "xxh3_64", "xxh3_128"])
def test_hashes_of_xxhash_are_compared(kind, tmp_path):
    xxhash = pytest.importorskip("xxhash")
    path = _mds(tmp_path / "d")
    digests = [getattr(xxhash, kind)(shard.read_bytes()).hexdigest() for shard in sorted(path.glob("*.mds"))]
    digests[2] = digests[0]

    def replace(index):
        for shard, digest in zip(index["shards"], digests, strict=True):
            shard["raw_data"].update(hashes={kind: digest})

    _change(path, replace)
    found = _outcomes(ps.MDSDataset(path))
    assert [type(one) for one in found] == [dict] * 10 + [DataLossError]
    assert f"Its {kind} is not {digests[0]}." in str(found[10])


def test_hashes_of_other_packages_are_not_compared(tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.sources.shards._XXHASHES", ())  # as if the package xxhash was not installed
    path = _mds(tmp_path / "d")
    _change(path, lambda index: [shard["raw_data"].update(hashes={"xxh64": "0"}) for shard in index["shards"]])
    assert len(list(ps.MDSDataset(path))) == 12


def test_a_damaged_compressed_shard_is_an_error(tmp_path, written):
    for kind in ("zstd", "gz", "bz2", "br", "snappy"):
        path = tmp_path / kind
        path.mkdir()
        for file in (written / "mds" / kind).iterdir():
            content = file.read_bytes()
            (path / file.name).write_bytes(content if file.suffix == ".json" else content[: len(content) // 2])
        _change(path, lambda index: [shard["zip_data"]["hashes"].clear() for shard in index["shards"]])
        found = _outcomes(ps.MDSDataset(path, allow_pickle=True))
        assert {type(one) for one in found} == {DataLossError}


def test_a_missing_shard_is_an_error(tmp_path):
    path = _mds(tmp_path / "d")
    (path / "shard.00001.mds").unlink()
    found = _outcomes(ps.MDSDataset(path))
    assert [type(one) for one in found] == [dict] * 5 + [NotFoundError] + [dict] * 2
    with pytest.raises(NotFoundError, match=r"shard\.00001\.mds"):
        ps.MDSDataset(path)[5]
    with pytest.raises(NotFoundError, match=r"index\.json"):
        ps.MDSDataset(tmp_path)


def test_an_index_that_does_not_fit_is_an_error(tmp_path):
    path = _unhashed(_mds(tmp_path / "d"))
    _change(path, lambda index: index["shards"][0].update(samples=6))
    first = _outcomes(ps.MDSDataset(path))[0]
    assert "states 6 samples, and the shard has 5" in str(first)
    assert (first.context.file, first.context.offset) == (str(path / "shard.00000.mds"), 0)
    (path / "index.json").write_text("{")
    with pytest.raises(DataLossError, match=r"index\.json"):
        ps.MDSDataset(path)


def test_a_damaged_sample_fails_alone(tmp_path):
    path = _unhashed(_mds(tmp_path / "d"))
    shard = path / "shard.00000.mds"
    content = bytearray(shard.read_bytes())
    begin = int(np.frombuffer(content, np.uint32, 1, 4 + 4 * 2)[0])  # sample 2, which starts with the size of "s"
    content[begin] += 1
    shard.write_bytes(content)
    found = _outcomes(ps.MDSDataset(path))
    assert [type(one) for one in found] == [dict] * 2 + [DataLossError] + [dict] * 9
    assert (found[2].context.file, found[2].context.offset) == (str(shard), begin)


def test_the_same_shard_twice_is_an_error(tmp_path):
    path = _mds(tmp_path / "d")
    _change(path, lambda index: index["shards"].append(index["shards"][0]))
    with pytest.raises(DataLossError, match="listed twice"):
        ps.MDSDataset(path)
    _change(path, lambda index: index["shards"].clear())
    with pytest.raises(DataLossError, match="no shards"):
        ps.MDSDataset(path)


def test_unknown_encodings_and_formats_are_named(tmp_path):
    for change, named in [
        (
            lambda shard: shard["column_encodings"].__setitem__(1, "list[jpeg]"),
            r"\['s'\]: the encoding 'list\[jpeg\]' .*'str'",
        ),
        (lambda shard: shard.update(format="json"), r"\('json', 2\)"),
        (lambda shard: shard.update(version=3), r"\('mds', 3\)"),
    ]:
        path = _mds(tmp_path / "d")
        _change(path, lambda index, change=change: [change(shard) for shard in index["shards"]])
        with pytest.raises(UnimplementedError, match=f"(?s){named}"):
            ps.MDSDataset(path)
    path = _mds(tmp_path / "e", pack=("zip", bytes))
    with pytest.raises(UnimplementedError, match="'zip' is not read"):
        list(ps.MDSDataset(path))


class Harm:
    def __reduce__(self):
        return (exec, ("raise SystemExit('a pickle was loaded')",))


@pytest.mark.parametrize("encoding", ["pkl", "pkl:x", "pickle"])
def test_pickles_are_refused_unless_they_are_allowed(encoding, tmp_path):
    path = write_mds(tmp_path / "d", {"p": (encoding, None)}, [[pickle.dumps(Harm())]])
    with pytest.raises(InvalidTypeError, match="allow_pickle=True"):
        ps.MDSDataset(path)
    other = write_litdata(tmp_path / "l", {"x": {"p": 0}}, [encoding], [[pickle.dumps(Harm())]])
    with pytest.raises(InvalidTypeError, match=r"x\W.*p\W"):
        ps.LitDataset(other)
    good = write_mds(tmp_path / "g", {"p": (encoding, None)}, [[pickle.dumps({"a": 1})]])
    assert_equal(list(ps.MDSDataset(good, allow_pickle=True)), [{"p": {"a": np.int64(1)}}])


def test_samples_of_several_dtypes_are_an_error(tmp_path):
    arrays = [np.int64([1, 2]), np.int64([1]), np.float32([1])]
    codes = {"int64": 65, "float32": 34}
    rows = [[bytes([codes[array.dtype.name], 4, len(array)]) + array.tobytes()] for array in arrays]
    ds = ps.MDSDataset(write_mds(tmp_path / "d", {"a": ("ndarray", None)}, rows))
    assert ds.element_spec == {"a": ps.TensorSpec((None,), np.int64)}
    found = _outcomes(ds)
    assert [type(one) for one in found] == [dict, dict, InvalidTypeError]
    assert "float32" in str(found[2])


def test_what_litdata_writes_and_penstock_does_not_read(tmp_path, written):
    rows = [[np.int64(i).tobytes()] for i in range(3)]
    for config, named in [
        ({"item_loader": "ParquetLoader"}, "ParquetLoader"),
        ({"encryption": {"algorithm": "fernet"}}, "fernet"),
        ({"item_loader": "TokensLoader"}, r"block_size=None \(tokens of a row\), 'TokensLoader'"),
        ({"data_format": ["graph"]}, "'graph'"),
        ({"data_spec": json.dumps([1, {"type": "m.Sample", "context": "", "children_spec": []}])}, r"m\.Sample"),
    ]:
        path = write_litdata(tmp_path / "d", 0, ["int"], rows, **config)
        with pytest.raises(UnimplementedError, match=named):
            ps.LitDataset(path)
    with pytest.raises(UnimplementedError, match="'sample'"):
        ps.LitDataset(written / "litdata" / "sample")
    with pytest.raises(UnimplementedError, match="PyTreeLoader"):
        ps.LitDataset(write_litdata(tmp_path / "d", 0, ["int"], rows), 8)
    with pytest.raises(ps.errors.InvalidArgumentError, match="block_size"):
        ps.LitDataset(tmp_path / "d", 0)


@pytest.mark.parametrize("name", ["batch", "arrow", "chunk", "tokens", "dicts"])
def test_truncated_chunks_are_errors(name, tmp_path, written):
    for file in (written / "litdata" / name).iterdir():
        content = file.read_bytes()
        (tmp_path / file.name).write_bytes(content if file.suffix == ".json" else content[:-20])
    ds = ps.LitDataset(tmp_path, 16 if name == "tokens" else None)
    found = _outcomes(ds)
    assert {type(one) for one in found} == {DataLossError}
    assert all(one.context.file.endswith(".bin") for one in found)


def test_the_plan_has_the_same_digest_after_it_was_read(tmp_path):
    ds = ps.MDSDataset(_mds(tmp_path / "d"))
    from penstock.plan.fingerprint import fingerprint

    before = fingerprint(ds._plan)
    assert len(list(ds)) == 12
    assert fingerprint(ds._plan) == before


def test_shards_at_a_url(tmp_path):
    path = _mds(tmp_path / "d")
    import fsspec

    memory = fsspec.filesystem("memory")
    for file in path.iterdir():
        memory.pipe(f"/shards/{file.name}", file.read_bytes())
    assert_equal(list(ps.MDSDataset("memory://shards")), list(ps.MDSDataset(path)))
