"""Reference and generated sources: sequences, and files of Arrow, Parquet, NumPy, tar and TFRecord with an index."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from tests.generated import made
from tests.reference import source_elements, value_of

import penstock as ps
from penstock.sources.arrays import BlockSource
from penstock.sources.arrow import ArrowSource
from penstock.sources.image_folder import ImageFolderSource
from penstock.sources.indexed_records import IndexedRecordsSource
from penstock.sources.numpy_files import NumpySource
from penstock.sources.parquet import ParquetSource
from penstock.sources.records import RecordsSource
from penstock.sources.sequence import SequenceSource
from penstock.sources.webdataset import WebSource

STEPS: list[Any] = []


@source_elements.register
def _(source: SequenceSource) -> Iterator[Any]:
    return (value_of(source.sequence[i]) for i in range(len(source.sequence)))


@source_elements.register
def _(source: BlockSource) -> Iterator[Any]:
    return iter(source.block.elements())


@source_elements.register(ParquetSource)
@source_elements.register(ArrowSource)
def _(source: Any) -> Iterator[Any]:
    """By way of Python values, for integers, texts and lists of integers."""
    import pyarrow as pa
    import pyarrow.parquet

    for name in source.files:
        if isinstance(source, ParquetSource):
            table = pyarrow.parquet.read_table(name)
        else:
            table = pa.ipc.open_file(Path(name).read_bytes()).read_all()
        kinds = {part.name: part.type for part in table.schema}
        for row in table.to_pylist():
            yield {part: _typed(value, kinds[part]) for part, value in row.items()}


def _typed(value: Any, kind: Any) -> Any:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, list):
        return np.array(value, str(kind.value_type))  # integers: Arrow calls them what numpy does
    return np.dtype(str(kind)).type(value)


@source_elements.register
def _(source: NumpySource) -> Iterator[Any]:
    for name in source.files:
        loaded = np.load(name)
        if isinstance(loaded, np.ndarray):
            yield from loaded
            continue
        with loaded:
            arrays = dict(loaded)
        for row in range(len(next(iter(arrays.values())))):
            yield {key: array[row] for key, array in arrays.items()}


@source_elements.register
def _(source: WebSource) -> Iterator[Any]:
    for name in source.files:
        sample: dict[str, bytes] = {}
        with tarfile.open(name) as archive:
            for member in archive:
                key, _, suffix = member.name.partition(".")
                content = archive.extractfile(member)
                assert content is not None
                if sample.get("__key__", key.encode()) != key.encode():
                    yield sample
                    sample = {}
                sample["__key__"] = key.encode()
                sample[suffix] = content.read()
        if sample:
            yield sample


@source_elements.register
def _(source: IndexedRecordsSource) -> Iterator[bytes]:
    return source_elements(RecordsSource(source.files))


@source_elements.register
def _(source: ImageFolderSource) -> Iterator[Any]:
    for name, label in zip(source.files, source.labels or (), strict=True):
        yield Path(name).read_bytes(), np.int64(label)


# -- generated


class Squares:
    """A map-style data set as torch has them."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, i: int) -> dict[str, Any]:
        return {"b": np.float32(i) / 2, "a": i * i}


class Batched(Squares):
    def __getitems__(self, indices: list[int]) -> list[dict[str, Any]]:
        return [self[i] for i in indices]


@cache
def _file(make: Callable[[Path, int], None], count: int) -> str:
    return str(made(f"{make.__name__}-{count}", lambda path: make(path, count)))


def _table(count: int) -> Any:
    import pyarrow as pa

    numbers = list(range(count))
    return pa.table({"a": pa.array(numbers, pa.int32()), "b": pa.array([n * n for n in numbers], pa.int64())})


def parquet(path: Path, count: int) -> None:
    import pyarrow.parquet

    pyarrow.parquet.write_table(_table(count), path, row_group_size=5)


def arrow(path: Path, count: int) -> None:
    import pyarrow as pa

    table = _table(count)
    table = table.append_column("text", pa.array(["é" * (i % 3) for i in range(count)], pa.string()))
    table = table.append_column("list", pa.array([[i] * (i % 4) for i in range(count)], pa.list_(pa.int16())))
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=4)


def npy(path: Path, count: int) -> None:
    with path.open("wb") as file:
        np.save(file, np.arange(3 * count, dtype=np.float32).reshape(count, 3) / 4)


def npz(path: Path, count: int) -> None:
    with path.open("wb") as file:
        np.savez(file, a=np.arange(count), b=np.arange(count) / 2)


def tar(path: Path, count: int) -> None:
    with tarfile.open(path, "w") as archive:
        for i in range(count):
            for suffix in ("jpg", "cls"):
                member = tarfile.TarInfo(f"{i:03d}.{suffix}")
                member.size = i
                archive.addfile(member, io.BytesIO(bytes(i)))


def tfrecord(path: Path, count: int) -> None:
    with ps.io.TFRecordWriter(path) as writer:
        for i in range(count):
            writer.write(b"r" * (i % 5))


def _images(count: int) -> ps.Dataset:
    def write(folder: Path) -> None:
        for i in range(count):
            path = folder / f"class{i % 2}" / f"{i:02d}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(bytes(i % 7))

    return ps.ImageFolderDataset(made(f"images-{count}", write))


def _halves(make: Callable[[Path, int], None], count: int) -> list[str]:
    """Two files with `count` rows in all."""
    return [_file(make, count // 2), _file(make, count - count // 2)]


SOURCES: list[tuple[str, Callable[[int], ps.Dataset], str]] = [
    ("list", lambda n: ps.Dataset.from_list([(i, i * 2) for i in range(n + 1)]), "pair"),
    ("sequence", lambda n: ps.Dataset.from_sequence(Squares(n)), "dict"),
    ("sequence at once", lambda n: ps.Dataset.from_sequence(Batched(n)), "dict"),
    ("parquet", lambda n: ps.ParquetDataset(_halves(parquet, n)), "dict"),
    ("parquet in turn", lambda n: ps.ParquetDataset(_halves(parquet, n), num_parallel_reads=2), "dict"),
    ("arrow", lambda n: ps.ArrowDataset(_file(arrow, n)), "other"),
    ("npy", lambda n: ps.NumpyDataset(_halves(npy, n)), "vector"),
    ("npz", lambda n: ps.NumpyDataset(_file(npz, n)), "dict"),
    ("tar", lambda n: ps.WebDataset(_halves(tar, n)), "other"),
    ("indexed records", lambda n: ps.IndexedTFRecordDataset(_halves(tfrecord, n)), "bytes"),
    ("images", lambda n: _images(n + 1), "other"),
]
