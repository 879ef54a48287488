"""Colour operations on resized images: approximately what the same operations give before the resize."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.compiled import Compiled
from penstock.image.kernels import recolour_reference as reference

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

_NATIVE = Compiled("penstock.image.kernels.recolour_native")


def recolour_in_place(
    images: npt.NDArray[np.float32],
    codes: Sequence[int],
    args: npt.NDArray[np.float32],
    last: Sequence[tuple[int, tuple[float, float, float]]],
) -> None:
    """Change C-contiguous images (N, H, W, 3) of levels from 0 to 255; `args` are (N, operations).

    Runs without the GIL. The bits are those of the reference, whether the kernel is compiled or not.

    >>> images = np.full((1, 1, 1, 3), 100, np.float32)
    >>> recolour_in_place(images, [], np.zeros((1, 0), np.float32), [(1, (2, 4, 5))])
    >>> images.ravel().tolist()
    [50.0, 25.0, 20.0]
    """
    if images.size == 0:
        return
    native = _NATIVE.ready()
    if native is None:
        for image, own in zip(images, args, strict=True):
            image[...] = reference.recolour(image, codes, own, last)
        return
    numbers = np.array([values for _, values in last], np.float32).reshape(-1, 3)
    last_codes: Any = np.array([code for code, _ in last], np.int64)
    flat = images.reshape(-1)
    status = native.recolour(flat, images[0].size, np.array(codes, np.int64), args, last_codes, numbers)
    assert status == 0, "sizes that do not fit"
