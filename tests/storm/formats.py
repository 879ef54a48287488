"""Every format that penstock reads: the writer of an undamaged file, and the reader."""

from __future__ import annotations

import contextlib
import csv
import gzip
import importlib.util
import io
import json
import sqlite3
import tarfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from tests.image.codec_corpus import files_of
from tests.sources.shard_files import write_litdata, write_mds
from tests.storm.worker import Wrong

import penstock as ps
from penstock.block.arrow import to_arrow
from penstock.block.block import Block
from penstock.block.spec import TensorSpec
from penstock.catalog.shards import ShardsSource, Stretch
from penstock.plan.inputs import Scan

COUNT = 60  # elements of an undamaged file
FILE = "data"


@dataclass(frozen=True)
class Format:
    """`write` writes files to a folder, `read` is their data set.

    `places` is the number of elements or failures that the file's content determines, if it is known for any bytes.
    With checksums, no `foreign` element comes. A `whole` format gives all elements or an error, one that `heals` gives
    all. If `any_bytes` are elements, damage cannot be detected.
    """

    name: str
    write: Callable[[Path], object]
    read: Callable[[Path], ps.Dataset]
    places: Callable[[bytes], int] | None = None
    foreign: bool = True
    whole: bool = False
    heals: bool = False
    any_bytes: bool = False
    named: bool = True  # errors name the file


def _records() -> list[bytes]:
    return [bytes([65 + i % 20]) * (i * 7 % 50) for i in range(COUNT)]


def _tfrecord(compression: str | None) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        with ps.io.TFRecordWriter(folder / FILE, compression) as writer:
            for record in _records():
                writer.write(record)

    return write


def _array_record(folder: Path) -> None:
    from array_record.python.array_record_module import ArrayRecordWriter

    writer = ArrayRecordWriter(str(folder / FILE), "group_size:4")
    for record in _records():
        writer.write(record)
    writer.close()


def _lmdb(folder: Path) -> None:
    """Write the pages of lmdb 3.0.0: two levels of pages, with values on overflow pages."""
    packed = Path(__file__).parents[1] / "data" / "lmdb.mdb.gz"
    (folder / FILE).write_bytes(gzip.decompress(packed.read_bytes()))


def _content(content: bytes, pack: Callable[[bytes], bytes] = bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / FILE).write_bytes(pack(content))


def _lines() -> bytes:
    return b"".join(b"line %d %s%s" % (i, b"x" * (i % 9), (b"\n", b"\r\n")[i % 2]) for i in range(COUNT))


def _readable(content: bytes) -> bytes:
    """Return the readable lines of a text file, or one character if the file is refused as a whole."""
    if content[:2] in (b"\xff\xfe", b"\xfe\xff") or 0 in content[:2]:
        return b"x"
    content = content.removesuffix(b"\x1a").removeprefix(b"\xef\xbb\xbf")
    return b"x" if b"\r" in content and b"\n" not in content else content


def _line_places(content: bytes) -> int:
    content = _readable(content)
    return content.count(b"\n") + (not content.endswith(b"\n") and bool(content))


def _rows() -> bytes:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["a", "b", "c"])
    writer.writerows([i, f'say "{i}",\nplease' if i % 4 == 0 else f"t{i}", i / 4] for i in range(COUNT))
    return out.getvalue().encode()


def _objects() -> bytes:
    rows = [
        {"a": i, "b": i / 4, "s": f"é{i}", "l": [i] * (i % 3), "o": {"x": [1.5, i], "y": None}} for i in range(COUNT)
    ]
    return "".join(json.dumps(row, ensure_ascii=i % 2 == 0) + "\n" for i, row in enumerate(rows)).encode()


def _object_places(content: bytes) -> int:
    lines = _readable(content).split(b"\n")
    return sum(1 for line in lines if _text(line).strip(" \t\r"))


def _text(line: bytes) -> str:
    return line.decode(errors="replace")


def _json(path: Path, compression: str | None = None) -> ps.Dataset:
    return ps.JsonLinesDataset(path, defaults={"o": {"y": 0}}, compression_type=compression)


def _table() -> Any:
    import pyarrow as pa

    numbers = range(COUNT)
    return pa.table(
        {
            "i": pa.array(numbers, pa.int32()),
            "s": pa.array([f"é{i}" * (i % 3) for i in numbers]),
            "l": pa.array([[i] * (i % 4) for i in numbers], pa.list_(pa.int16())),
            "ll": pa.array([[[i], []][: i % 3] for i in numbers], pa.large_list(pa.list_(pa.int8()))),
            "f": pa.array([[i, -i] for i in numbers], pa.list_(pa.float32(), 2)),
            "d": pa.array([f"kind {i % 3}" for i in numbers]).dictionary_encode(),
            "t": pa.array([{"x": i, "y": str(i)} for i in numbers]),
            "n": pa.array([None if i % 5 == 0 else i for i in numbers], pa.int64()),
        }
    )


def _arrow(compression: str | None, stream: bool = False) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        import pyarrow as pa

        table = _table()
        make = pa.ipc.new_stream if stream else pa.ipc.new_file
        options = pa.ipc.IpcWriteOptions(compression=compression)
        with make(str(folder / FILE), table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=16)

    return write


def _own_arrow(folder: Path) -> None:
    """Write with the nest in the metadata, like penstock."""
    import pyarrow as pa

    rows = [(np.int64(i), {"r": np.arange(i % 4, dtype=np.int16), "s": b"x" * (i % 5)}) for i in range(COUNT)]
    block = Block.from_elements(rows)
    batch = to_arrow(block, [TensorSpec((), np.int64), TensorSpec((None,), np.int16), TensorSpec((), bytes)])
    with pa.ipc.new_file(str(folder / FILE), batch.schema) as writer:
        writer.write_batch(batch)


def _parquet(**options: Any) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        import pyarrow.parquet

        pyarrow.parquet.write_table(_table(), folder / FILE, row_group_size=25, **options)

    return write


def _mds(folder: Path) -> None:
    columns = {"n": ("int", 8), "s": ("str", None), "a": ("ndarray:int16", None)}
    rows = [[np.int64(i).tobytes(), b"x" * i, bytes([4, i % 3, *bytes(2 * (i % 3))])] for i in range(COUNT)]
    write_mds(folder, columns, rows)


def _litdata(folder: Path) -> None:
    rows = [[np.int64(i).tobytes(), b"x" * i, bytes(4 * (i % 3))] for i in range(COUNT)]
    write_litdata(folder, {"n": 0, "rest": (0, 0)}, ["int", "str", "no_header_numpy:2"], rows)


def _array(array: np.ndarray) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        with (folder / FILE).open("wb") as file:
            np.save(file, array)

    return write


def _arrays(save: Callable[..., None]) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        with (folder / FILE).open("wb") as file:
            save(
                file,
                a=np.arange(COUNT),
                b=np.ones((COUNT, 3), np.float32),
                t=np.array([b"x%d" % i for i in range(COUNT)]),
            )

    return write


def _tar(mode: str, kind: int) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        with tarfile.open(folder / FILE, mode, format=kind) as archive:
            for i in range(COUNT // 2):
                for suffix in ("jpg", "cls"):
                    member = tarfile.TarInfo(f"train/{'long' * (40 if i % 7 == 0 else 1)}/{i:03d}.{suffix}")
                    member.size = i * 40
                    archive.addfile(member, io.BytesIO(bytes([i]) * member.size))

    return write


def _sqlite(folder: Path) -> None:
    connection = sqlite3.connect(folder / FILE)
    connection.execute("CREATE TABLE numbers (a INTEGER, b REAL, c TEXT)")
    connection.executemany("INSERT INTO numbers VALUES (?, ?, ?)", [(i, i / 4, f"text {i}") for i in range(20 * COUNT)])
    connection.commit()
    connection.close()


def _sql(folder: Path) -> ps.Dataset:
    query = "SELECT a, b, c FROM numbers"
    return ps.experimental.SqlDataset("sqlite", folder / FILE, query, (np.int64, np.float32, bytes))


def _csv(folder: Path) -> ps.Dataset:
    return ps.experimental.CsvDataset(folder / FILE, [np.int64, bytes, np.float32(0)], header=True)


def _make_csv(folder: Path) -> ps.Dataset:
    return ps.experimental.make_csv_dataset(str(folder / FILE), 4, num_epochs=1, shuffle=False, label_name="a")


FEATURES = {
    "id": ps.io.FixedLenFeature((), np.int64),
    "score": ps.io.FixedLenFeature((), np.float32, 0.5),
    "image": ps.io.FixedLenFeature((), bytes, b""),
    "words": ps.io.VarLenFeature(bytes),
    "tokens": ps.io.RaggedFeature(np.int64),
}


def _example(folder: Path) -> None:
    values = {"id": 7, "score": 0.25, "image": bytes(range(200)), "words": [b"a", b"bc"], "tokens": [1, 2**40, -1]}
    (folder / FILE).write_bytes(ps.io.encode_example({**values, "unknown": [1.5]}))


def _parsed(folder: Path) -> ps.Dataset:
    ds = ps.Dataset.from_tensors((folder / FILE).read_bytes()).repeat(3)
    return ds.map(lambda record: ps.io.parse_single_example(record, FEATURES))


def _images(kind: str) -> Format:
    def write(folder: Path) -> None:
        for number, content in enumerate(files_of(kind)[:6]):
            path = folder / "class" / f"{number:02d}.{kind}"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)

    def read(folder: Path) -> ps.Dataset:
        return ps.ImageFolderDataset(folder).map(lambda content, label: ps.image.decode_image(content))

    return Format(kind, write, read)


def _numbers() -> ps.Dataset:
    return ps.Dataset.range(COUNT).map(lambda i: {"a": i, "b": np.full(3, i / 2), "s": b"x" * (i % 4)})


def _saved(compression: str | None, shards: int) -> Format:
    def write(folder: Path) -> None:
        _numbers().save(folder / "saved", compression, shard_func=lambda row: row["a"] % shards)

    name = f"saved {compression}" if compression else "saved"
    return Format(name, write, lambda folder: ps.Dataset.load(folder / "saved"), foreign=False, whole=True)


def _kept(name: str, keep: Callable[[ps.Dataset, Path], ps.Dataset], elements: int) -> Format:
    """Build a cache, which rewrites damaged files, or a snapshot, which raises an error for them."""

    def write(folder: Path) -> None:
        with keep(_numbers(), folder / "kept").iterator(executor="inline") as found:
            for _ in zip(range(elements), found, strict=False):
                pass

    heals = name.startswith("cache")
    return Format(name, write, lambda f: keep(_numbers(), f / "kept"), foreign=False, whole=True, heals=heals)


@cache
def _shard(folder: Path) -> ps.Dataset:
    """Read the records of one shard like the catalog, whose metadata has their number."""
    source = ShardsSource((Stretch(str(folder / FILE), 0, COUNT, COUNT),))
    return ps.Dataset._of(Scan(source=source), ps.Options())


def formats() -> dict[str, Format]:
    """Return every format by its name."""
    structured = np.zeros(COUNT, [("x", "<i4"), ("y", "<f8", (2,)), ("s", "S3")])
    vectors = np.arange(3 * COUNT, dtype=np.float32).reshape(COUNT, 3)
    fixed = b"head" + b"".join(b"%04d" % i for i in range(COUNT)) + b"end"
    whole = {"foreign": False}
    found = [
        Format("tfrecord", _tfrecord(None), lambda f: ps.TFRecordDataset(f / FILE), **whole),
        Format("tfrecord gz", _tfrecord("GZIP"), lambda f: ps.TFRecordDataset(f / FILE, "GZIP"), **whole),
        Format("tfrecord zlib", _tfrecord("ZLIB"), lambda f: ps.TFRecordDataset(f / FILE, "ZLIB"), **whole),
        Format("tfrecord indexed", _tfrecord(None), lambda f: ps.IndexedTFRecordDataset(f / FILE), **whole),
        Format("catalog shard", _tfrecord(None), _shard, **whole),
        Format("text", _content(_lines()), lambda f: ps.TextLineDataset(f / FILE), _line_places, any_bytes=True),
        Format("text gz", _content(_lines(), gzip.compress), lambda f: ps.TextLineDataset(f / FILE, "GZIP")),
        Format("csv", _content(_rows()), _csv),
        Format("make_csv", _content(_rows()), _make_csv),
        Format("json", _content(_objects()), lambda f: _json(f / FILE), _object_places),
        Format("json zlib", _content(_objects(), zlib.compress), lambda f: _json(f / FILE, "ZLIB")),
        Format("arrow", _arrow(None), lambda f: ps.ArrowDataset(f / FILE, fill_null={"n": 0})),
        Format("arrow zstd", _arrow("zstd"), lambda f: ps.ArrowDataset(f / FILE, fill_null={"n": 0})),
        Format("arrow stream", _arrow(None, stream=True), lambda f: ps.ArrowDataset(f / FILE, ["s", "l", "d"])),
        Format("arrow own", _own_arrow, lambda f: ps.ArrowDataset(f / FILE)),
        Format("parquet", _parquet(), lambda f: ps.ParquetDataset(f / FILE, fill_null={"n": 0})),
        Format(
            "parquet plain",
            _parquet(compression="none", use_dictionary=False, data_page_version="2.0"),
            lambda f: ps.ParquetDataset(f / FILE, ["l", "s", "i"]),
        ),
        Format("lmdb", _lmdb, lambda f: ps.LmdbDataset(f / FILE)),
        Format("mds", _mds, ps.MDSDataset),
        Format("litdata", _litdata, ps.LitDataset),
        Format("npy", _array(vectors), lambda f: ps.NumpyDataset(f / FILE)),
        Format("tokens", _content(bytes(range(64))), lambda f: ps.TokenDataset(f / FILE, np.uint16, 3), any_bytes=True),
        Format("npy structured", _array(structured), lambda f: ps.NumpyDataset(f / FILE, mmap=False)),
        Format("npz", _arrays(np.savez), lambda f: ps.NumpyDataset(f / FILE)),
        Format("npz packed", _arrays(np.savez_compressed), lambda f: ps.NumpyDataset(f / FILE)),
        Format("tar", _tar("w", tarfile.PAX_FORMAT), lambda f: ps.WebDataset(f / FILE)),
        Format("tar gz", _tar("w:gz", tarfile.GNU_FORMAT), lambda f: ps.WebDataset(f / FILE)),
        Format("sqlite", _sqlite, _sql, named=False),
        Format("fixed", _content(fixed), lambda f: ps.FixedLengthRecordDataset(f / FILE, 4, 4, 3)),
        Format(
            "fixed gz",
            _content(fixed, gzip.compress),
            lambda f: ps.FixedLengthRecordDataset(f / FILE, 4, 4, 3, compression_type="GZIP"),
        ),
        Format("example", _example, _parsed, named=False),
        *map(_images, ("jpeg", "png", "webp", "bmp", "gif")),
        _saved(None, 1),
        _saved("ZSTD", 3),
        _kept("cache", lambda ds, path: ds.cache(path), COUNT + 1),
        _kept("cache part", lambda ds, path: ds.cache(path), COUNT // 2),
        _kept("snapshot", lambda ds, path: ds.snapshot(path), COUNT + 1),
    ]
    if importlib.util.find_spec("array_record") is not None:
        found.append(Format("array record", _array_record, lambda f: ps.ArrayRecordDataset(f / FILE), **whole))
    return {one.name: one for one in found}


def sound_files(chosen: Format, folder: Path) -> dict[str, bytes]:
    """Return the files of a format, by their place in a folder."""
    folder.mkdir(parents=True)
    chosen.write(folder)
    found: dict[str, bytes] = {}
    for path in sorted(folder.rglob("*")):
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):  # a cache removes files after its iteration
            found[str(path.relative_to(folder))] = path.read_bytes()
    if not found:
        raise Wrong(f"{chosen.name} has no files")
    return found
