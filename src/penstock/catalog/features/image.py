"""Image: an image, stored compressed. LabeledImage: an image whose pixels are numbers of classes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock import image as codecs
from penstock.catalog.features.class_label import ClassLabel
from penstock.catalog.features.feature import (
    Doc,
    Feature,
    Lengths,
    Stored,
    documentation,
    file_content,
    fits,
    shape_json,
    spec_in_sequences,
)
from penstock.errors import InvalidArgumentError, InvalidTypeError

_MAGIC = {"jpeg": b"\xff\xd8\xff", "png": b"\x89PNG"}
_DTYPES = tuple(np.dtype(name) for name in ("uint8", "uint16", "float32"))


class Image(Feature):
    """Feature for an image of shape (height, width, channels).

    It accepts an array or an image of Pillow, which is encoded; or bytes or the path of a file, which is stored as it
    is.

    Args:
        shape: Shape of the images, with None for a dimension that differs.
        dtype: uint8, uint16 (PNG), or float32. The four bytes of a float32 are stored as the four channels of a PNG.
        encoding_format: `"png"` (exact), `"jpeg"`, or None for PNG of arrays and any format of files.
        use_colormap: If True, images of one channel are shown in colours.
        doc: A `Documentation`, or a string.

    Example:
        >>> photo = Image(shape=(None, None, 3), encoding_format="jpeg")
        >>> photo.shape
        (None, None, 3)
    """

    tfds_class = "tensorflow_datasets.core.features.image_feature.Image"

    def __init__(
        self,
        *,
        shape: tuple[int | None, ...] | None = None,
        dtype: Any = np.uint8,
        encoding_format: str | None = None,
        use_colormap: bool = False,
        doc: Doc = None,
    ) -> None:
        self.doc = documentation(doc)
        shape = (None, None, 3) if shape is None else tuple(shape)
        if len(shape) != 3 or shape[2] not in (None, 0, 1, 3, 4):
            message = f"shape must be (height, width, channels) with 1, 3 or 4 channels, got {shape}."
            raise InvalidArgumentError(message, hint="Use None for a size that is not always the same.")
        if encoding_format not in (*_MAGIC, None):
            message = f'encoding_format must be "jpeg", "png" or None, got {encoding_format!r}.'
            raise InvalidArgumentError(
                message, hint="PNG keeps every bit; JPEG is smaller; None takes files as they are."
            )
        if encoding_format == "jpeg" and shape[2] == 4:
            message = "JPEG has no fourth channel, got shape with 4 channels."
            raise InvalidArgumentError(message, hint='Use encoding_format="png".')
        self.shape = shape
        self.dtype = np.dtype(dtype)
        self.encoding_format = encoding_format
        self.use_colormap = bool(use_colormap)
        if self.dtype not in _DTYPES or (encoding_format == "jpeg" and self.dtype != np.uint8):
            message = f"dtype must be uint8, or for PNG uint16 or float32, got {self.dtype}."
            raise InvalidArgumentError(message, hint="Any other array is a Tensor.")
        if self.dtype == np.float32 and shape[2] != 1:
            message = f"a float32 image has one channel, got shape {shape}."
            raise InvalidArgumentError(message, hint="The four bytes of each number take the four channels of a PNG.")

    def encode_example(self, value: Any, name: str) -> bytes:
        if isinstance(value, np.ndarray) or hasattr(value, "__array_interface__"):  # images of Pillow have the latter
            return self._encoded(np.asarray(value), name)
        value = file_content(value)
        if not isinstance(value, bytes):
            message = f"feature {name!r} must be an array, encoded bytes or a path, got {type(value).__name__}."
            raise InvalidTypeError(message, hint="Convert the value in _generate_examples().")
        wanted = self.encoding_format
        if wanted is not None and not value.startswith(_MAGIC[wanted]):
            message = f"feature {name!r} must be {wanted.upper()}, but its bytes begin with {value[:4]!r}."
            raise InvalidArgumentError(message, hint="Change encoding_format in _info(), or decode the image first.")
        return value

    def _encoded(self, array: NDArray[Any], name: str) -> bytes:
        if array.dtype != self.dtype or not fits(self.shape, array.shape):
            got = f"{array.dtype} of shape {array.shape}"
            message = f"feature {name!r} must be {self.dtype} of shape {self.shape}, got {got}."
            raise InvalidArgumentError(message, hint="Change the value, or the shape in _info().")
        if self.dtype == np.float32:
            array = np.ascontiguousarray(array).view(np.uint8)
        return codecs.encode_jpeg(array) if self.encoding_format == "jpeg" else codecs.encode_png(array)

    def stored(self) -> Stored:
        return Stored((), bytes)

    def decode_example(self, stored: Any) -> Any:
        stored = bytes(stored)
        if self.dtype == np.float32:
            return codecs.decode_png(stored, channels=4).view(np.float32)
        channels = self.shape[2] or 0
        if stored.startswith(_MAGIC["jpeg"]):
            return codecs.decode_jpeg(stored, channels=channels)
        if stored.startswith(_MAGIC["png"]):
            return codecs.decode_png(stored, channels=channels, dtype=self.dtype)
        return codecs.decode_image(stored, channels=channels, dtype=self.dtype, expand_animations=False)

    def spec(self, lengths: Lengths = ()) -> Any:
        height, width, channels = self.shape
        return spec_in_sequences((height, width, channels or None), self.dtype, lengths)

    def empty_batch(self) -> Any:
        return np.empty((0, *(size or 0 for size in self.shape)), self.dtype)

    def to_json(self) -> dict[str, Any]:
        entry: dict[str, Any] = {"shape": shape_json(self.shape), "dtype": self.dtype.name}
        if self.encoding_format is not None:
            entry["encodingFormat"] = self.encoding_format
        if self.use_colormap:
            entry["useColormap"] = True
        return {"image": entry}


class LabeledImage(Image):
    """Feature for a mask: an image of one channel, whose pixels are numbers of classes.

    Args:
        labels: Names of the classes, or their number.
        shape: As in `Image`.
        dtype: As in `Image`.
        encoding_format: As in `Image`.
        doc: A `Documentation`, or a string.

    Example:
        >>> mask = LabeledImage(labels=["ground", "cat"], shape=(None, None, 1))
        >>> mask.num_classes, mask.names
        (2, ['ground', 'cat'])
    """

    tfds_class = "tensorflow_datasets.core.features.labeled_image.LabeledImage"

    def __init__(
        self,
        *,
        labels: Sequence[str] | int | None,
        shape: tuple[int | None, ...] | None = None,
        dtype: Any = np.uint8,
        encoding_format: str | None = None,
        doc: Doc = None,
    ) -> None:
        super().__init__(
            doc=doc,
            shape=(None, None, 1) if shape is None else shape,
            dtype=dtype,
            encoding_format=encoding_format,
            use_colormap=True,
        )
        count = labels if isinstance(labels, int) else 0 if labels is None else None
        self._label = ClassLabel(num_classes=count, names=labels if isinstance(labels, Sequence) else None)

    @property
    def num_classes(self) -> int | None:
        return self._label.num_classes

    @property
    def names(self) -> list[str]:
        return self._label.names

    @property
    def has_names(self) -> bool:
        """True if the classes have names. See `ClassLabel`."""
        return self._label.has_names

    def facts(self) -> dict[str, Any]:
        return {**super().facts(), "num_classes": self.num_classes}

    def to_json(self) -> dict[str, Any]:
        return {"image": super().to_json()["image"] | {"label": self._label.to_json()["classLabel"]}}

    def save_metadata(self, folder: Path, name: str) -> None:
        self._label.save_metadata(folder, name)

    def load_metadata(self, folder: Path, name: str) -> None:
        self._label.load_metadata(folder, name)
