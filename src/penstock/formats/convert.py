"""The function `convert` writes files of one format as files of another format."""

from __future__ import annotations

import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from penstock.catalog.progress import Reporter
from penstock.errors import AlreadyExistsError, FailedPreconditionError, InvalidArgumentError, PenstockError
from penstock.formats.folders import ImageFolderWriter, as_huggingface, describe
from penstock.formats.recognise import recognise
from penstock.formats.tables import BatchTable, read_table
from penstock.formats.texts import CsvFile, JsonLinesFile
from penstock.formats.writers import ShardFolder, TableWriter, TFRecordFile, WebDatasetFile, arrow_file, parquet_file
from penstock.io.writing import FULL, local, writing

_SAMPLES = ("mds", "litdata")  # folders of shards of samples, and an index of the shards
_ENDINGS: dict[str, tuple[str, ...]] = {
    "parquet": (".parquet",),
    "arrow": (".arrow", ".feather"),
    "tfrecord": (".tfrecord", ".tfrecords", ".tfrecord.gz"),
    "webdataset": (".tar", ".tar.gz", ".tgz"),
    "csv": (".csv", ".csv.gz"),
    "jsonl": (".jsonl", ".ndjson", ".jsonl.gz"),
    **dict.fromkeys(("image_folder", "huggingface", *_SAMPLES), ()),
}
_COMPRESSIONS: dict[str, tuple[str | None, ...]] = {
    "parquet": ("snappy", "zstd", "gzip", "lz4", "brotli", None),
    "arrow": (None, "lz4", "zstd"),
    "tfrecord": (None, "gzip", "zlib"),
    "webdataset": (None, "gzip"),
    "csv": (None, "gzip"),
    "jsonl": (None, "gzip"),
    **dict.fromkeys(("image_folder", "huggingface"), (None,)),
    **dict.fromkeys(_SAMPLES, (None, "zstd")),
}
_SHARD = re.compile(r"data-\d+-of-\d+\..+|(dataset_info|state|index)\.json|shard\.\d+\.mds.*|chunk-0-\d+\..*bin")


@dataclass(frozen=True)
class Converted:
    """The number of written rows, and the written files."""

    rows: int
    files: tuple[str, ...]
    bytes: int


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    source_format: str | None = None,
    target_format: str | None = None,
    columns: Sequence[str] | None = None,
    shards: int | None = None,
    compression: str | None = None,
    overwrite: bool = False,
    float32: bool = False,
) -> Converted:
    r"""Convert a file or folder to another format, row by row in the same order.

    Names and values stay the same. A value that the target cannot hold is an error; nothing is rounded, unless
    `float32` is True. The target is replaced when everything is written; an error or an interrupt leaves the old one.

    Sources are CSV, JSON Lines, Parquet, Arrow, TFRecord, WebDataset, folders of images, folders of Hugging Face's
    `save_to_disk`, folders of MosaicML Streaming (MDS) and LitData, ArrayRecord, LMDB (columns `key` and `value`), and
    lines of text. Targets are `"tfrecord"`, `"arrow"`, `"parquet"`, `"webdataset"`, `"csv"`, `"jsonl"`, and the folders
    `"image_folder"`, `"huggingface"`, `"mds"` and `"litdata"`.

    A folder of images takes one image from each row. Its class is `class_name`, or `label` with the source's names, or
    else the number in five digits. Its name is `path`, `__key__` or `file_name`, or else the number of the row.

    Args:
        source: A file or a folder on this machine.
        target: The file or folder to write.
        source_format: Name of the format. By default, it is recognised by the contents and the name.
        target_format: Name of the format. By default, it is recognised by the name.
        columns: Names of the columns to write, in this order. Default: all columns.
        shards: Number of files in a folder, such as `data-00000-of-00008.parquet`, with consecutive rows in each.
            Default: one file. For MDS and LitData the default is shards of at most 64 MiB before compression.
        compression: Compression of the target.
        overwrite: If True, a target that exists is replaced. Default: False.
        float32: If True, float64 columns are written as float32, which is the only float of tf.train.Example.

    Returns:
        A summary with the number of `rows`.

    Raises:
        NotFoundError: If there is no source.
        AlreadyExistsError: If the target exists and `overwrite` is False.
        InvalidArgumentError: If there is no such format, compression or column, or if the target would round a value.
        InvalidTypeError: If the target cannot hold a column.
        DataLossError: If a file of the source is damaged.
        FailedPreconditionError: If the disk is full, or if the target cannot be written.

    Example:
        >>> import pathlib, tempfile, penstock as ps
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "pets.csv").write_text("name,age\nRex,7\nTom,2\n")
        >>> convert(folder / "pets.csv", folder / "pets.parquet").rows
        2
        >>> ps.ParquetDataset(folder / "pets.parquet")[1]
        {'name': b'Tom', 'age': np.int64(2)}
    """
    where = local(target, "the target")
    kind = _target_format(where, target_format, shards)
    packed = _compression(kind, compression, where)
    found = recognise(source, source_format)
    with _writing_to(where, where):
        _check_target(where, Path(found.path), overwrite=overwrite, folder=shards is not None or not _ENDINGS[kind])
    table = read_table(found)
    if columns is not None:
        table = table.of(columns)
    if float32:
        table = table.in_float32()
    if kind == "huggingface":
        table = as_huggingface(table)
    with _incomplete(where) as part, Reporter().step(f"{where.name}: writing {kind}", table.count, "rows") as step:
        if shards is not None or kind == "huggingface":
            rows = _in_shards(table, part, kind, packed, shards or 1, step)
        else:
            rows = _written(table.batches(), _writer(kind, part, table.schema, packed), step)
        if kind == "huggingface":
            describe(part, table.schema)
    files = tuple(str(file) for file in sorted(where.rglob("*")) if file.is_file()) if where.is_dir() else (str(where),)
    return Converted(rows, files, sum(Path(file).stat().st_size for file in files))


@contextmanager
def _incomplete(where: Path) -> Iterator[Path]:
    """Yield a path to write to. Then rename it to `where`; after an error, remove what was written."""
    part = where.with_name(f".{where.name}.incomplete-{uuid.uuid4().hex[:8]}")
    try:
        with _writing_to(where, part):
            where.parent.mkdir(parents=True, exist_ok=True)
            yield part
            _publish(part, where)
    except PenstockError:
        raise
    except OSError as error:
        if error.errno not in FULL:
            raise
        message = f"The disk that {str(where)!r} lies on is full."
        raise FailedPreconditionError(message, hint="Make room. No partial output remains.") from error
    finally:
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
        else:
            with suppress(FileNotFoundError, NotADirectoryError):
                part.unlink()


def _writing_to(where: Path, part: Path) -> AbstractContextManager[None]:
    return writing(part, f"The target {str(where)!r}", "Choose another one, in a folder that you may write to.")


def _target_format(where: Path, wanted: str | None, shards: int | None) -> str:
    if wanted is not None and wanted not in _ENDINGS:
        message = f"convert does not write {wanted!r}."
        raise InvalidArgumentError(message, hint=f"It writes {', '.join(_ENDINGS)}.")
    told = next((kind for kind, endings in _ENDINGS.items() if where.name.lower().endswith(endings)), None)
    if shards is not None:
        if shards < 1:
            message = f"shards must be at least 1, got {shards}."
            raise InvalidArgumentError(message)
        if wanted == "image_folder":
            message = "A folder of images has a file for each row, and no shards."
            raise InvalidArgumentError(message, hint="Leave out shards.")
        if told is not None:
            message = f"With shards the target is a folder, and {where.name!r} is called as a file."
            hint = f"For example {where.name.split('.')[0]!r}, and the format {told!r}."
            raise InvalidArgumentError(message, hint=hint)
    kind = wanted or told
    if kind is None:
        message = f"The format of the target {str(where)!r} is not known."
        named = ", ".join(ends[0] for ends in _ENDINGS.values() if ends)
        hint = f"Let its name end in {named}, or name the format: {', '.join(_ENDINGS)}."
        raise InvalidArgumentError(message, hint=hint)
    return kind


def _compression(kind: str, wanted: str | None, where: Path) -> str | None:
    if wanted is None:
        packed = where.name.lower().endswith((".gz", ".tgz"))
        return "gzip" if packed and "gzip" in _COMPRESSIONS[kind] else _COMPRESSIONS[kind][0]
    chosen = None if wanted.lower() == "none" else wanted.lower()
    if chosen not in _COMPRESSIONS[kind]:
        message = f"{kind} is not compressed with {wanted!r}."
        hint = f"There is {', '.join(str(one).lower() for one in _COMPRESSIONS[kind])}."
        raise InvalidArgumentError(message, hint=hint)
    return chosen


def _check_target(where: Path, source: Path, *, overwrite: bool, folder: bool) -> None:
    """Raise an error if the target exists, or if source and target contain each other."""
    target, origin = where.resolve(), source.resolve()
    if target == origin or target in origin.parents or (origin.is_dir() and origin in target.parents):
        message = f"The target {str(where)!r} and the source {str(source)!r} lie in one another."
        raise InvalidArgumentError(message, hint="Write somewhere else.")
    if not where.exists():
        return
    if not overwrite:
        message = f"There is something at {str(where)!r} already."
        raise AlreadyExistsError(message, hint="Remove it, or write over it: overwrite=True, --overwrite.")
    if where.is_dir() and (not folder or not all(_SHARD.fullmatch(file.name) for file in where.iterdir())):
        message = f"The folder {str(where)!r} holds more than shards that convert has written."
        hint = "Remove it yourself; convert replaces shards that it has written, and nothing else."
        raise AlreadyExistsError(message, hint=hint)


def _written(batches: Any, writer: TableWriter, step: Any) -> int:
    rows = 0
    try:
        for batch in batches:
            writer.write(batch)
            rows += batch.num_rows
            step.advance(batch.num_rows)
    finally:
        writer.close()
    return rows


def _writer(kind: str, path: Path, schema: Any, packed: str | None, number: int = 0, shared: Any = None) -> TableWriter:
    """Return the writer of one file, or of a folder. Its first row is row `number` of all.

    The archives of a WebDataset share a dict of suffixes. A folder of shards gets the first rows of its shards.
    """
    if kind == "image_folder":
        return ImageFolderWriter(path, schema)
    if kind in _SAMPLES:
        return ShardFolder(path, schema, kind, packed, shared or ())
    path.touch()  # the error of the system is clearer than those of the writing libraries
    if kind == "webdataset":
        return WebDatasetFile(path, schema, packed, number, {} if shared is None else shared)
    files: dict[str, Callable[[Path, Any, str | None], TableWriter]] = {
        "parquet": parquet_file,
        "arrow": arrow_file,
        "huggingface": partial(arrow_file, stream=True),
        "tfrecord": TFRecordFile,
        "csv": CsvFile,
        "jsonl": JsonLinesFile,
    }
    return files[kind](path, schema, packed)


def _in_shards(table: BatchTable, folder: Path, kind: str, compression: str | None, shards: int, step: Any) -> int:
    total = table.counted()
    step.expect(total)
    shared: Any = {total * shard // shards for shard in range(shards)} if kind in _SAMPLES else {}
    if kind in _SAMPLES:
        return _written(table.batches(), _writer(kind, folder, table.schema, compression, 0, shared), step)
    folder.mkdir()
    rows = _BatchRows(table.batches())
    ending = ".arrow" if kind == "huggingface" else _ENDINGS[kind][0]
    ending += ".gz" if compression == "gzip" and kind != "parquet" else ""
    for shard in range(shards):
        start, stop = total * shard // shards, total * (shard + 1) // shards
        path = folder / f"data-{shard:05d}-of-{shards:05d}{ending}"
        _written(rows.next(stop - start), _writer(kind, path, table.schema, compression, start, shared), step)
    return total


class _BatchRows:
    """The rows of batches, in parts of any size."""

    def __init__(self, batches: Iterator[Any]) -> None:
        self._batches, self._left = batches, None

    _left: Any

    def next(self, count: int) -> Iterator[Any]:
        while count > 0:
            batch = next(self._batches) if self._left is None else self._left
            taken = batch.slice(0, count)
            self._left = batch.slice(count) if batch.num_rows > count else None
            count -= taken.num_rows
            yield taken


def _publish(part: Path, where: Path) -> None:
    """Give the complete file or folder its final name, and remove the old one."""
    if not where.is_dir():
        part.replace(where)
        return
    old = where.with_name(f".{where.name}.replaced-{uuid.uuid4().hex[:8]}")
    where.rename(old)
    part.rename(where)
    shutil.rmtree(old, ignore_errors=True)
