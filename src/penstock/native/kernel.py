"""kernel: a Python function that is compiled for declared types when penstock is built.

Kernels consist of functions with the decorators helper, inlined, maker and specialised. has_feature names features of
the processors that the code is compiled for. Only modules of kernels import this module, because it imports numba. Only
the build and tests import modules of kernels.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import llvmlite.binding as llvm
import numba
from numba import njit
from numba.core.targetconfig import ConfigStack

F = TypeVar("F", bound=Callable[..., Any])

types: Any = numba.types

CHECKED = "PENSTOCK_CHECKED_READS"  # set in a checked build: reads at addresses call `penstock_checked_read`

# LLVM does not vectorise a division that may raise.
INLINED: Any = {"error_model": "numpy", "forceinline": True}

_NAMES = {"i": "int", "u": "uint", "f": "float", "c": "complex"}
_ARGUMENT = re.compile(r"(\w+): (w )?(\w+)(\[:(?:, :)*\])?$")


class Argument(NamedTuple):
    """A number, or a contiguous array with `ndim` axes. `written` is True if the kernel writes to the array."""

    name: str
    kind: str
    ndim: int
    written: bool

    @property
    def numba_type(self) -> Any:
        """The numba type of the argument."""
        letter, bits = self.kind[0], self.kind[1:]
        kind = types.boolean if self.kind == "bool" else getattr(types, f"{_NAMES[letter]}{bits}")
        return types.Array(kind, self.ndim, "C", readonly=not self.written) if self.ndim else kind


class Declared(NamedTuple):
    """The arguments of a kernel, for each of its versions, and its results."""

    versions: list[list[Argument]]
    results: list[str]
    holds_gil: bool


def kernel(declared: str, *, holds_gil: bool = False, makes_arrays: bool = False, **kinds: str) -> Callable[[F], F]:
    """Declare a function that is compiled, as in "pixels: u8[:], factor: f32, out: w f32[:, :] -> i64, i64".

    Kinds are bool, i8 to i64, u8 to u64, f32, f64 and c128. Arrays are contiguous; kernels write only to arrays with
    "w". `kinds` declares several versions of a kernel: T="u8 f32" makes one version for u8 and one for f32.

    Args:
        declared: The arguments by name, and the kinds of the results.
        holds_gil: If True, a call keeps the GIL. Acquiring the GIL again may cost more than a small call.
        makes_arrays: If True, the kernel creates arrays. References to arrays are counted only then.
        **kinds: The kinds that replace a name in `declared`. All names need equally many kinds.
    """

    def declare(function: F) -> F:
        taken, _, results = declared.partition("->")
        known = list(inspect.signature(function).parameters)
        versions = [_arguments(taken, names) for names in _versions(kinds)]
        if [each.name for each in versions[0]] != known:
            message = f"{function.__name__} takes {known}, not what is declared: {declared}"
            raise TypeError(message)
        compiled: Any = njit(error_model="numpy", nogil=not holds_gil)(function)
        compiled.targetoptions |= {"_nrt": makes_arrays, "no_cfunc_wrapper": True}
        compiled.declared = Declared(versions, results.replace(",", " ").split(), holds_gil)
        made: F = compiled
        return made

    return declare


def _versions(kinds: dict[str, str]) -> list[dict[str, str]]:
    words = [dict(zip(kinds, each, strict=True)) for each in zip(*map(str.split, kinds.values()), strict=True)]
    return words or [{}]


def _arguments(text: str, kinds: dict[str, str]) -> list[Argument]:
    made = []
    for each in re.split(r", (?=\w+: )", text.strip()):
        found = _ARGUMENT.match(each)
        if found is None:
            message = f"An argument is declared as 'name: u8[:]', not {each!r}."
            raise TypeError(message)
        name, written, kind, axes = found.groups()
        made.append(Argument(name, kinds.get(kind, kind), (axes or "").count(":"), written is not None))
    return made


def has_feature(name: str) -> bool:
    """Return True if the target processors have a feature, by LLVM's name, such as "avx2"."""
    chosen = os.environ.get("PENSTOCK_FEATURES")
    if chosen is not None:
        return f"+{name}" in chosen.split(",")
    return bool(llvm.get_host_cpu_features().get(name, False))


def helper(function: F) -> F:
    """Compile `function` as part of the kernels that call it, once for all values of its arguments.

    A helper does not count references to arrays, because the caller of the kernel keeps the arrays alive. Counting is
    half of the code that numba writes for a small function. A function that creates or returns an array must be a
    `maker`. Otherwise its compilation fails.
    """
    return _part(function, counted=False)


def maker(function: F) -> F:
    """Compile like `helper`, for a function that creates arrays. A helper cannot call a maker that returns arrays."""
    return _part(function, counted=True)


def inlined(function: F) -> F:
    """Compile like `helper`, and insert the code at each call. LLVM does not vectorise loops with large calls."""
    return _part(function, counted=False, **INLINED)


def specialised(function: F) -> F:
    """Compile like `helper`, once for each constant argument."""
    return _part(function, counted=False, constants=True)


def _part(function: F, *, counted: bool, constants: bool = False, **options: Any) -> F:
    compiled: Any = njit(**{"error_model": "numpy", **options})(function)
    compiled.targetoptions |= {"_nrt": counted, "no_cfunc_wrapper": True}
    find = compiled.get_call_template

    def get_call_template(args: Any, kws: Any) -> Any:
        if not constants:
            args, kws = tuple(map(_any_value, args)), {name: _any_value(kind) for name, kind in kws.items()}
        template, signature, args, kws = find(args, kws)
        flags: Any = ConfigStack.top_or_none()
        nobody_counts = not counted or (flags is not None and not flags.nrt)
        if nobody_counts and any(_holds_an_array(case.return_type) for case in template.cases):
            message = f"{function.__name__} returns an array, and it or who calls it counts no references: use maker."
            raise TypeError(message)
        return template, signature, args, kws

    compiled.get_call_template = get_call_template
    made: F = compiled
    return made


def _any_value(kind: Any) -> Any:
    return kind if isinstance(kind, types.Omitted) else types.unliteral(kind)


def _holds_an_array(kind: Any) -> bool:
    if isinstance(kind, types.BaseTuple):
        return any(map(_holds_an_array, kind))
    return isinstance(kind, types.Array)
