"""Optimise functions that kernels call once, without machine code of their own.

numba compiles each function that another function calls into a library. It optimises the function and its wrappers,
emits machine code that is never called, and optimises the function again in each caller up to the kernel. Here such
functions are optimised once and then linked into their kernels. Small ones are linked before the kernel is optimised,
so that LLVM can inline them. Large ones are linked afterwards, because LLVM never inlines them. The bits of results do
not change: nothing in kernels lets LLVM reorder arithmetic. An earlier version optimised them within their kernel only.
The build took a sixth less time, but kernels were up to a quarter slower.
"""

from __future__ import annotations

from typing import Any, ClassVar

LARGE = 200  # lines: LLVM inlines functions of up to about 50 lines, and never larger ones than this


def parts_once() -> None:
    """Let numba emit no machine code for functions that kernels call, and optimise the large ones once."""
    from numba.core import config
    from numba.core.caching import NullCache
    from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
    from numba.core.dispatcher import Dispatcher

    library: Any = JITCodeLibrary
    codegen: Any = JITCPUCodegen
    dispatcher: Any = Dispatcher
    compile_one, set_environment = dispatcher.compile, codegen.set_env
    finalize_parts, module_for_linking = library.finalize, library._get_module_for_linking
    needed = library._finalize_final_module, library._finalize_dynamic_globals, library._optimize_final_module
    assert all(map(callable, needed))
    depth = 0  # number of nested compilations below a kernel; numba compiles in one thread at a time
    large: dict[Any, None] = {}  # libraries to link when a kernel is optimised

    class Whole(library):  # type: ignore[misc]
        """A library whose large parts are linked when the library itself is optimised."""

        is_part = False
        _later: ClassVar[dict[Any, None]] = {}  # a library from the disk has none

        def finalize(self) -> None:
            this: Any = self
            later: dict[Any, None] = {}
            for each in this._linking_libraries:
                later |= getattr(each, "_later", {})
                if each in large:
                    later[each] = None
                    if hasattr(this, "_reload_init"):  # not in numba 0.61
                        this._reload_init.update(each._reload_init)
            this._linking_libraries = [each for each in this._linking_libraries if each not in large]
            this._later = later
            finalize_parts(self)

        def _finalize_final_module(self) -> None:
            for each in reversed(self._later):  # callers come first: a function without a caller is not linked
                self._final_module.link_in(module_for_linking(each), preserve=True)
            super()._finalize_final_module()

    class Part(Whole):
        """A library that is linked into others and never called."""

        is_part = True

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._finalized = True
            if _is_large(self._final_module):
                large[self] = None

        def get_pointer_to_function(self, name: str) -> int:
            return 0

    def optimize_functions(self: Any, module: Any) -> None:
        module.data_layout = self._codegen._data_layout
        passes, builder = self._codegen._function_pass_manager()
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)

    def create_library(self: Any, name: str, **kwargs: Any) -> Any:
        return (Part if depth > 1 else Whole)(self, name, **kwargs)

    def compile_at_depth(self: Any, signature: Any) -> Any:
        nonlocal depth
        above = depth
        # a cached function is a kernel, also if another function calls it
        depth = above + 1 if isinstance(self._cache, NullCache) else 1
        if depth > 1:
            self.targetoptions |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        try:
            return compile_one(self, signature)
        finally:
            depth = above

    def set_env(self: Any, name: str, environment: Any) -> None:
        # a part has no machine code, and so no place for the environment
        if self._engine.get_global_value_address(name):
            set_environment(self, name, environment)

    of_any_module = codegen._function_pass_manager.__code__.co_argcount == 1  # not in numba 0.61
    if of_any_module and getattr(config, "LLVM_REFPRUNE_PASS", False):
        library._optimize_functions = optimize_functions
    codegen.create_library, codegen.set_env, dispatcher.compile = create_library, set_env, compile_at_depth


def _is_large(module: Any) -> bool:
    """Return True if LLVM inlines none of the functions of a module."""
    defined = [function for function in module.functions if not function.is_declaration]
    if any(b"alwaysinline" in attribute for function in defined for attribute in function.attributes):
        return False
    return any(str(function).count("\n") > LARGE for function in defined)
