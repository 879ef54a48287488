"""One JPEG to its place in a batch: decode into scratch memory, resize, flip and scale into the batch itself."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.image.checks import check_contents
from penstock.image.jpeg import decode_into
from penstock.image.kernels.bilinear import resize_bilinear_into

if TYPE_CHECKING:
    import numpy.typing as npt

    from penstock.image.kernels.taps import Flip


KEPT = 64 << 20  # one picture of 22 megapixels; what a larger one takes is given back


class Scratch:
    """Memory for one decoded image at a time, which grows and is used again.

    A fresh page costs about 2 µs at its first touch, a third of the decoding of a photograph.
    """

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)

    def of(self, nbytes: int) -> npt.NDArray[np.uint8]:
        """At least `nbytes` bytes, undefined; the same memory each time, up to `KEPT` bytes.

        >>> Scratch().of(10).size >= 10
        True
        """
        if nbytes > KEPT:
            return np.empty(nbytes, np.uint8)
        if self._memory.size < nbytes:
            self._memory = np.empty(nbytes, np.uint8)
        return self._memory


class _PerThread(threading.local):
    def __init__(self) -> None:
        self.scratch = Scratch()


_mine = _PerThread()


def thread_scratch() -> Scratch:
    """That of the calling thread.

    >>> thread_scratch() is thread_scratch()
    True
    """
    return _mine.scratch


def decode_resize_into(
    contents: bytes | memoryview,
    dst: npt.NDArray[Any],
    *,
    multiply: float | None = None,
    divide: float | None = None,
    flip_left_right: Flip = "",
    flip_up_down: Flip = "",
    fancy_upscaling: bool = True,
    dct_method: str = "",
    scratch: Scratch | None = None,
) -> None:
    """Write `resize(decode_jpeg(contents), dst's size)`, flipped and scaled, into `dst`; equal to the last bit.

    >>> from penstock.image import encode_jpeg
    >>> batch = np.zeros((2, 2, 2, 3), np.float32)
    >>> decode_resize_into(encode_jpeg(np.full((8, 8, 3), 255, np.uint8)), batch[0], divide=255.0)
    >>> batch[:, 0, 0, 0].tolist()
    [1.0, 0.0]

    Args:
        contents: the bytes of a JPEG.
        dst: C-contiguous (H, W, C), C 1 or 3, float32; or uint8 without scaling.
        multiply: factor applied to each result.
        divide: divisor applied to each result; not both.
        flip_left_right: mirror "before" or "after" the resize.
        flip_up_down: likewise.
        fancy_upscaling: as in `decode_jpeg`.
        dct_method: as in `decode_jpeg`.
        scratch: memory for the decoded image; one per thread if left out.

    Raises:
        DataLossError: the file is cut short or damaged; `dst` is untouched.
        InvalidArgumentError: not a JPEG, or arguments that do not fit.
    """
    scratch = thread_scratch() if scratch is None else scratch
    image = decode_into(
        check_contents("decode_jpeg", contents),
        scratch.of,
        dst.shape[-1],
        fastdct=dct_method != "INTEGER_ACCURATE",
        fastupsample=not fancy_upscaling,
    )
    resize_bilinear_into(
        image, dst, multiply=multiply, divide=divide, flip_left_right=flip_left_right, flip_up_down=flip_up_down
    )
