"""The optional packages behind the codecs, loaded at first use, and OpenCV's own threads.

Those are off in a process whose work penstock shares out, unless its user wants them: each of our workers that calls
OpenCV would wake as many threads of OpenCV as there are cores, and they would stand in each other's way and in that of
a training framework. OpenCV knows only one number for the whole process.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from penstock.errors import optional_package
from penstock.forked import new_lock

_ASKED_BY = "Reading and writing images"


def simplejpeg() -> Any:
    """The module `simplejpeg`: libjpeg-turbo; it works without the GIL.

    Raises:
        MissingDependencyError: it is not installed.
    """
    return optional_package("simplejpeg", _ASKED_BY, "image")


def opencv() -> Any:
    """The module `cv2`, without threads of its own unless the user has set their number (see `threads`).

    Raises:
        MissingDependencyError: it is not installed.
    """
    cv2 = optional_package("cv2", _ASKED_BY, "image")
    calm_opencv()
    return cv2


SETTING = "OPENCV_FOR_THREADS_NUM"  # OpenCV's own variable: who sets it has decided

_lock = new_lock()
_done = False


def calm_opencv() -> bool:
    """Set OpenCV's number of threads to 1, once in a process and only where OpenCV is imported; whether it did so now.

    A number that the user has set, by OPENCV_FOR_THREADS_NUM or before or later by `cv2.setNumThreads`, stays.

    >>> import cv2
    >>> before = cv2.getNumThreads()
    >>> cv2.getNumThreads() == 1 if calm_opencv() else cv2.getNumThreads() == before
    True
    >>> calm_opencv()
    False
    """
    global _done
    cv2: Any = sys.modules.get("cv2")
    if _done or not hasattr(cv2, "setNumThreads"):  # the latter while another thread imports it
        return False
    with _lock:
        if _done:
            return False
        _done = True
        if SETTING in os.environ or cv2.getNumThreads() != cv2.getNumberOfCPUs():
            return False
        cv2.setNumThreads(1)
        return True
