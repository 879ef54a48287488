"""lean: what a process that only compiles changes in numba, so that kernels take half of the processors' time.

What numba writes for LLVM stays the same, letter by letter; how LLVM is called does not (`parts_once`). Nothing here is
for a process that does anything else: it changes numba itself. A numba that is made otherwise than those we know
compiles as it always does.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

LARGE = 200  # lines: what LLVM never copies into its callers; it does so up to about 50


def make_lean() -> None:
    """From now on, in this process."""
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)  # what compiling makes is kept: looking for garbage takes a tenth of the time
    for change in (without_scipy, remembered_calls, quick_flags, refreshed_once, no_events, short_analyses, parts_once):
        with contextlib.suppress(ImportError, AttributeError):
            change()


def without_scipy() -> None:
    """numba loads scipy, for a quarter of a second, to see whether kernels could call BLAS; none does."""
    if "scipy" in sys.modules:
        return
    sys.modules["scipy"] = None  # type: ignore[assignment]
    try:
        import numba.np.arraymath  # noqa: F401 - it looks when it is imported
    finally:
        del sys.modules["scipy"]


def remembered_calls() -> None:
    """Which version of a function is meant is found once for the same types of arguments, and not at each call.

    numba asks up to forty candidates what `i + 1` is, each time.
    """
    from numba.core import types
    from numba.core.targetconfig import ConfigStack

    function: Any = types.BaseFunction
    find, flags = function.get_call_type, ConfigStack.top_or_none
    plain = {types.Integer, types.Float, types.Boolean, types.IntegerLiteral, types.BooleanLiteral, types.NoneType}
    plain.add(types.Array)
    found: dict[Any, Any] = {}

    def is_plain(kind: Any) -> bool:
        if type(kind) in (types.UniTuple, types.Tuple):
            return all(map(is_plain, kind))
        return type(kind) in plain

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws or not all(map(is_plain, args)):
            return find(self, context, args, kws)
        key = id(self), id(context), args, flags()  # type: ignore[no-untyped-call]
        if key not in found:
            signature = find(self, context, args, kws)
            found[key] = signature, self._impl_keys[signature.args], self  # which stays, and so does its id
        signature, self._impl_keys[signature.args], _ = found[key]
        return signature

    function.get_call_type = get_call_type


def quick_flags() -> None:
    """Flags of two functions are compared by what was set in either, and not by all that could be."""
    from numba.core.targetconfig import TargetConfig

    config: Any = TargetConfig

    def equal(self: Any, other: Any) -> Any:
        if type(self) is not type(other):
            return NotImplemented
        ours, others = self._values, other._values
        return ours == others or all(getattr(self, k) == getattr(other, k) for k in ours.keys() | others.keys())

    assert callable(config.__eq__)
    config.__eq__ = equal
    config.__hash__ = lambda self: hash(type(self))  # numba's is of the names of flags alone, the same for all


def refreshed_once() -> None:
    """What numba and modules registered since the last function is looked for where there is more than then."""
    from numba.core.base import BaseContext
    from numba.core.typing.context import BaseContext as TypingContext

    def registered(context: Any) -> int:
        return sum(len(getattr(r, name)) for r, loader in context._registries.items() for name in loader._registrations)

    def only_if_more(of: Any) -> None:
        refresh: Callable[[Any], None] = of.refresh
        known: dict[int, int] = {}

        def refresh_if_more(self: Any) -> None:
            if registered(self) != known.get(id(self)):
                refresh(self)
                known[id(self)] = registered(self)

        of.refresh = refresh_if_more

    only_if_more(TypingContext)
    only_if_more(BaseContext)


def no_events() -> None:
    """Nobody listens to what numba tells of each step."""
    from numba.core import event

    changed: Any = event
    nothing = contextlib.nullcontext()
    if not any(changed._registered.values()):
        changed.trigger_event = lambda *args, **kwargs: nothing
        changed.start_event = changed.end_event = lambda *args, **kwargs: None


def short_analyses() -> None:
    """After each of nine passes numba finds out which variables live on into which block; one asks, the last.

    It looks for variables in all that an instruction holds, which is mostly text and places in files. And it looks for
    functions within functions, lists and sums of arrays where there are none.
    """
    from numba.core import ir, transforms, types
    from numba.core.inline_closurecall import InlineClosureCallPass
    from numba.core.postproc import PostProcessor, VariableLifetime
    from numba.core.typed_passes import NopythonRewrites

    processor: Any = PostProcessor
    instruction: Any = ir.Inst
    run, nothing_in = processor.run, {str, int, float, bool, type(None), ir.Loc, ir.Scope}
    assert callable(processor._insert_var_dels)
    assert callable(instruction._rec_list_vars)

    def run_shortly(self: Any, emit_dels: Any = False, extend_lifetimes: Any = False) -> None:
        function = self.func_ir
        if function.is_generator:
            run(self, emit_dels, extend_lifetimes)
            return
        function.blocks = transforms.canonicalize_cfg(function.blocks)  # type: ignore[no-untyped-call]
        function.variable_lifetime = VariableLifetime(function.blocks)  # type: ignore[no-untyped-call]
        function.generator_info = None
        if emit_dels:
            self._insert_var_dels(extend_lifetimes=extend_lifetimes)

    def variables(value: Any) -> Iterator[Any]:
        kind = type(value)
        if kind in nothing_in:
            return
        if isinstance(value, ir.Var):
            yield value
        elif isinstance(value, ir.Inst):
            yield from value.list_vars()  # type: ignore[no-untyped-call]
        elif isinstance(value, list | tuple | dict):
            for each in value.values() if isinstance(value, dict) else value:
                yield from variables(each)

    inlining: Any = InlineClosureCallPass
    rewriting: Any = NopythonRewrites
    inline, rewrite = inlining.run, rewriting.run_pass
    makers = {"make_function", "build_list"}

    def expressions(blocks: Any) -> Iterator[tuple[Any, Any]]:
        for block in blocks.values():
            for statement in block.body:
                if isinstance(statement, ir.Assign):
                    yield statement.target, statement.value

    def inline_if_any(self: Any) -> None:
        for _, value in expressions(self.func_ir.blocks):
            if isinstance(value, ir.FreeVar) or (isinstance(value, ir.Expr) and value.op in makers):
                inline(self)
                return

    def rewrite_if_any(self: Any, state: Any) -> Any:
        for target, value in expressions(state.func_ir.blocks):
            kind = state.typemap[target.name]
            if isinstance(kind, types.StringLiteral) or (isinstance(kind, types.Array) and isinstance(value, ir.Expr)):
                return rewrite(self, state)
        return True

    inlining.run, rewriting.run_pass = inline_if_any, rewrite_if_any
    processor.run = run_shortly
    instruction._rec_list_vars = lambda self, value: list(variables(value))


# numba compiles each function that another one calls into a library of its own: optimised, made into machine code that
# nobody calls, with wrappers that are optimised as well, and optimised again in each caller up to the kernel. Here such
# functions are optimised and come into their kernel as they are then: small ones before it is optimised, so that LLVM
# can put them where they are called, large ones afterwards, as it would never. The bits of results do not change:
# nothing in kernels lets LLVM reorder arithmetic. Left as they were written, and optimised within their kernel only,
# they took another sixth less before, and kernels were up to a quarter slower.


def parts_once() -> None:
    """Functions that kernels call are not made into machine code of their own, and large ones are optimised once."""
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
    depth = 0  # of the function that is being compiled below a kernel; numba compiles in one thread at a time
    large: dict[Any, None] = {}  # libraries that are linked when a kernel is optimised

    class Whole(library):  # type: ignore[misc]
        """A library whose large parts are linked when it is optimised itself."""

        _later: ClassVar[dict[Any, None]] = {}  # of one that comes from the disk

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
            for each in reversed(self._later):  # who calls another one comes first: what nobody calls is not linked
                self._final_module.link_in(module_for_linking(each), preserve=True)
            super()._finalize_final_module()

    class Part(Whole):
        """A library that is linked into others and never called."""

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._finalized = True
            if _is_large(self._final_module):
                large[self] = None

        def get_pointer_to_function(self, name: str) -> int:
            return 0

    def create_library(self: Any, name: str, **kwargs: Any) -> Any:
        return (Part if depth > 1 else Whole)(self, name, **kwargs)

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


def _is_large(module: Any) -> bool:
    """Whether LLVM puts none of the functions of a module where they are called."""
    defined = [function for function in module.functions if not function.is_declaration]
    if any(b"alwaysinline" in attribute for function in defined for attribute in function.attributes):
        return False
    return any(str(function).count("\n") > LARGE for function in defined)
