"""from_huggingface: data sets of the `datasets` library, read from their memory or their mapped files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.block.spec import TensorSpec
from penstock.dataset.base import of_sequence, of_source
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.image import decode_image, extract_jpeg_shape
from penstock.plan.node import AUTOTUNE
from penstock.sources.arrow import TableSource
from penstock.sources.arrow_pieces import as_columns
from penstock.sources.generator import GeneratorSource
from penstock.sources.huggingface import StreamSource, in_format, is_feature, plain_columns
from penstock.sources.huggingface import contents as _contents  # the name counts for fingerprints of what decodes

if TYPE_CHECKING:
    from penstock.dataset.dataset import Dataset

_CHANNELS = {None: 0, "L": 1, "RGB": 3, "RGBA": 4}


def from_huggingface(
    dataset: Any, columns: Sequence[str] | None, fill_null: Mapping[str, Any] | None, decode: bool
) -> Dataset:
    """Implement `Dataset.from_huggingface`."""
    if isinstance(dataset, Mapping):
        splits = ", ".join(map(repr, dataset)) or "none"
        message = f"from_huggingface takes one split, got a {type(dataset).__name__} with the splits {splits}."
        raise InvalidTypeError(message, hint=f"For example dataset[{next(iter(dataset), 'train')!r}].")
    table = getattr(getattr(dataset, "data", None), "table", None)
    if table is not None and hasattr(dataset, "features"):
        if dataset.format["type"] == "custom":  # set_transform: the transform runs only when a row is read
            return of_sequence(dataset, "from_huggingface")
        return _of_table(dataset, table, columns, fill_null, decode)
    if hasattr(dataset, "with_format") and hasattr(dataset, "features") and isinstance(dataset, Iterable):
        return _of_stream(dataset, columns, fill_null, decode)
    message = f"from_huggingface takes a data set of the datasets library, got {type(dataset).__name__}."
    hint = "For other objects there are from_arrow, from_pandas, from_polars, from_sequence and from_generator."
    raise InvalidTypeError(message, hint=hint)


def _of_table(
    dataset: Any, table: Any, columns: Sequence[str] | None, fill_null: Mapping[str, Any] | None, decode: bool
) -> Dataset:
    wanted = as_columns(columns, fill_null)
    names = dataset.format["columns"] if wanted.names is None else wanted.names
    missing = [name for name in names if name not in table.column_names]
    if missing:
        message = f"There is no column {missing[0]!r}; the columns are {', '.join(table.column_names)}."
        raise InvalidArgumentError(message)
    table = plain_columns(table.select(list(names)), dataset.features)
    indices = getattr(dataset, "_indices", None)  # set after shuffle, select, filter, train_test_split
    numbers = None if indices is None else np.asarray(indices.column(0)).astype(np.int64)
    version = f"{getattr(dataset, '_fingerprint', '')}{list(names)}" if hasattr(dataset, "_fingerprint") else None
    made = of_source(TableSource(table, as_columns(None, fill_null), "from_huggingface", numbers, version))
    return _decoded(made, dataset.features, names, decode)


def _decoded(made: Dataset, features: Mapping[str, Any], names: Sequence[str], decode: bool) -> Dataset:
    images = {
        name: feature
        for name, feature in features.items()
        if name in names and is_feature(feature, "Image") and getattr(feature, "decode", True)
    }
    return made.map(_decoder(images), num_parallel_calls=AUTOTUNE) if images and decode else made


def _of_stream(
    dataset: Any, columns: Sequence[str] | None, fill_null: Mapping[str, Any] | None, decode: bool
) -> Dataset:
    wanted = as_columns(columns, fill_null)
    features = dataset.features
    if features is not None:
        names = list(features) if wanted.names is None else list(wanted.names)
        missing = [name for name in names if name not in features]
        if missing:
            raise InvalidArgumentError(f"There is no column {missing[0]!r}; the columns are {', '.join(features)}.")
        stream = StreamSource(dataset.select_columns(names), {name: features[name] for name in names}, fill_null)
        return _decoded(of_source(stream), features, names, decode)
    if fill_null is not None or not decode:
        message = "fill_null and decode=False need the features of a data set, which this stream does not have."
        raise InvalidArgumentError(
            message, hint="Declare them when the stream is created: dataset.map(function, features=...)."
        )

    def rows() -> Any:
        found = in_format(dataset, "numpy")
        return found if wanted.names is None else found.select_columns(list(wanted.names))

    return of_source(GeneratorSource(rows))


def _decoder(images: Mapping[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def decode_images(row: dict[str, Any]) -> dict[str, Any]:
        found = dict(row)
        for name, feature in images.items():
            found[name] = _decode(_contents(row[name], name), feature)
        return found

    def spec(row: Any) -> Any:
        channels = {name: _CHANNELS.get(getattr(feature, "mode", None)) for name, feature in images.items()}
        return row | {name: TensorSpec((None, None, count or None), np.uint8) for name, count in channels.items()}

    decode_images.__penstock_spec__ = spec  # type: ignore[attr-defined]
    return decode_images


# marks of images that are rotated or name a transparent colour
_NOT_PLAIN = (b"Exif", b"exif", b"eXIf", b"Orientation", b"tRNS")


def _decode(content: bytes, feature: Any) -> np.ndarray:
    """Return (height, width, channels) of an image as `datasets` decodes it.

    Pillow decodes it if penstock's decoders may return other pixels.
    """
    head, mode = content[: 1 << 16], getattr(feature, "mode", None)
    plain = mode in (None, "RGB") and not any(mark in head for mark in _NOT_PLAIN)
    is_png = plain and head[:4] == b"\x89PNG" and head[24] == 8 and head[25] in (0, 2, 6)  # 8 bits, no palette
    if is_png or (plain and head[:2] == b"\xff\xd8" and extract_jpeg_shape(content)[2] != 4):
        return decode_image(content, channels=_CHANNELS[mode])
    image = np.asarray(feature.decode_example({"bytes": content, "path": None}))
    if image.dtype != np.uint8:
        message = f"Images of 8 bits are decoded, and datasets decodes this one to {image.dtype}."
        hint = "Write from_huggingface(dataset, decode=False) and ps.image.decode_png(file, dtype=np.uint16) in a map."
        raise InvalidArgumentError(message, hint=hint)
    return image if image.ndim == 3 else image[..., None]
