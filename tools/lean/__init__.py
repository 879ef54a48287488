"""Changes of numba in the build, for faster kernels.

The code that numba writes for LLVM becomes shorter with the same meaning (`short`), and LLVM optimises each function
once (`parts`). Without the changes the parser of examples takes 1.35 times as long (docs/design/0024). Only processes
that build kernels change numba.
"""

from __future__ import annotations

from lean.parts import parts_once
from lean.short import short_arrays, short_calls, short_writing


def make_lean() -> None:
    """Apply all changes to numba in this process."""
    for change in (short_writing, short_arrays, parts_once, short_calls):
        change()
