"""split: pictures (N, H, W, C) as planes (N, C, H, W), by OpenCV where it is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.errors import MissingDependencyError
from penstock.image.backends import opencv

if TYPE_CHECKING:
    import numpy.typing as npt


def split(pictures: npt.NDArray[Any], out: npt.NDArray[Any]) -> bool:
    """Write the planes of pictures into `out`; False where OpenCV is missing, and nothing is written.

    >>> import numpy as np
    >>> out = np.zeros((1, 3, 2, 2), np.uint8)
    >>> split(np.arange(12, dtype=np.uint8).reshape(1, 2, 2, 3), out)
    True
    >>> out[0, 1].tolist()
    [[1, 4], [7, 10]]
    """
    try:
        cv2 = opencv()
    except MissingDependencyError:
        return False
    for picture, planes in zip(pictures, out, strict=True):
        cv2.split(picture, list(planes))
    return True
