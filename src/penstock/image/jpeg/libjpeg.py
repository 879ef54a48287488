"""Decoding of a JPEG with libjpeg-turbo and TensorFlow's numbers: its header, and its pixels in the caller's memory."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import DataLossError, InvalidArgumentError, optional_package
from penstock.image import rules
from penstock.image.checks import check_choice, check_contents, refuse_absurd_size
from penstock.image.jpeg.damage import (
    END,
    REFUSALS,
    describe,
    despite_damage,
    is_unnamed,
    is_whole,
    oddly_sampled,
    sampling,
    size_of,
    with_width,
    without_capacity,
)
from penstock.image.jpeg.kernels import CODES
from penstock.opencv import opencv
from penstock.trace.lift import traceable

if TYPE_CHECKING:
    import numpy.typing as npt


ODD = "sampled in a way that simplejpeg does not read"
COMPONENTS = {ODD: 3, "Gray": 1, "YCbCr": 3, "RGB": 3, "CMYK": 4, "YCCK": 4}
AMBIGUOUS = 5  # pixels of a side, of which several of libjpeg's scales make as many: it would take the largest of them
PIXELS_PER_BYTE = 512  # at least one bit per block of 8 x 8, so that no complete file has more


def _simplejpeg() -> Any:
    """Return the module `simplejpeg`: libjpeg-turbo. It works without the GIL."""
    return optional_package("simplejpeg", "Reading and writing images", "image")


def check_decode_jpeg(channels: int, ratio: int, dct_method: str) -> None:
    """Refuse arguments of `decode_jpeg` that are out of range.

    Raises:
        InvalidArgumentError: one is.
    """
    check_choice("decode_jpeg", "channels", channels, (0, 1, 3))
    check_choice("decode_jpeg", "ratio", ratio, (1, 2, 4, 8))
    check_choice("decode_jpeg", "dct_method", dct_method, ("", "INTEGER_FAST", "INTEGER_ACCURATE"))


def extract_jpeg_shape(contents: bytes, output_type: npt.DTypeLike = np.int32) -> npt.NDArray[Any]:
    """Read the shape of a JPEG from its header, without decoding it.

    Args:
        contents: The bytes of the file.
        output_type: Integer dtype of the result. Default: int32.

    Returns:
        Array `[height, width, channels]`. The channels are those of the file, 4 for CMYK.

    Raises:
        DataLossError: If the header is damaged.
        InvalidArgumentError: If the file is not a JPEG.

    Example:
        >>> from penstock.image import encode_jpeg
        >>> extract_jpeg_shape(encode_jpeg(np.zeros((4, 6, 1), np.uint8))).tolist()
        [4, 6, 1]
    """
    data = check_contents("extract_jpeg_shape", contents)
    height, width, space = _header(data)
    return np.array([height, width, COMPONENTS[space]], output_type)


@traceable("image.is_jpeg", rules.told)
def is_jpeg(contents: bytes) -> np.bool_:
    """Return True if the bytes begin like a JPEG, as tf.io.is_jpeg does.

    Args:
        contents: The bytes of the file.

    Returns:
        True or False. The rest of the bytes is not read.

    Raises:
        InvalidTypeError: If `contents` is not a bytes-like object.

    Example:
        >>> from penstock.image import encode_jpeg, encode_png
        >>> image = np.zeros((4, 6, 1), np.uint8)
        >>> bool(is_jpeg(encode_jpeg(image))), bool(is_jpeg(encode_png(image)))
        (True, False)
    """
    return np.bool_(bytes(check_contents("is_jpeg", contents)[:3]) == b"\xff\xd8\xff")


def decode_into(
    data: bytes | memoryview,
    buffer: Any,
    channels: int,
    ratio: int = 1,
    *,
    fastdct: bool = True,
    fastupsample: bool = False,
    cut: bool = False,
) -> npt.NDArray[np.uint8]:
    """Decode into `buffer` (bytes-like and large enough, or a function from a size to such a buffer), or a new array.

    The result is a view of `buffer`, which may be longer. With `cut` a file may end anywhere after its header, and
    libjpeg fills in the missing data.

    >>> from penstock.image import encode_jpeg
    >>> scratch = np.empty(100, np.uint8)
    >>> image = decode_into(encode_jpeg(np.zeros((4, 6, 3), np.uint8)), scratch, 3)
    >>> image.shape, np.shares_memory(image, scratch)
    ((4, 6, 3), True)

    Raises:
        DataLossError: If the file is truncated or damaged.
        InvalidArgumentError: not a JPEG, or of an absurd size.
    """
    rows, columns, space = _header(data)
    height, width, components = -(-rows // ratio), -(-columns // ratio), COMPONENTS[space]
    refuse_absurd_size("decode_jpeg", height, width, components)
    if rows * columns > PIXELS_PER_BYTE * len(data) and without_capacity(data):
        message = f"JPEG cut short: its header says {columns} x {rows} pixels, which {len(data)} bytes cannot hold."
        raise DataLossError(message)
    channels = channels or min(components, 3)
    cmyk = components == 4
    if cmyk and channels == 1:
        message = "decode_jpeg: a CMYK image cannot be decoded to channels=1."
        raise InvalidArgumentError(message, hint="Decode it with channels=3 and convert the result.")
    colorspace = "CMYK" if cmyk else "GRAY" if channels == 1 else "RGB"
    if callable(buffer):
        buffer = buffer(height * width * channels)
    if space == ODD:
        return _placed(_by_opencv(bytes(data), (height, width), channels, ratio, cut=cut), buffer)
    if ratio > 1 and max(rows, columns) <= AMBIGUOUS:
        settings = {"fastdct": fastdct, "fastupsample": fastupsample, "cut": cut}
        wider = decode_into(with_width(data, 8), None, channels, ratio, **settings)
        return _placed(wider[:, :width].copy(), buffer)

    def decode(contents: bytes | memoryview, memory: Any, strict: bool) -> npt.NDArray[np.uint8]:
        image: npt.NDArray[np.uint8] = _simplejpeg().decode_jpeg(
            contents,
            colorspace,
            fastdct=fastdct,
            fastupsample=fastupsample,
            min_height=height if ratio > 1 else 0,
            min_width=width if ratio > 1 else 0,
            min_factor=ratio,
            buffer=memory,
            strict=strict,
        )
        return image

    memory = None if cmyk else buffer
    try:
        image = decode(data, memory, True)
    except REFUSALS as error:
        size = height * width * (4 if cmyk else channels)
        memory = np.empty(size, np.uint8) if memory is None else np.frombuffer(memory, np.uint8)[:size]
        image = despite_damage(bytes(data), str(error), decode, memory, cut=cut)
    return _rgb_from_cmyk(image, bytes(data), buffer) if cmyk else image


def _header(data: bytes | memoryview) -> tuple[int, int, str]:
    """Return height, width, and the colour space."""
    try:
        height, width, space, _ = _simplejpeg().decode_jpeg_header(data, strict=False)
    except REFUSALS as error:
        if not is_unnamed(str(error)) or not oddly_sampled(data):
            raise describe(bytes(data), str(error)) from None
        return *size_of(data), ODD
    if space not in COMPONENTS:
        message = f"decode_jpeg: unknown colour space {space!r}."
        raise InvalidArgumentError(message)
    return height, width, space


def _by_opencv(
    contents: bytes, size: tuple[int, int], channels: int, ratio: int, *, cut: bool
) -> npt.NDArray[np.uint8]:
    """Decode a file whose three components have a rare sampling, with the accurate DCT and interpolated colour.

    The libjpeg inside OpenCV prints a line on stderr for a damaged file; OpenCV has no switch for that.

    Raises:
        DataLossError: it is cut short or damaged.
        InvalidArgumentError: sampled so that libjpeg does not enlarge it.
    """
    if END not in contents[-1024:]:
        if not cut:
            raise describe(contents, "Premature end of JPEG file")
        contents += END
    cv2 = opencv()
    kind = "GRAYSCALE" if channels == 1 else "COLOR"
    flag = getattr(cv2, f"IMREAD_{kind}" if ratio == 1 else f"IMREAD_REDUCED_{kind}_{ratio}")
    try:
        image: Any = cv2.imdecode(np.frombuffer(contents, np.uint8), flag | cv2.IMREAD_IGNORE_ORIENTATION)
    except cv2.error:
        image = None
    if image is None or image.shape[:2] != size:
        factors = sampling(contents)
        if not is_whole(contents):
            message = f"decode_jpeg: this JPEG samples its components {factors}: not in whole ratios."
            raise InvalidArgumentError(message, hint="Write it again as 4:4:4, 4:2:2 or 4:2:0.")
        message = f"JPEG damaged: libjpeg cannot read it, with components sampled {factors}, in {len(contents)} bytes."
        raise DataLossError(message, hint="Write it again as 4:4:4, 4:2:2 or 4:2:0.")
    return image[..., None] if channels == 1 else np.ascontiguousarray(image[..., ::-1])


def _rgb_from_cmyk(image: npt.NDArray[np.uint8], contents: bytes, buffer: Any) -> npt.NDArray[np.uint8]:
    """Convert with TensorFlow's formula. Files with Adobe's marker store ink inverted."""
    ink = image.astype(np.uint16)
    if b"\xff\xee\x00\x0eAdobe" not in contents:
        ink = 255 - ink
    rgb = (ink[..., :3] * ink[..., 3:] // 255).astype(np.uint8)
    return _placed(rgb, buffer)


def _placed(image: npt.NDArray[np.uint8], buffer: Any) -> npt.NDArray[np.uint8]:
    """Return the pixels at the beginning of `buffer`, if there is one."""
    if buffer is None:
        return image
    out = np.frombuffer(buffer, np.uint8)[: image.size].reshape(image.shape)
    out[...] = image
    return out


KEPT = 64 << 20  # one image of 22 megapixels; more memory is released after use


class Scratch:
    """Memory for one decoded image at a time, which grows and is reused.

    A new page costs about 2 µs at its first access, a third of the decoding of a photograph.
    """

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)
        self.codes = np.zeros(CODES, np.int64)  # tables of the kernels, which consecutive files often share

    def of(self, nbytes: int) -> npt.NDArray[np.uint8]:
        """Return at least `nbytes` undefined bytes. The same memory is returned each time, up to `KEPT` bytes.

        >>> Scratch().of(10).size >= 10
        True
        """
        if nbytes > KEPT:
            return np.empty(nbytes, np.uint8)
        if self._memory.size < nbytes:
            self._memory = np.empty(nbytes, np.uint8)
        return self._memory


class ThreadScratch(threading.local):
    """The scratch memory of the calling thread, as `scratch`."""

    def __init__(self) -> None:
        self.scratch = Scratch()


_mine = ThreadScratch()


def thread_scratch() -> Scratch:
    """Return the scratch memory of the calling thread.

    >>> thread_scratch() is thread_scratch()
    True
    """
    return _mine.scratch
