"""open_image: images of Pillow that a kernel decodes."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from io import BytesIO
from os import fspath
from typing import Any

import numpy as np

from penstock.image.jpeg.block import JpegBlock
from penstock.torch.vision.planned import Pixels

_PILLOW: Any = import_module("PIL.Image")


def open_image(path: Any) -> Any:
    """Open an image as RGB, as `PIL.Image.open(path).convert("RGB")` does.

    A kernel decodes the usual JPEGs, with the same bits. Pillow opens all other files. If a transform of the data set
    runs in kernels, it takes the pixels without a copy.

    Args:
        path: The path of the file, or a `BytesIO` with its content. Pillow opens other file objects.

    Returns:
        An image of Pillow.

    Raises:
        Exception: The error of Pillow, if the file cannot be read or is damaged.

    Example:
        >>> import tempfile
        >>> from PIL import Image
        >>> from penstock.torch import open_image
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Image.new("RGB", (40, 30), "orange").save(f"{folder}/one.jpg")
        ...     open_image(f"{folder}/one.jpg").size
        (40, 30)
    """
    image = decoded_image(path)
    return _PILLOW.open(path).convert("RGB") if image is None else image


def decoded_image(path: Any) -> Any:
    """Return the image in a file, or None if Pillow has to read it."""
    found = decoded(path)
    try:
        return None if found is None else DecodedImage(*found)
    except Exception:  # Pillow refuses what the kernel takes
        return None


def decoded(path: Any) -> tuple[Pixels, bytes] | None:
    """Return the pixels of a JPEG as Pillow decodes it, and the content of the file; or None."""
    found = _read(path)
    pixels = None if found is None else _part(found[0], (0, 0, *found[1]))
    return None if found is None or pixels is None else (pixels, found[2])


def _read(path: Any) -> tuple[JpegBlock, tuple[int, int], bytes] | None:
    """Return a JPEG for the kernel, its height and width, and the content of the file; or None."""
    try:
        if type(path) is BytesIO:
            content = path.getvalue()
        else:
            with open(fspath(path), "rb", buffering=0) as file:  # noqa: PTH123 - half of the time of read_bytes
                content = file.read()
        block, most = JpegBlock([content]), _PILLOW.MAX_IMAGE_PIXELS  # of which more make Pillow warn
        if block.taken()[0]:
            height, width = block.shapes()[0, :2].tolist()
            if most is None or height * width <= most:
                return block, (height, width), content
    except (OSError, TypeError, ValueError):
        pass
    return None


def _part(block: JpegBlock, window: tuple[int, int, int, int]) -> Pixels | None:
    """Return a part of an image, or None if the file is damaged."""
    pixels = np.empty((1, *window[2:], 3), np.uint8)
    failed = block.decode(pixels, windows=np.array([window]), dct_method="INTEGER_ACCURATE")
    return None if failed else pixels[0]


class CodedImage:
    """A JPEG that a kernel decodes when a part of it is needed. `load` decodes it with Pillow, if it is damaged."""

    def __init__(self, block: JpegBlock, size: tuple[int, int], load: Callable[[], Pixels]) -> None:
        self._block, self._load, self.shape = block, load, (*size, 3)

    def part(self, top: int, left: int, height: int, width: int) -> Pixels:
        """Return a part of the image. All codes are read; damage anywhere raises Pillow's error."""
        found = _part(self._block, (top, left, height, width))
        return self._load()[top : top + height, left : left + width] if found is None else found


def coded_image(path: Any, load: Callable[[], Pixels]) -> CodedImage | None:
    """Return the image in a file, or None if Pillow has to read it."""
    found = _read(path)
    return None if found is None else CodedImage(*found[:2], load)


class DecodedImage(_PILLOW.Image):  # type: ignore[misc]
    """An image that becomes one of Pillow's class when Pillow needs its pixels."""

    pixels: Pixels | None = None

    def __init__(self, pixels: Pixels, content: bytes) -> None:
        super().__init__()
        self._mode, self._size, self.pixels = "RGB", pixels.shape[1::-1], pixels
        with _PILLOW.open(BytesIO(content)) as opened:
            self.info = opened.info

    def load(self) -> Any:
        """Give the pixels to Pillow, as each of Pillow's methods asks for."""
        if self.pixels is not None:
            self.im = _PILLOW.fromarray(self.pixels).im
            del self.pixels
        self.__class__ = _PILLOW.Image
        return self.load()

    def __eq__(self, other: object) -> bool:
        self.load()
        return bool(self == other)

    def __reduce_ex__(self, protocol: Any) -> Any:
        self.load()
        return self.__reduce_ex__(protocol)  # of Pillow's class

    __hash__ = None  # type: ignore[assignment]


def pixels_of(image: Any) -> Pixels:
    """Return the pixels of an image of Pillow, RGB or L."""
    found: Any = image.pixels if type(image) is DecodedImage else np.asarray(image)
    return found if found.ndim == 3 else found[..., None]
