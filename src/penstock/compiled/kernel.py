"""kernel: a function compiled and kept on disk, compiled anew when anything it is made of changes.

helper, inlined, maker, specialised: parts of kernels; only_for: for arguments of given types alone; uncounted: without
counting references to arrays; rarely: for what takes little of a kernel's time, and is compiled in less.

numba looks at the file of the function alone, so that what it calls would have to stand there, too. Parts, which only
kernels call, are kept with them. Imported by modules of kernels only, as numba itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.extending import intrinsic
from numba.core.targetconfig import ConfigStack

from penstock.compiled.child import if_wanted
from penstock.compiled.kernel_files import INTO, digest, folder

F = TypeVar("F", bound=Callable[..., Any])

types: Any = numba.types

if_wanted()

CHECKED = "PENSTOCK_CHECKED_READS"  # a variable: kernels check what they read at addresses, and are not kept

# A division that may raise keeps LLVM from making vectors.
INLINED: Any = {"error_model": "numpy", "forceinline": True}


class _BySources(FunctionCache):
    """numba's cache of one function, current while the sources of its module are what they were."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        stamped: Any = IndexDataCacheFile
        base, stamp, found = self._impl.filename_base, digest(function.__module__), folder()
        into = os.environ.get(INTO)  # for a wheel
        if into:
            self._cache_path = str(Path(into) / function.__module__)
            Path(self._cache_path).mkdir(parents=True, exist_ok=True)
        self._cache_file = stamped(self._cache_path, base, stamp)
        self._shipped = None if found is None else stamped(str(found / function.__module__), base, stamp)
        self._level = "" if found is None else found.name

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        """From this machine's cache, or from what came with penstock, which was compiled for a level of processors."""
        here = super()._load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        if here is not None or self._shipped is None:
            return here
        signature, (triple, _, _), code = self._index_key(sig, target_context.codegen())  # type: ignore[no-untyped-call]
        data = self._shipped.load((signature, (triple, self._level, ""), code))
        return None if data is None else self._impl.rebuild(target_context, data)


def kernel(function: F) -> F:
    """Compile `function` for the types of its arguments when it is first called with them; nothing in it raises."""
    return _kept(function, nogil=True)


def short_kernel(function: F) -> F:
    """As `kernel`, of so little work that it keeps the GIL: to take it anew may cost more."""
    return _kept(function, nogil=False)


def _kept(function: F, *, nogil: bool) -> F:
    compiled: Any = njit(nogil=nogil, error_model="numpy")(function)
    compiled.targetoptions["no_cfunc_wrapper"] = True  # nobody passes a kernel as a value
    if CHECKED not in os.environ:
        compiled._cache = _BySources(function)
    kept: F = compiled
    return kept


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
    compiled.targetoptions["_nrt"] = counted
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


def only_for(signature: Any) -> Callable[[F], F]:
    """Compile a function of `penstock.compiled.kernel` for `signature`, or load it; other arguments are refused.

    What a caller may write to is accepted where only reading is needed. So one version serves both, and that a module
    was imported means that no call compiles.
    """

    def compiled(function: F) -> F:
        dispatcher: Any = function
        dispatcher.compile(signature)
        dispatcher.disable_compile()
        return function

    return compiled


def uncounted(function: F) -> F:
    """Let a `kernel` not count references to arrays, which takes most of the time where calls are small.

    Who calls it from Python holds the arrays. It makes none and returns none.
    """
    compiled: Any = function
    compiled.targetoptions["_nrt"] = False
    return function


@intrinsic
def _rarely(typing: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.function.attributes.add("optsize")
        return context.get_dummy_value()

    return types.none(), generate


rarely: Any = _rarely  # as those who call it see it, without numba's own first argument
"""rarely(): the first line of a kernel or a part that takes little time beside what is called with it, or after it.

LLVM makes it short: loops become no vectors and are not written several times over, for which it takes a third of the
time. What is copied into it is made so, too. Results stay the same, bit by bit.
"""
