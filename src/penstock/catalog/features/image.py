"""Image: a picture, stored compressed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock import image as codecs
from penstock.catalog.features.feature import Feature, shape_json
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.io import FixedLenFeature

_MAGIC = {"jpeg": b"\xff\xd8\xff", "png": b"\x89PNG"}


class Image(Feature):
    """A picture; uint8 (height, width, channels), `None` where a size differs from picture to picture.

    `encoding_format` is "png" (exact) or "jpeg". An array is encoded so; bytes, and the file that a path names, are
    taken as they are and must already be in that format.

    >>> photo = Image(shape=(None, None, 3), encoding_format="jpeg")
    >>> photo.shape
    (None, None, 3)
    """

    tfds_class = "tensorflow_datasets.core.features.image_feature.Image"

    def __init__(self, *, shape: tuple[int | None, ...] = (None, None, 3), encoding_format: str = "png") -> None:
        if len(shape) != 3 or shape[2] not in (1, 3, 4):
            message = f"shape must be (height, width, channels) with 1, 3 or 4 channels, got {shape}."
            raise InvalidArgumentError(message, hint="Use None for a size that is not always the same.")
        if encoding_format not in _MAGIC:
            message = f'encoding_format must be "jpeg" or "png", got {encoding_format!r}.'
            raise InvalidArgumentError(message, hint="PNG keeps every bit; JPEG is smaller.")
        if encoding_format == "jpeg" and shape[2] == 4:
            message = "JPEG has no fourth channel, got shape with 4 channels."
            raise InvalidArgumentError(message, hint='Use encoding_format="png".')
        self.shape = tuple(shape)
        self.encoding_format = encoding_format

    def encode_example(self, value: Any, name: str) -> bytes:
        if isinstance(value, np.ndarray):
            self._check(value, name)
            return codecs.encode_jpeg(value) if self.encoding_format == "jpeg" else codecs.encode_png(value)
        if isinstance(value, str | os.PathLike):
            value = Path(value).read_bytes()
        if not isinstance(value, bytes):
            message = f"feature {name!r} must be an array, encoded bytes or a path, got {type(value).__name__}."
            raise InvalidTypeError(message, hint="Convert the value in _generate_examples().")
        if not value.startswith(_MAGIC[self.encoding_format]):
            message = (
                f"feature {name!r} must be {self.encoding_format.upper()}, but its bytes begin with {value[:4]!r}."
            )
            raise InvalidArgumentError(message, hint="Change encoding_format in _info(), or decode the picture first.")
        return value

    def _check(self, array: NDArray[Any], name: str) -> None:
        fits = array.ndim == 3 and all(want in (None, have) for want, have in zip(self.shape, array.shape, strict=True))
        if array.dtype != np.uint8 or not fits:
            message = f"feature {name!r} must be uint8 of shape {self.shape}, got {array.dtype} of shape {array.shape}."
            raise InvalidArgumentError(message, hint="Change the value, or the shape in _info().")

    def serialized_spec(self) -> FixedLenFeature:
        return FixedLenFeature((), bytes)

    def decode_example(self, stored: Any) -> Any:
        decode = codecs.decode_jpeg if self.encoding_format == "jpeg" else codecs.decode_png
        return decode(stored, channels=self.shape[2] or 0)

    def to_json(self) -> dict[str, Any]:
        entry = {"shape": shape_json(self.shape), "dtype": "uint8", "encodingFormat": self.encoding_format}
        return {"image": entry}
