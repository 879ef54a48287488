"""Targets that are folders: images by class, and folders for `datasets.load_from_disk`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from penstock.dataset.sample_files import EXTENSIONS
from penstock.errors import AlreadyExistsError, InvalidArgumentError, InvalidTypeError
from penstock.formats.noted import class_names, features_of, noted
from penstock.formats.recognise import is_picture
from penstock.formats.suffixes import picture_ending
from penstock.formats.tables import BatchTable
from penstock.formats.writers import TableWriter, flattened, is_bytes

_NAMES = ("path", "__key__", "file_name", "filename", "image/filename")  # columns with the name of the file of an image
_LABELS = ("label", "cls", "image/class/label")
_CHOOSE = 'Choose what is written, as columns=["image", "label"] (--columns image,label).'


class ImageFolderWriter(TableWriter):
    """Writes `class/name.jpg` for each row: the bytes of its image, its class, and its name or number."""

    def __init__(self, folder: Path, schema: Any) -> None:
        self._folder, self._number = folder, 0
        self._schema = flattened(schema.empty_table()).schema
        names = self._schema.names
        self._class = next((name for name in ("class_name", *_LABELS) if name in names), None)
        self._known = class_names(features_of(schema)).get(self._class or "", [])
        self._path = next((name for name in _NAMES if name in names), None)
        # The key of a WebDataset sample is its number, not one of its values.
        used = {self._class, self._path, "__key__", "label" if self._class == "class_name" else None}
        left = [field.name for field in self._schema if field.name not in used]
        pictures = [name for name in left if is_bytes(self._schema.field(name).type)]
        if len(pictures) != 1 or len(left) > 1:
            held = ", ".join(f"{field.name}: {field.type}" for field in self._schema)
            message = f"A folder of images holds one image for each row, its class and its name, and here is {held}."
            raise InvalidArgumentError(message, hint=_CHOOSE)
        self._picture = pictures[0]
        folder.mkdir()

    def write(self, batch: Any) -> None:
        for row in flattened(batch).to_pylist():
            content = row[self._picture]
            if content is None or not is_picture(content):
                message = f"Row {self._number} has no image in {self._picture!r}, but {content!r:.40}."
                raise InvalidArgumentError(message, hint="A folder of images holds JPEG, PNG, GIF, BMP and WebP.")
            where = self._where(row, content)
            where.parent.mkdir(parents=True, exist_ok=True)
            try:
                with where.open("xb") as file:
                    file.write(content)
            except FileExistsError as error:
                name = str(where.relative_to(self._folder))
                message = f"Row {self._number} is called {name!r}, as one before it is."
                hint = f"Leave out the column {self._path!r}: rows get numbers."
                raise AlreadyExistsError(message, hint=hint) from error
            self._number += 1

    def _where(self, row: Mapping[str, Any], content: bytes) -> Path:
        name = f"{self._number:09d}" if self._path is None else _text(row[self._path])
        if PurePosixPath(name).suffix.lower() not in EXTENSIONS:
            name = f"{name}.{picture_ending(content)}"
        parts = PurePosixPath(name).parts
        if self._class is not None:
            kind = self._class_of(row[self._class])
            parts = parts if parts[:1] == (kind,) and len(parts) > 1 else (kind, *parts)
        if any(part.startswith((".", "/")) or "\0" in part or "\\" in part for part in parts):
            message = (
                f"Row {self._number} would be the file {'/'.join(parts)!r}, outside of the folder or hidden in it."
            )
            raise InvalidArgumentError(message, hint=f"Leave out the column {self._path!r}: rows get numbers.")
        return self._folder.joinpath(*parts)

    def _class_of(self, value: Any) -> str:
        if isinstance(value, int):
            if 0 <= value < len(self._known):
                value = self._known[value]
            elif 0 <= value <= 99_999 and not self._known:
                return f"{value:05d}"  # five digits, so that the sorted names are in the order of the numbers
        kind = _text(value) if isinstance(value, str | bytes) else ""
        if not kind or "/" in kind:
            message = f"Row {self._number} is of the class {value!r}, after which no folder can be called."
            raise InvalidArgumentError(message, hint="A class is a name without '/', or a number from 0 on.")
        return kind

    def close(self) -> None:
        """Do nothing, because every file is already closed."""


def _text(value: Any) -> str:
    try:
        return value.decode() if isinstance(value, bytes) else str(value)
    except UnicodeDecodeError as error:
        message = f"{value!r:.60} is no name of a file."
        raise InvalidArgumentError(message, hint="Names are UTF-8.") from error


def as_huggingface(table: BatchTable) -> BatchTable:
    """Return the same rows in the form of `datasets`: images as struct<bytes, path>, and features in the schema.

    Features in the metadata of the source stay. Without them, a column of bytes is an Image if its first value is an
    image.
    """
    import pyarrow as pa

    known = features_of(table.schema)
    if set(known) != set(table.schema.names):
        known = {}
    first = next(table.batches(), None)
    features, fields = {}, []
    for field in table.schema:
        feature = known.get(field.name) or _feature(field.name, field.type)
        if not known and is_bytes(field.type) and first is not None and _shows(first.column(field.name)):
            feature = {"_type": "Image"}
        features[field.name] = feature
        picture = isinstance(feature, Mapping) and feature.get("_type") == "Image" and is_bytes(field.type)
        fields.append(pa.field(field.name, _picture() if picture else field.type))
    schema = noted(pa.schema(fields, table.schema.metadata), features)

    def batches() -> Iterator[Any]:
        for batch in table.batches():
            columns = [
                column if column.type == field.type else _as_picture(column)
                for column, field in zip(batch.columns, schema, strict=True)
            ]
            yield pa.record_batch(columns, schema=schema)

    return replace(table, schema=schema, batches=batches)


def _picture() -> Any:
    import pyarrow as pa

    return pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def _shows(column: Any) -> bool:
    """Return True if the first valid value is an image."""
    found = column.drop_null()
    return bool(len(found)) and is_picture(found[0].as_py())


def _as_picture(column: Any) -> Any:
    import pyarrow as pa

    content = column.cast(pa.binary())
    paths = pa.nulls(len(column), pa.string())
    return pa.StructArray.from_arrays([content, paths], fields=list(_picture()), mask=content.is_null())


_CALLED = {
    "float": "float32",
    "double": "float64",
    "halffloat": "float16",
    "date32[day]": "date32",
    "date64[ms]": "date64",
}


def _feature(name: str, kind: Any) -> Any:
    """Return the feature of `datasets` for an Arrow type."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return {field.name: _feature(name, field.type) for field in kind}
    if pa.types.is_fixed_size_list(kind):
        return {"feature": _feature(name, kind.value_type), "length": kind.list_size, "_type": "Sequence"}
    if pa.types.is_large_list(kind):
        return {"feature": _feature(name, kind.value_type), "_type": "LargeList"}
    if pa.types.is_list(kind):
        return [_feature(name, kind.value_type)]
    if pa.types.is_nested(kind) or pa.types.is_dictionary(kind):
        message = f"Column {name!r} is {kind}, which Hugging Face's datasets has no feature for."
        raise InvalidTypeError(message, hint="Leave the column out (columns), or write parquet or arrow.")
    return {"dtype": _CALLED.get(str(kind), str(kind)), "_type": "Value"}


def describe(folder: Path, schema: Any) -> None:
    """Write the JSON files that `load_from_disk` needs in addition to the data."""
    files = sorted(file.name for file in folder.iterdir())
    info = {"citation": "", "description": "", "features": features_of(schema), "homepage": "", "license": ""}
    state: dict[str, Any] = {
        "_data_files": [{"filename": name} for name in files],
        "_fingerprint": _fingerprint(folder, files),
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
    }
    (folder / "dataset_info.json").write_text(json.dumps(info, indent=2), encoding="utf-8")
    (folder / "state.json").write_text(json.dumps(state, indent=2), encoding="utf-8")


def _fingerprint(folder: Path, files: list[str]) -> str:
    """Return a digest of the contents. `datasets` caches its results under this name."""
    import hashlib

    digest = hashlib.sha256()
    for name in files:
        with (folder / name).open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]
