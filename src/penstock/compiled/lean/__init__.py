"""lean: what a process that only compiles changes in numba, so that kernels take half of the processors' time.

What numba does on its way stays the same, and takes less (`quick`). What it writes for LLVM is shorter and means the
same (`short`), and LLVM sees each function once (`parts`). Nothing here is for a process that does anything else: it
changes numba itself. A numba that is made otherwise than those we know compiles as it always does.
"""

from __future__ import annotations

import contextlib
import gc

from penstock.compiled.lean.parts import parts_once
from penstock.compiled.lean.quick import (
    no_events,
    quick_contexts,
    quick_flags,
    quick_names,
    refreshed_once,
    remembered_calls,
    remembered_signatures,
    remembered_sizes,
    short_analyses,
    without_scipy,
)
from penstock.compiled.lean.short import short_arrays, short_calls, short_writing


def make_lean() -> None:
    """From now on, in this process."""
    gc.freeze()
    gc.set_threshold(5_000_000, 50, 100)  # what compiling makes is kept: all kernels are 2 million objects, 0.7 GB
    for change in (
        without_scipy,
        remembered_calls,
        remembered_signatures,
        remembered_sizes,
        quick_flags,
        quick_contexts,
        quick_names,
        refreshed_once,
        no_events,
        short_analyses,
        short_writing,
        short_arrays,
        parts_once,
        short_calls,
    ):
        with contextlib.suppress(ImportError, AttributeError):
            change()
