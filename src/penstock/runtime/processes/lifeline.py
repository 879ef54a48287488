"""Lifeline: a pipe that nothing is ever written to.

Its far end breaks when the process that holds it ends, and the worker at the near end is killed then, whatever it does.
"""

from __future__ import annotations

import os
import select
import signal
import threading

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def follow(descriptor: int) -> None:
    """End this process when the other end of the pipe is gone.

    On Linux the kernel does it: neither a function that holds the interpreter's lock nor a stopped process outlives it.
    """
    if hasattr(fcntl, "F_SETSIG") and hasattr(os, "O_ASYNC"):
        fcntl.fcntl(descriptor, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_ASYNC)
        if select.select([descriptor], [], [], 0)[0]:  # it broke before
            os._exit(1)
    else:
        threading.Thread(target=_wait, args=(descriptor,), name="penstock-lifeline", daemon=True).start()


def _wait(descriptor: int) -> None:
    os.read(descriptor, 1)
    os._exit(1)
