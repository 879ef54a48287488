"""The function `open_dataset` opens a file or folder of any format as a Dataset."""

from __future__ import annotations

import gzip
import json
import os
import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from penstock.audio.files import read_wav
from penstock.dataset.dataset import Dataset
from penstock.dataset.files import TFRecordDataset
from penstock.dataset.record_files import ArrayRecordDataset, FixedLengthRecordDataset, LmdbDataset, TextLineDataset
from penstock.dataset.sample_files import ImageFolderDataset, LitDataset, MDSDataset, WebDataset
from penstock.dataset.table_files import ArrowDataset, JsonLinesDataset, NumpyDataset, ParquetDataset
from penstock.errors import DataLossError, InvalidArgumentError, NotFoundError, optional_package
from penstock.experimental import SqlDataset, make_csv_dataset
from penstock.formats.noted import NotedFeatures, class_names, features_of, image_columns, seen_in
from penstock.formats.recognise import Found, recognise
from penstock.video import measured


@dataclass(frozen=True)
class Opened:
    """A file or folder of any format, opened as a data set.

    Attributes:
        found: Format and files.
        dataset: Data set of the elements.
        names: Names of the labels, by column.
        parts: Splits or tables, of which `dataset` is one.
        examples: Features of tf.train.Examples, or None for other elements.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "pets.jsonl"
        >>> _ = path.write_text('{"name": "Rex"}')
        >>> open_dataset(path).found.format
        'jsonl'
    """

    found: Found
    dataset: Dataset
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    parts: tuple[str, ...] = ()
    examples: NotedFeatures | None = None

    @property
    def label_names(self) -> Sequence[str] | None:
        """The names of the classes, if there is only one label."""
        return next(iter(self.names.values())) if len(self.names) == 1 else None


def open_dataset(
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002 - the name of the command line option
    *,
    part: str | None = None,
    record_bytes: int | None = None,
) -> Opened:
    """Open a file or folder of any known format as a data set.

    Elements of WAV files and videos describe the contents of a file; nothing is decoded.

    Args:
        path: A file or a folder on this machine.
        format: Name of the format, if it cannot be recognised.
        part: Split of a folder of tfds, table of a database, list in a JSON object, or key of a snapshot. Default: the
            first one.
        record_bytes: Length of a record in a file of records of the same length.

    Returns:
        The data set, the format, and the names of labels.

    Raises:
        NotFoundError: If there is nothing at `path`.
        InvalidArgumentError: If the format is not recognised, or if there is no such part.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "pets.jsonl"
        >>> _ = path.write_text('{"name": "Rex"}')
        >>> list(open_dataset(path).dataset)
        [{'name': b'Rex'}]
    """
    if record_bytes is not None and format not in (None, "fixed_length"):
        message = f"record_bytes is for records of one length, and the format is {format!r}."
        raise InvalidArgumentError(message, hint="Leave out one of the two.")
    found = recognise(path, format if record_bytes is None else "fixed_length")
    if found.format == "fixed_length":
        if record_bytes is None:
            message = "Records of one length have no mark between them, and record_bytes is not given."
            raise InvalidArgumentError(message, hint="Say how many bytes a record has: record_bytes, --record-bytes.")
        records = FixedLengthRecordDataset(list(found.files), record_bytes, compression_type=found.compression)
        return Opened(found, records)
    if part is not None and found.format not in _PARTED:
        message = f"{found.format} has no parts, and {part!r} was asked for."
        hint = "Splits of tfds, tables of SQLite, lists in JSON and snapshots have names."
        raise InvalidArgumentError(message, hint=hint)
    if found.format in _PARTED:
        return _PARTED[found.format](found, part)
    return _WHOLE[found.format](found)


def _records(found: Found, records: Dataset) -> Opened:
    """Return the records of files, decoded if they are tf.train.Examples."""
    from penstock.io import decode_example

    seen = seen_in(records.ignore_errors(), most=1000)  # an iteration reports damaged records
    return Opened(found, records.map(decode_example) if seen is not None else records, examples=seen)


def _csv(found: Found) -> Opened:
    batches = make_csv_dataset(
        list(found.files), 1, shuffle=False, num_epochs=1, compression_type=found.compression, prefetch_buffer_size=1
    )
    return Opened(found, batches.unbatch())


def _image_folder(found: Found) -> Opened:
    if any(len(Path(file).relative_to(found.path).parts) > 1 for file in found.files):
        folder = ImageFolderDataset(found.path)
        return Opened(found, folder, {"label": folder.class_names or []})
    return Opened(found, ImageFolderDataset(found.path, labels=None))


def _huggingface(found: Found) -> Opened:
    features = found.details["features"]
    return _table(found, ArrowDataset, image_columns(features), features)


def _parquet(found: Found) -> Opened:
    try:
        import pyarrow.parquet

        schema = pyarrow.parquet.read_schema(found.files[0])
        features = features_of(schema)
        images = [name for name in image_columns(features) if pyarrow.types.is_struct(schema.field(name).type)]
    except Exception:
        return Opened(found, ParquetDataset(list(found.files)))  # an iteration reports the damage
    return _table(found, ParquetDataset, images, features)


def _table(found: Found, read: Callable[..., Dataset], images: Sequence[str], features: Mapping[str, Any]) -> Opened:
    """Return the rows of a table, with the contents of images in place of Hugging Face's structs of them."""
    fill = {f"{name}.{part}": "" for name in images for part in ("bytes", "path")}
    rows = read(list(found.files), fill_null=fill or None)
    if images:
        rows = rows.map(lambda row: {key: row[key]["bytes"] if key in images else row[key] for key in row})
    return Opened(found, rows, class_names(features))


def _json(found: Found, part: str | None) -> Opened:
    """Return the objects of a list, or of one of the lists in an object, such as COCO's."""
    import pyarrow as pa

    content = Path(found.path).read_bytes()
    try:
        held = json.loads(gzip.decompress(content) if found.compression else content)
    except ValueError as error:
        message = f"The file is no JSON text: {error}."
        raise DataLossError(message, hint="Name the format of JSON Lines: jsonl.", file=found.path) from error
    values = held if isinstance(held, dict) else {"list": held}
    lists = [name for name, rows in values.items() if isinstance(rows, list) and rows and isinstance(rows[0], dict)]
    if not lists:
        message = f"The file must hold a list of objects, got {held!r:.60}, in {found.path!r}."
        raise InvalidArgumentError(message, hint='For example [{"name": "Rex"}] or {"pets": [{"name": "Rex"}]}.')
    try:
        table = pa.Table.from_pylist(values[_named(part, lists, "list")])
    except (pa.ArrowException, TypeError) as error:
        message = f"The objects must have values of one kind for each key: {error}, in {found.path!r}."
        raise InvalidArgumentError(message, hint="Read the file with json, and map it to such values.") from error
    return Opened(found, Dataset.from_arrow(table), parts=tuple(lists) if held is values else ())


def _of_files(found: Found, described: Callable[[str], dict[str, Any]]) -> Opened:
    """Return an element for each file: its path, and its values by `described`."""
    paths = Dataset.from_tensor_slices([os.fsencode(file) for file in found.files])
    return Opened(found, paths.map(lambda path: {"path": path, **described(os.fsdecode(path))}))


def _wav(path: str) -> dict[str, Any]:
    content, width, channels, rate = read_wav(Path(path).read_bytes())
    samples = len(content) // (width * channels)
    return {"sample_rate": rate, "channels": channels, "samples": samples, "seconds": samples / rate}


def _video(found: Found) -> Opened:
    optional_package("av", "Reading videos", "video")
    return _of_files(found, measured)


def _image(found: Found) -> Opened:
    return Opened(found, Dataset.from_tensors({"image": Path(found.path).read_bytes()}))


def _snapshots(found: Found, part: str | None) -> Opened:
    manifests = sorted(Path(found.path).glob("*/manifest.json"), key=lambda file: file.stat().st_mtime, reverse=True)
    folders = {file.parent.name[:12]: str(file.parent) for file in manifests}
    if not folders:
        message = f"In {found.path!r} nothing is written yet."
        raise NotFoundError(message, hint="`penstock cache ls` says what is being written.")
    key = _named(part, tuple(folders), "snapshot")
    return Opened(found, Dataset.load(folders[key]), parts=tuple(folders))


def _tfds(found: Found, part: str | None) -> Opened:
    from penstock.catalog import builder_from_directory

    builder = builder_from_directory(found.path)
    splits = tuple(builder.info.splits)
    if not splits:
        message = f"The data set in {found.path!r} has no splits."
        raise DataLossError(message, hint="Prepare it again.", file=found.path)
    features: Mapping[str, Any] = builder.info.features
    names = {name: feature.names for name, feature in features.items() if getattr(feature, "has_names", False)}
    return Opened(found, builder.as_dataset(_named(part, splits, "split")), names, splits)


def _sqlite(found: Found, part: str | None) -> Opened:
    try:
        with closing(sqlite3.connect(f"file:{Path(found.path).resolve()}?mode=ro", uri=True)) as database:
            listed = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
            tables = [name for (name,) in database.execute(listed)]
            if not tables:
                message = f"The database {found.path!r} has no tables."
                raise InvalidArgumentError(message)
            table = _named(part, tables, "table")
            columns = database.execute(f"PRAGMA table_info({_quoted(table)})").fetchall()
    except sqlite3.Error as error:
        message = f"The database cannot be read: {error}."
        raise DataLossError(message, file=found.path) from error
    names = [column[1] for column in columns]
    types = tuple(_affinity(column[2]) for column in columns)
    query = f"SELECT {', '.join(map(_quoted, names))} FROM {_quoted(table)}"
    rows = SqlDataset("sqlite", found.path, query, types)
    return Opened(found, rows.map(lambda *values: dict(zip(names, values, strict=True))), parts=tuple(tables))


def _quoted(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))


def _affinity(declared: str) -> Any:
    """Return the type of a column according to SQLite's rules for its declaration."""
    if "INT" in declared.upper():
        return np.int64
    return np.float64 if re.search("REAL|FLOA|DOUB", declared.upper()) else bytes


def _named(part: str | None, known: Sequence[str], kind: str) -> str:
    if part is None:
        return known[0]
    if part not in known:
        message = f"There is no {kind} {part!r}."
        raise InvalidArgumentError(message, hint=f"There are {', '.join(known)}.")
    return part


_WHOLE: dict[str, Callable[[Found], Opened]] = {
    "tfrecord": lambda found: _records(found, TFRecordDataset(list(found.files), compression_type=found.compression)),
    "array_record": lambda found: _records(found, ArrayRecordDataset(list(found.files))),
    "lmdb": lambda found: Opened(found, LmdbDataset(list(found.files))),
    "arrow": lambda found: Opened(found, ArrowDataset(list(found.files))),
    "parquet": _parquet,
    "csv": _csv,
    "jsonl": lambda found: Opened(found, JsonLinesDataset(list(found.files), compression_type=found.compression)),
    "numpy": lambda found: Opened(found, NumpyDataset(list(found.files))),
    "webdataset": lambda found: Opened(found, WebDataset(list(found.files))),
    "image_folder": _image_folder,
    "saved": lambda found: Opened(found, Dataset.load(found.path)),
    "huggingface": _huggingface,
    "mds": lambda found: Opened(found, MDSDataset(found.path)),
    "litdata": lambda found: Opened(found, LitDataset(found.path)),
    "text": lambda found: Opened(found, TextLineDataset(list(found.files), compression_type=found.compression)),
    "image": _image,
    "wav": lambda found: _of_files(found, _wav),
    "video": _video,
}
_PARTED: dict[str, Callable[[Found, str | None], Opened]] = {
    "json": _json,
    "tfds": _tfds,
    "sqlite": _sqlite,
    "snapshots": _snapshots,
}
