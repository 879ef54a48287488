"""Sequence, Video and Dataset: any number of values of one kind."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from penstock.catalog.features.feature import (
    Doc,
    Feature,
    Lengths,
    Stored,
    StoredNest,
    documentation,
    repr_of_dict,
    shape_json,
)
from penstock.catalog.features.features_dict import FeaturesDict, to_feature
from penstock.catalog.features.image import Image
from penstock.catalog.features.tensor import Scalar, Tensor
from penstock.errors import InvalidArgumentError, InvalidTypeError


class Sequence(Feature):
    """Feature for a sequence of values of one feature.

    For a dict of features, an example has a list of dicts or a dict of lists, and is read as a dict with a vector for
    each feature. A sequence of sequences is read as a `RaggedTensor`.

    Args:
        feature: The feature of a value, or a dict of features.
        length: Number of values. Default: any number.
        doc: A `Documentation`, or a string.

    Example:
        >>> words = Sequence({"word": Scalar(bytes), "count": Scalar(np.int64)})
        >>> words.encode_example([{"word": "a", "count": 2}, {"word": "the", "count": 1}], "words")["word"]
        [b'a', b'the']
    """

    tfds_class = "tensorflow_datasets.core.features.sequence_feature.Sequence"

    def __init__(self, feature: Any, length: int | None = None, *, doc: Doc = None) -> None:
        self.doc = documentation(doc)
        self.feature: Feature = to_feature(feature)
        self.length = length

    def __getitem__(self, name: str) -> Feature:
        found: Feature = self.feature[name]  # type: ignore[index]
        return found

    def __repr__(self) -> str:
        kind = type(self).__name__
        if isinstance(self.feature, Mapping):
            return repr_of_dict(kind, self.feature)
        return f"{kind}({self.feature.repr_inside()})"

    @property
    def shape(self) -> Any:
        """The shape of the values with one more dimension: `length`, or None.

        A dict of shapes if the values are dicts.
        """
        return _in_front(self.length, getattr(self.feature, "shape", None))

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        return getattr(self.feature, "dtype", None)

    def part(self, wanted: Any, name: str) -> Feature:
        if not isinstance(self.feature, FeaturesDict):
            return super().part(wanted, name)
        return Sequence(self.feature.part(wanted, name), length=self.length)

    def encode_example(self, value: Any, name: str) -> Any:
        rows = _rows(value, name)
        if self.length is not None and len(rows) != self.length:
            message = f"feature {name!r} must have {self.length} values, got {len(rows)}."
            raise InvalidArgumentError(message, hint="Change the value, or the length in _info().")
        if type(self.feature) in (Scalar, Tensor) and self.feature.encoding == "none" and not self.feature.optional:  # type: ignore[attr-defined]
            plain: Tensor = self.feature  # type: ignore[assignment]
            if None not in plain.shape and len(rows):
                array = plain.checked(value, name, (None, *plain.shape))
                return list(array) if plain.dtype is bytes else array
        encoded = [self.feature.encode_example(row, name) for row in rows]
        return _columns(encoded) if encoded else empty_of(self.stored())

    def stored(self) -> StoredNest:
        return _repeated(self.feature.stored(), self.length)

    def decode_example(self, stored: Any) -> Any:
        return self.restore(stored, 0)

    def restore(self, stored: Any, rank: int, decoders: Any = None) -> Any:
        if decoders is not None and not isinstance(decoders, Mapping):
            return super().restore(stored, rank, decoders)
        return self.feature.restore(stored, rank + 1, decoders)

    def spec(self, lengths: Lengths = ()) -> Any:
        return self.feature.spec((*lengths, self.length))

    def to_json(self) -> dict[str, Any]:
        length = -1 if self.length is None else self.length
        return {"sequence": {"feature": self.feature.entry(), **({"length": str(length)} if length else {})}}

    def save_metadata(self, folder: Path, name: str) -> None:
        self.feature.save_metadata(folder, name)

    def load_metadata(self, folder: Path, name: str) -> None:
        self.feature.load_metadata(folder, name)


class Video(Sequence):
    """Feature for the frames of a video, each of which is an image.

    It accepts arrays, or encoded frames as bytes or paths. Video files are not decoded.

    Args:
        shape: Shape (frames, height, width, channels), with None for a dimension that differs.
        dtype: As in `Image`.
        encoding_format: As in `Image`.
        use_colormap: As in `Image`.
        doc: A `Documentation`, or a string.

    Example:
        >>> Video(shape=(None, 64, 64, 3)).feature.shape
        (64, 64, 3)
    """

    tfds_class = "tensorflow_datasets.core.features.video_feature.Video"

    def __init__(
        self,
        *,
        shape: tuple[int | None, ...] = (None, None, None, 3),
        dtype: Any = np.uint8,
        encoding_format: str | None = "png",
        use_colormap: bool = False,
        doc: Doc = None,
    ) -> None:
        if len(shape) != 4:
            message = f"shape must be (frames, height, width, channels), got {tuple(shape)}."
            raise InvalidArgumentError(message, hint="Use None for a size that is not always the same.")
        frame = Image(shape=tuple(shape[1:]), dtype=dtype, encoding_format=encoding_format, use_colormap=use_colormap)
        super().__init__(frame, length=shape[0], doc=doc)
        self.frame = frame

    def encode_example(self, value: Any, name: str) -> Any:
        if isinstance(value, str | bytes | Path) or hasattr(value, "read"):
            message = f"feature {name!r} must be the frames of a video, got {type(value).__name__}."
            raise InvalidTypeError(message, hint="Decode the video first, with PyAV or ffmpeg, and give its frames.")
        return super().encode_example(value, name)

    def to_json(self) -> dict[str, Any]:
        return {"video": self.frame.to_json()["image"] | {"shape": shape_json(self.shape)}}


class Dataset(Sequence):
    """Feature for a sequence of examples in an example, such as the steps of an episode.

    The values are read as those of a `Sequence`: stacked. tfds reads a `tf.data.Dataset` instead;
    `ps.Dataset.from_tensor_slices` makes a data set of the values.

    Example:
        >>> import numpy as np
        >>> steps = Dataset({"reward": np.float32}).encode_example([{"reward": 0.5}], "steps")
        >>> [float(reward) for reward in steps["reward"]]
        [0.5]
    """

    tfds_class = "tensorflow_datasets.core.features.dataset_feature.Dataset"


def _in_front(length: int | None, shape: Any) -> Any:
    if isinstance(shape, Mapping):
        return {name: _in_front(length, inner) for name, inner in shape.items()}
    return None if shape is None else (length, *shape)


def _rows(value: Any, name: str) -> list[Any]:
    """Return the values as a list, from a list of them or a dict of lists."""
    if isinstance(value, Mapping):
        columns = {key: _rows(column, name) for key, column in value.items()}
        lengths = {len(column) for column in columns.values()}
        if len(lengths) > 1:
            found = ", ".join(f"{key}: {len(column)}" for key, column in columns.items())
            message = f"the lists of feature {name!r} must be of one length, got {found}."
            raise InvalidArgumentError(message, hint="Each value of the sequence has all of them.")
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if isinstance(value, list | tuple | np.ndarray):
        return list(value)
    message = f"feature {name!r} must be a list, a tuple or an array, got {type(value).__name__}."
    raise InvalidTypeError(message, hint="A single value is a list of one.")


def _columns(encoded: list[Any]) -> Any:
    if isinstance(encoded[0], Mapping):
        return {key: _columns([row[key] for row in encoded]) for key in encoded[0]}
    return encoded


def _repeated(stored: StoredNest, length: int | None) -> StoredNest:
    if isinstance(stored, Stored):
        return stored.repeated(length)
    return {name: _repeated(part, length) for name, part in stored.items()}


def empty_of(stored: StoredNest) -> Any:
    """Return the encoding of an empty sequence."""
    return [] if isinstance(stored, Stored) else {name: empty_of(part) for name, part in stored.items()}
