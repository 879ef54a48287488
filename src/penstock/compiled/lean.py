"""compile_parts_once: what kernels are made of becomes machine code within them, and not by itself before.

numba compiles each function that another one calls into a library of its own: optimised, made into machine code that
nobody calls, with wrappers that are optimised as well, and optimised again in each caller up to the kernel. Here such
functions are optimised and come into their kernel as they are then. That takes a third of the processors' time less.
Left as they were written, and optimised within their kernel only, they took another sixth less, and kernels were up to
a quarter slower. The bits of results do not change: nothing in kernels lets LLVM reorder arithmetic.
"""

from __future__ import annotations

import gc
from typing import Any

_WANTED: list[bool] = []


def want_parts_once() -> None:
    """Have `compile_parts_once` called when the first module of kernels is imported, which loads numba."""
    _WANTED.append(True)


def if_wanted() -> None:
    if _WANTED:
        _WANTED.clear()
        compile_parts_once()


def compile_parts_once() -> None:
    """From now on, in this process. For processes of their own that compile only: it changes numba itself.

    A numba that is made otherwise than those we know compiles as it always does.
    """
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)  # what compiling makes is kept: looking for garbage takes a tenth of the time
    try:
        _change()
    except (ImportError, AttributeError):
        return


def _change() -> None:
    from numba.core.caching import NullCache
    from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
    from numba.core.dispatcher import Dispatcher

    library: Any = JITCodeLibrary
    codegen: Any = JITCPUCodegen
    dispatcher: Any = Dispatcher
    compile_one, set_environment = dispatcher.compile, codegen.set_env
    needed = library._finalize_final_module, library._finalize_dynamic_globals
    assert all(map(callable, needed))
    depth = 0  # of the function that is being compiled below a kernel; numba compiles in one thread at a time

    class Part(library):  # type: ignore[misc]
        """A library that is linked into others and never called."""

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            return 0

    def create_library(self: Any, name: str, **kwargs: Any) -> Any:
        return (Part if depth > 1 else library)(self, name, **kwargs)

    def compile_at_depth(self: Any, signature: Any) -> Any:
        nonlocal depth
        above = depth
        depth = above + 1 if isinstance(self._cache, NullCache) else 1  # what is kept is a kernel, whoever calls it
        if depth > 1:
            self.targetoptions |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        try:
            return compile_one(self, signature)
        finally:
            depth = above

    def set_env(self: Any, name: str, environment: Any) -> None:
        if self._engine.get_global_value_address(name):  # a part has no machine code, and so no place for it
            set_environment(self, name, environment)

    codegen.create_library, codegen.set_env, dispatcher.compile = create_library, set_env, compile_at_depth
