"""OpenCV, imported at first use, and the number of its own threads.

OpenCV's threads are off in a process that penstock parallelises, unless the user wants them. Otherwise each worker
would start as many threads as there are cores. They would compete with each other and with a training framework. OpenCV
has only one number of threads for the whole process.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from penstock.errors import optional_package
from penstock.forked import new_lock


def opencv() -> Any:
    """Return the module `cv2`, without threads of its own unless the user has set their number (see `limit_threads`).

    Raises:
        MissingDependencyError: If the package is not installed.
    """
    cv2 = optional_package("cv2", "Reading and writing images", "image")
    limit_threads()
    return cv2


SETTING = "OPENCV_FOR_THREADS_NUM"  # OpenCV's own variable; if the user sets it, it is respected

_lock = new_lock()
_done = False


def limit_threads() -> bool:
    """Set OpenCV's number of threads to 1, once per process, if OpenCV is imported. Return True if this call did it.

    A number that the user has set, by OPENCV_FOR_THREADS_NUM or before or later by `cv2.setNumThreads`, stays.

    >>> import cv2
    >>> before = cv2.getNumThreads()
    >>> cv2.getNumThreads() == 1 if limit_threads() else cv2.getNumThreads() == before
    True
    >>> limit_threads()
    False
    """
    global _done
    cv2: Any = sys.modules.get("cv2")
    if _done or not hasattr(cv2, "setNumThreads"):  # hasattr is False while another thread imports OpenCV
        return False
    with _lock:
        if _done:
            return False
        _done = True
        if SETTING in os.environ or cv2.getNumThreads() != cv2.getNumberOfCPUs():
            return False
        cv2.setNumThreads(1)
        return True
