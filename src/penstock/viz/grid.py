"""The function `grid` draws images and their labels as one PNG."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from penstock.errors import InvalidArgumentError
from penstock.opencv import opencv
from penstock.profiler.views.picture import Picture, text_width, written
from penstock.viz.parts import ImageExample, Names, label_names_of, take_apart

_GAP = 10
_TEXT = 13  # height of the letters of a caption
_LINE = 20
_NARROWEST = 96  # pixels of a column with captions
_MOST = 400  # images of a grid
_WIDEST = 1200  # pixels of a grid without a given number of columns


class Grid:
    """A grid of images. A notebook shows it, and `save(path)` writes it as a PNG.

    Example:
        >>> made = grid([np.zeros((16, 16), np.uint8)] * 3)
        >>> made, made.png[1:4]
        (<Grid of 3 images, 286 x 286 pixels: save(path) writes a PNG>, b'PNG')
    """

    def __init__(self, picture: Picture, count: int) -> None:
        self.picture, self.count = picture, count

    @cached_property
    def png(self) -> bytes:
        """The content of a PNG file."""
        return self.picture.png()

    @property
    def pixels(self) -> np.ndarray:
        """uint8 (height, width, 3), RGB."""
        return self.picture.pixels()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the grid as a PNG. Missing folders are made."""
        return written(path, self.png)

    def _repr_png_(self) -> bytes:
        return self.png

    def __repr__(self) -> str:
        size = f"{self.picture.width} x {self.picture.height}"
        return f"<Grid of {self.count} images, {size} pixels: save(path) writes a PNG>"


def grid(
    data: Any,
    n: int = 25,
    *,
    path: str | os.PathLike[str] | None = None,
    columns: int | None = None,
    size: int = 128,
    image: str | None = None,
    label: str | None = None,
    label_names: Names | None = None,
) -> Grid:
    """Draw the first images of a data set, or of any iterable of elements, in rows, each above its label.

    An image is an array of shape (height, width), (height, width, channels) or (channels, height, width), or the
    content of an image file. Batches are split into their elements. uint8 is drawn as it is. Other values are scaled,
    all images in the same way: floats from [0, 1], [-1, 1] or [0, 255], whichever contains all of them, and other
    values from the smallest to the largest.

    Args:
        data: A data set, or any iterable of elements.
        n: Largest number of images, at most 400. Default: 25.
        path: PNG file to write.
        columns: Number of images in a row. By default, about as many as rows.
        size: Longer side of an image in pixels. Small images are enlarged by an integer factor, without smoothing.
        image: Path of the value that is drawn, such as "image", "0" or "views.left". Default: the first image.
        label: Path of the value below the image. Default: a value with a name like "label", or the only other value.
        label_names: Names of the labels, a sequence or a dict. Default: the names that the data set has.

    Returns:
        The grid.

    Raises:
        InvalidArgumentError: If there are no images, if there is no value of a given name, or if an argument is out of
            range.
        MissingDependencyError: If OpenCV is not installed.

    Example:
        >>> import numpy as np, penstock as ps, tempfile, pathlib
        >>> ds = ps.Dataset.from_tensor_slices((np.zeros((6, 32, 32, 3), np.uint8), np.arange(6) % 2))
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "pets.png"
        >>> made = grid(ds.batch(4), n=5, label_names=["cat", "dog"], path=path)
        >>> made
        <Grid of 5 images, ...>
    """
    if not 1 <= n <= _MOST:
        message = f"n must be from 1 to {_MOST}, got n={n}."
        raise InvalidArgumentError(message, hint="Select the elements with skip, take or filter.")
    names = label_names_of(data) if label_names is None else label_names
    examples = take_apart(iter(data), n, image=image, label=label, label_names=names)
    return drawn(examples, path=path, columns=columns, size=size)


def drawn(
    examples: Sequence[ImageExample],
    *,
    path: str | os.PathLike[str] | None = None,
    columns: int | None = None,
    size: int = 128,
) -> Grid:
    """Return the grid of the examples that have an image."""
    shown = [example for example in examples if example.image is not None]
    if not shown:
        message = "There are no images in these elements."
        hint = "An image has 2 or 3 axes, or is the content of an image file. For others: penstock.viz.table."
        raise InvalidArgumentError(message, hint=hint)
    if not 8 <= size <= 2048 or (columns is not None and columns < 1):
        message = f"size must be from 8 to 2048 pixels and columns at least 1, got size={size}, columns={columns}."
        raise InvalidArgumentError(message)
    pictures = [_fitted(pixels, size) for pixels in as_bytes([example.image for example in shown])]
    captioned = any(example.caption for example in shown)
    width = max(max(picture.shape[1] for picture in pictures), _NARROWEST if captioned else 8)
    across = columns or min(int(np.ceil(np.sqrt(len(shown) * 1.3))), max(_WIDEST // (width + _GAP), 1))
    across = min(across, len(shown))
    rows = [range(start, min(start + across, len(shown))) for start in range(0, len(shown), across)]
    heights = [max(pictures[i].shape[0] for i in row) for row in rows]
    line = _LINE if captioned else 0
    total = sum(heights) + len(rows) * (line + _GAP) + _GAP
    canvas = Picture(across * (width + _GAP) + _GAP, total)
    top = _GAP
    for row, height in zip(rows, heights, strict=True):
        for place, i in enumerate(row):
            left = _GAP + place * (width + _GAP)
            high, wide = pictures[i].shape[:2]
            canvas.image(left + (width - wide) // 2, top + (height - high) // 2, pictures[i])
            if line:
                text = _cut(shown[i].caption, width)
                canvas.text(left + width / 2, top + height + _LINE - 5, text, size=_TEXT, anchor="middle")
        top += height + line + _GAP
    made = Grid(canvas, len(shown))
    if path is not None:
        made.save(path)
    return made


def as_bytes(images: Sequence[Any]) -> list[np.ndarray]:
    """Return images as uint8 (height, width, 3), all scaled in the same way.

    >>> [int(picture.max()) for picture in as_bytes([np.ones((4, 4), np.float32), np.zeros((4, 4), np.float32)])]
    [255, 0]
    """
    if all(image.dtype == np.uint8 for image in images):
        return [_coloured(image) for image in images]
    numbers = [np.nan_to_num(image.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0) for image in images]
    low = min(float(image.min()) for image in numbers)
    high = max(float(image.max()) for image in numbers)
    if all(image.dtype == np.uint16 for image in images):
        low, high = 0.0, 65535.0
    elif all(image.dtype.kind == "f" for image in images) and low >= 0.0 and high <= 1.0:
        low, high = 0.0, 1.0
    elif all(image.dtype.kind == "f" for image in images) and low >= -1.0 and high <= 1.0:
        low, high = -1.0, 1.0
    elif all(image.dtype == bool for image in images):
        low, high = 0.0, 1.0
    elif low >= 0.0 and 1.0 < high <= 255.0 and (high > 127.0 or all(image.dtype.kind == "f" for image in images)):
        low, high = 0.0, 255.0
    factor = 255.0 / (high - low) if high > low else 0.0
    return [_coloured(np.clip(np.rint((image - low) * factor), 0, 255).astype(np.uint8)) for image in numbers]


def _coloured(image: np.ndarray) -> np.ndarray:
    """Convert grey to colour, and put transparent images on white."""
    if image.ndim == 2:
        return np.repeat(image[..., None], 3, axis=2)
    if image.shape[2] == 4:
        share = image[..., 3:].astype(np.uint16)
        return ((image[..., :3] * share + 255 * (255 - share) + 127) // 255).astype(np.uint8)
    return np.ascontiguousarray(image)


def _fitted(image: np.ndarray, size: int) -> np.ndarray:
    """Return the image with a longer side of `size` pixels. Enlargement uses the largest integer factor that fits."""
    cv2 = opencv()
    high, wide = image.shape[:2]
    factor = size / max(high, wide)
    if factor >= 2:
        return np.repeat(np.repeat(image, int(factor), axis=0), int(factor), axis=1)
    if factor >= 1:
        return image
    shape = (max(round(wide * factor), 1), max(round(high * factor), 1))
    return cv2.resize(image, shape, interpolation=cv2.INTER_AREA)


def _cut(text: str, width: float) -> str:
    """Return the beginning of a text that is at most `width` pixels wide."""
    if text_width(text, _TEXT) <= width:
        return text
    text = text[:200]
    while text and text_width(text + "…", _TEXT) > width:
        text = text[:-1]
    return text.rstrip() + "…"
