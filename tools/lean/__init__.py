"""lean: what the build changes in numba, for kernels that are faster.

What numba writes for LLVM is shorter and means the same (`short`), and LLVM sees each function once (`parts`). Without
them the parser of examples takes 1.35 times as long (docs/design/0024). Only processes that build kernels change numba.
"""

from __future__ import annotations

from lean.parts import parts_once
from lean.short import short_arrays, short_calls, short_writing


def make_lean() -> None:
    """From now on, in this process."""
    for change in (short_writing, short_arrays, parts_once, short_calls):
        change()
