"""kernel: a function of Python that is compiled before it reaches the user, for declared types.

helper, inlined, maker, specialised: parts of kernels. has_feature: what the processors have that code is made for.
Only modules of kernels import this one, which imports numba; only the build and tests import those modules.
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

# A division that may raise keeps LLVM from making vectors.
INLINED: Any = {"error_model": "numpy", "forceinline": True}

_NAMES = {"i": "int", "u": "uint", "f": "float", "c": "complex"}
_ARGUMENT = re.compile(r"(\w+): (w )?(\w+)(\[:(?:, :)*\])?$")


class Argument(NamedTuple):
    """One number, or a contiguous array of `ndim` axes that is `written` to or not."""

    name: str
    kind: str
    ndim: int
    written: bool

    @property
    def numba_type(self) -> Any:
        """What numba calls it."""
        letter, bits = self.kind[0], self.kind[1:]
        kind = types.boolean if self.kind == "bool" else getattr(types, f"{_NAMES[letter]}{bits}")
        return types.Array(kind, self.ndim, "C", readonly=not self.written) if self.ndim else kind


class Declared(NamedTuple):
    """What a kernel takes, in each of its versions, and gives."""

    versions: list[list[Argument]]
    results: list[str]
    holds_gil: bool


def kernel(declared: str, *, holds_gil: bool = False, makes_arrays: bool = False, **kinds: str) -> Callable[[F], F]:
    """Declare a function that is compiled, as in "pixels: u8[:], factor: f32, out: w f32[:, :] -> i64, i64".

    Kinds are bool, i8 to i64, u8 to u64, f32, f64 and c128. Arrays are contiguous; only those with "w" may be written
    to. Of each kind in `kinds`, as T="u8 f32", there is a version for every word.

    Args:
        declared: The arguments by name, and the kinds of the results.
        holds_gil: Whether a call keeps the GIL: to take it anew may cost more than a small call.
        makes_arrays: Whether it does; references to arrays are counted only then.
        **kinds: The words that stand for a name in `declared`, as many for each name.
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
    """Whether the processors that code is made for have what LLVM calls so, as "avx2"."""
    chosen = os.environ.get("PENSTOCK_FEATURES")
    if chosen is not None:
        return f"+{name}" in chosen.split(",")
    return bool(llvm.get_host_cpu_features().get(name, False))


def helper(function: F) -> F:
    """Compile `function` as part of the kernels that call it, once for all values of its arguments; it makes no arrays.

    References to arrays are not counted in it, which is half of what numba writes for a small function: whoever called
    the kernel holds the arrays. One that makes an array or returns one is a `maker`, or fails when it is compiled.
    """
    return _part(function, counted=False)


def maker(function: F) -> F:
    """As `helper`, of a function that makes arrays. Where it returns them, a helper cannot call it."""
    return _part(function, counted=True)


def inlined(function: F) -> F:
    """As `helper`, in the place of each call: LLVM leaves out of its vectors what it thinks too large."""
    return _part(function, counted=False, **INLINED)


def specialised(function: F) -> F:
    """As `helper`, compiled anew for each constant that it is called with."""
    return _part(function, counted=False, constants=True)


def _part(function: F, *, counted: bool, constants: bool = False, **options: Any) -> F:
    compiled: Any = njit(**{"error_model": "numpy", **options})(function)
    compiled.targetoptions |= {"_nrt": counted, "no_cfunc_wrapper": True}
    find = compiled.get_call_template

    def get_call_template(args: Any, kws: Any) -> Any:
        if not constants:
            args, kws = tuple(map(_any_value, args)), {name: _any_value(kind) for name, kind in kws.items()}
        template, signature, args, kws = find(args, kws)
        flags: Any = ConfigStack.top_or_none()  # type: ignore[no-untyped-call]
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
