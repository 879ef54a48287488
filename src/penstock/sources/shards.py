"""Samples in shards with an index in JSON, which MosaicML Streaming (MDS) and LitData write."""

from __future__ import annotations

import hashlib
import json
import pickle
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from struct import iter_unpack, unpack_from
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.column import BytesColumn, DenseColumn, byte_strings, column_of
from penstock.block.origin import Origin
from penstock.block.spec import TensorSpec, any_extent
from penstock.block.structure import Structure, flatten
from penstock.errors import Context, DataLossError, InvalidTypeError, PenstockError, UnimplementedError, annotate
from penstock.io import storage
from penstock.sources.arrow_pieces import ArrowPiece, Columns, reading
from penstock.sources.row_files import RowFile, RowFilesSource, difference, unreadable

# A shard is: u32 samples | u32 offsets of the samples and of the end | MDS: a header in JSON | samples. A sample is:
# u32 sizes of the values whose size varies, in LitData of all values | values. If LitData compresses batches of
# samples, a chunk is: magic | u16 version | u16 flags | u32 samples | u32 samples of a frame | u32 frames | u32 offsets
# in the content of all frames | entries of the frames | frames.

_FRAMES, _ARROW = b"LDFZ01\0\0", b"LDARW01\0"  # magics of LitData: of compressed batches, and of Arrow rows at the end
_CODECS = {"zstd": "zstd", "gz": "gzip", "bz2": "bz2", "br": "brotli", "snappy": "snappy"}  # Arrow's names
_TORCH = "f4 f4 f8 f8 c8 c8 c16 c16 f2 f2 bfloat16 u1 i1 i2 i2 i4 i4 i8 i8 ? u2"  # the dtypes in LitData's order
NUMPY = "i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16 ?"
_ARRAYS = {"ndarray": "", "no_header_numpy": NUMPY, "no_header_tensor": _TORCH}
TEXTS = "str text str_int str_float str_decimal"  # encodings of UTF-8
_STRINGS = f"{TEXTS} bytes json jpeg png pil image file video audio tiff pdf nifti mesh"
_XXHASHES = ("xxh32", "xxh64", "xxh128", "xxh3_64", "xxh3_128") if find_spec("xxhash") else ()
_NUMBERS = "int int8 int16 int32 int64 uint8 uint16 uint32 uint64 float float16 float32 float64 bool"
_AGAIN = "Write or copy the shards and their index again."


def _check(ok: Any, what: str, kind: type[PenstockError] = DataLossError, hint: str = _AGAIN, at: Any = None) -> None:
    if not ok:
        raise kind(what, hint=hint, offset=None if at is None else int(at))


def _only(found: Any, known: Any, what: str) -> Any:
    _check(found in known, f"{what} {found!r} is not read.", UnimplementedError, f"What is read: {[*known]}.")
    return found


def _cut(buffer: np.ndarray, starts: np.ndarray, width: int, dtype: Any) -> Any:
    """Return the `width` bytes from each start on, one after the other, as one array of a dtype."""
    return np.ndarray((len(buffer) - width + 1,), f"V{width}", buffer, strides=(1,))[starts].view(dtype)


def _fixed(dtype: Any, shape: Any, buffer: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> DenseColumn:
    """Return numbers, or arrays of one shape."""
    width = np.dtype(dtype).itemsize * int(np.prod(shape))
    _check((lengths == width).all(), f"A value of {np.dtype(dtype)} does not have {width} bytes.")
    return DenseColumn(_cut(buffer, starts, width, dtype).reshape(len(starts), *shape))


def _each(function: Any, buffer: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> Any:
    """Return the results of a function of each value: arrays, or what pickles contain, as from a user's function."""
    values = [function(value) for value in byte_strings(buffer, starts, lengths)]
    block = Block.from_elements(values) if function is pickle.loads else Block.single(column_of(values))
    return block.structure.build(block.columns)


def _mds_array(value: bytes, dtype: Any) -> np.ndarray:
    at, dtype = (0, dtype) if dtype else (1, f"{'uif'[value[0] & 7]}{value[0] >> 3}")
    body = at + 1 + (value[at] >> 2 << (value[at] & 3))  # the byte has the rank, and the width of the extents
    return np.frombuffer(value[body:], dtype).reshape(np.frombuffer(value[at + 1 : body], f"u{1 << (value[at] & 3)}"))


def _lit_array(value: bytes, order: str, dtypes: list[str]) -> np.ndarray:
    code, rank = unpack_from(f"{order}2I", value)
    return np.frombuffer(value[8 + 4 * rank :], dtypes[code]).reshape(unpack_from(f"{order}{rank}I", value, 8))


# A decoder is a function of a buffer and of the starts and lengths of values, which returns a column or a nest of
# columns; and the spec of the values, or None if only a value has it.
_DECODERS: dict[str, tuple[Any, Any]] = {
    **dict.fromkeys(_STRINGS.split(), (lambda buffer, *where: BytesColumn((buffer,), *where), TensorSpec((), bytes))),
    **{name: (partial(_fixed, name, ()), TensorSpec((), name)) for name in _NUMBERS.split()},
    "numpy": (partial(_each, partial(_lit_array, order="<", dtypes=NUMPY.split())), None),
    "tensor": (partial(_each, partial(_lit_array, order=">", dtypes=_TORCH.split())), None),
    **dict.fromkeys(("pkl", "pickle"), (partial(_each, pickle.loads), None)),
}


def _decoder(encoding: str) -> tuple[Any, Any]:
    kind, *rest = encoding.split(":")
    if kind not in _ARRAYS:
        return _DECODERS[kind]
    dtype = np.dtype(_ARRAYS[kind].split()[int(rest[0])] if _ARRAYS[kind] else rest[0]) if rest else None
    if len(rest) > 1:
        shape = tuple(map(int, rest[1].split(",")))
        return partial(_fixed, dtype, shape), TensorSpec(shape, dtype)
    if kind == "ndarray":
        return partial(_each, partial(_mds_array, dtype=dtype)), None
    return partial(_each, partial(np.frombuffer, dtype=dtype)), TensorSpec((None,), dtype)


@dataclass(frozen=True, kw_only=True)
class SampleShardsSource(RowFilesSource):
    """The samples of shards. The leaves of `structure` have these encodings and sizes; None for a size that varies.

    A shard has a tuple: its rows, its samples, its most bytes before compression, Arrow's name of the compression, its
    hashes by their kinds, and the bytes of a row that is no sample, or 0.
    """

    kind: str  # type: ignore[misc]
    shards: dict[str, tuple[int, int, int, str | None, dict[str, str], int]]
    structure: Structure
    encodings: list[str]
    sizes: list[int | None]

    def stated(self) -> list[int]:
        return [max(int(shard[0]), 0) for shard in self.shards.values()]

    def open_rows(self, name: str) -> RowFile:
        with reading(name):
            return _Samples(name, self)


class _Samples(RowFile):
    """A shard, mapped or in memory. Row i has the bytes from `offsets[i]` to `offsets[i + 1]`, or is in `arrow`."""

    def __init__(self, name: str, source: SampleShardsSource) -> None:
        self._name, self._source, self.spec, self.arrow = name, source, None, None
        self.size, samples, most, codec, hashes, width = source.shards[name]
        content: Any = storage.all_bytes(name)
        verified = vars(source).setdefault("verified", set())  # shards whose hashes were compared in this process
        for kind in hashes.keys() & {*hashlib.algorithms_available, *_XXHASHES} if name not in verified else ():
            new = getattr(import_module("xxhash"), kind) if kind in _XXHASHES else partial(hashlib.new, kind)
            _check(new(content).hexdigest() == hashes[kind], f"Its {kind} is not {hashes[kind]}.", at=0)
        verified.add(name)
        content = np.frombuffer(_unpacked(content, codec, most), np.uint8) if codec else content
        begin, at, framed = (24, 12, True) if content[:8].tobytes() == _FRAMES else (4, 0, False)
        first = end = begin + 4 * (samples + 1)
        found = unpack_from("<I", content, at)[0] if len(content) >= end else "fewer"
        _check(found == samples, f"The index states {samples} samples, and the shard has {found}.", at=at)
        if content[-8:].tobytes() == _ARROW:
            import pyarrow as pa

            stored = content[-12 - unpack_from("<I", content[-12:])[0] : -12]
            table = pa.ipc.open_file(pa.py_buffer(stored)).read_all().combine_chunks()
            _check(len(table) == samples, f"The index states {samples} samples, and the Arrow table has {len(table)}.")
            self.arrow, self.spec = ArrowPiece(table.to_batches()[0], 0, Columns(), name), Columns().spec(table.schema)
            return
        offsets = content[begin:end].view("<u4").astype(np.int64)
        if framed:
            table = iter_unpack("<2IQ2I", content[end:][: 24 * unpack_from("<I", content, 20)[0]])
            parts = [_unpacked(content[at:][:packed], "zstd", size) for _, _, at, packed, size in table]
            first, content = 0, np.frombuffer(b"".join(parts), np.uint8)
        ordered = offsets[0] >= first and (np.diff(offsets) >= 0).all() and offsets[-1] == len(content)
        _check(ordered, f"The samples do not end at byte {len(content)}.", at=min(len(content), offsets[-1]))
        self._content = content
        self._offsets = offsets[0] + width * np.arange(self.size + 1) if width else offsets
        self._reads, specs = zip(*map(_decoder, source.encodings), strict=True)
        self._open = None in specs and self.size > 0  # the first sample determines dtypes and ranks
        self.spec = _spec(self.part(0, 1)) if self._open else source.structure.build(specs)

    def part(self, start: int, stop: int) -> Block:
        return self.rows_at(np.arange(start, stop))

    def rows_at(self, rows: np.ndarray) -> Block:
        if self.arrow is not None:
            return self.arrow.rows_at(rows)
        source, begins, ends = self._source, self._offsets[rows], self._offsets[rows + 1]
        free = [number for number, size in enumerate(source.sizes) if not size]
        sizes = np.tile(np.array([size or 0 for size in source.sizes], np.int64), (len(rows), 1))
        try:
            if free:
                sizes[:, free] = _cut(self._content, begins, 4 * len(free), "<u4").reshape(len(rows), len(free))
            stops = begins[:, None] + 4 * len(free) + np.cumsum(sizes, axis=1)
            _check((stops[:, -1] == ends).all(), "The sizes in a sample do not add up to its bytes.")
            reads = zip(self._reads, (stops - sizes).T, sizes.T, strict=True)
            leaves, structure = flatten(source.structure.build([read(self._content, *at) for read, *at in reads]))
            block = Block(structure, leaves, len(rows), Origin.of_file(self._name, begins))
            if self._open and self.spec is not None and (found := _spec(block)) != self.spec:
                what = f"The sample differs from the first one: {difference(found, self.spec)}."
                _check(False, what, InvalidTypeError, "All samples have the same nest, dtypes and ranks.")
        except Exception as raised:
            error = unreadable(f"A sample of {source.encodings}", raised)
            annotate(error, Context(file=self._name, offset=int(begins[0])))
            raise error from error.__cause__
        return block


def _spec(block: Block) -> Any:
    return block.structure.build([any_extent(spec) for spec in block.specs()])


def _unpacked(content: np.ndarray, codec: str, most: int) -> Any:
    import pyarrow as pa

    kind = _CODECS[_only(codec.partition(":")[0], _CODECS, "The compression")]
    if kind == "snappy":  # a format that cannot be read in pieces
        return pa.Codec(kind).decompress(content, most, asbytes=True)
    with pa.input_stream(pa.py_buffer(content), compression=kind) as stream:
        return stream.read(most)


def read_index(folder: Any, describe: Any, *, allow_pickle: bool, **options: Any) -> SampleShardsSource:
    """Return the source of the shards that `index.json` lists. `describe` returns the fields of the source."""
    name = f"{storage.as_path(folder).rstrip('/')}/index.json"
    with reading(name):
        kind, shards, leaves = describe(json.loads(storage.read_now(name)), name.removesuffix("index.json"), **options)
        for path, encoding in zip(leaves["structure"].paths(), leaves["encodings"], strict=True):
            code = _only(encoding.partition(":")[0], [*_DECODERS, *_ARRAYS], f"{path}: the encoding")
            trust = "A pickle can run any code. Give allow_pickle=True if you trust the writer of the files."
            _check(allow_pickle or code not in ("pkl", "pickle"), f"{path} is pickled.", InvalidTypeError, trust)
        return SampleShardsSource(tuple(shards), kind=kind, shards=shards, **leaves)


def of_mds(index: Any, prefix: str) -> tuple[Any, ...]:
    """Return what an index of MosaicML Streaming lists."""
    found, shards = index["shards"], {}
    columns = {json.dumps([each[f"column_{part}"] for part in ("names", "encodings", "sizes")]) for each in found}
    _check(len(columns) == 1, "There are no shards, or they have different columns.")
    for each in found:
        _only((each["format"], each["version"]), [("mds", 2)], "The format")
        rows, most, file = int(each["samples"]), each["raw_data"]["bytes"], each["zip_data"] or each["raw_data"]
        codec = each["zip_data"] and each["compression"]
        _check(prefix + file["basename"] not in shards, f"{file['basename']} is listed twice.")
        shards[prefix + file["basename"]] = (rows, rows, most, codec, file["hashes"], 0)
    names, kinds, sizes = json.loads(columns.pop())
    return "MDSDataset", shards, {"structure": flatten(dict.fromkeys(names, 0))[1], "encodings": kinds, "sizes": sizes}


def of_litdata(index: Any, prefix: str, block_size: int | None) -> tuple[Any, ...]:
    """Return what an index of LitData lists."""
    config, encodings, width = index["config"], index["config"]["data_format"], 0
    loader = config.get("encryption") or config.get("item_loader") or "PyTreeLoader"
    _only(loader, ["PyTreeLoader" if block_size is None else "TokensLoader"], f"With {block_size=} (tokens of a row),")
    level = _only(config.get("compression_level"), [None, "chunk", "batch"], "The compression_level")
    if block_size is not None:
        encodings = [f"{encodings[0]}:{block_size}"]
        width = block_size * _decoder(encodings[0])[1].dtype.itemsize
    codec, shards = None if level == "batch" else config["compression"], dict[str, Any]()
    _check(index["chunks"], "There are no chunks.")
    for chunk in index["chunks"]:
        rows, samples = chunk["dim"] // block_size if block_size else chunk["chunk_size"], chunk["chunk_size"]
        _check(prefix + chunk["filename"] not in shards, f"{chunk['filename']} is listed twice.")
        shards[prefix + chunk["filename"]] = (rows, samples, chunk["chunk_bytes"] + 4 * samples + 8, codec, {}, width)
    structure = flatten(_nest(json.loads(config["data_spec"])[1]))[1]
    return "LitDataset", shards, {"structure": structure, "encodings": encodings, "sizes": [width] * len(encodings)}


def _nest(spec: Any) -> Any:
    """Return the nest of a treespec, with 0 for each leaf. Lists become tuples."""
    kind = _only(spec["type"], [None, "builtins.dict", "builtins.list", "builtins.tuple"], "The type")
    parts = tuple(_nest(part) for part in spec["children_spec"])
    names = json.loads(spec["context"]) if kind == "builtins.dict" else ()
    return dict(zip(names, parts, strict=True)) if kind == "builtins.dict" else parts if kind else 0
