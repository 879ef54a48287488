"""quick: numba's own steps, from Python to what it writes for LLVM, with the same results in less time."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any


def without_scipy() -> None:
    """numba loads scipy.linalg, for a quarter of a second, to see whether kernels could call BLAS; none does."""
    import numba  # which loads scipy itself, to see its version

    if "scipy.linalg" in sys.modules:
        return
    sys.modules["scipy.linalg"] = None  # type: ignore[assignment]
    try:
        import numba.np.arraymath  # noqa: F401 - it looks when it is imported
    finally:
        del sys.modules["scipy.linalg"]


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


def remembered_signatures() -> None:
    """What a Python function takes is looked at once; numba asks 25 thousand times for a thousand of them."""
    from numba.core import utils

    changed: Any = utils
    look, found = changed.pysignature, dict[Any, Any]()

    def pysignature(of: Any, *args: Any, **kwargs: Any) -> Any:
        if args or kwargs or not isinstance(of, FunctionType):
            return look(of, *args, **kwargs)
        if of not in found:
            found[of] = look(of)
        return found[of]

    changed.pysignature = pysignature


def remembered_sizes() -> None:
    """How many bytes a type takes is found once; llvmlite has LLVM read a module of text, each time."""
    from llvmlite import ir as llvm
    from numba.core.base import BaseContext

    context: Any = BaseContext
    find, found = context.get_abi_sizeof, dict[Any, int]()

    def get_abi_sizeof(self: Any, kind: Any) -> int:
        if isinstance(kind, llvm.IdentifiedStructType):  # which is known by its name alone
            return int(find(self, kind))
        key = id(self), kind
        if key not in found:
            found[key] = find(self, kind)
        return found[key]

    context.get_abi_sizeof = get_abi_sizeof


def quick_flags() -> None:
    """Flags of two functions are compared by what was set in either, and not by all that could be."""
    from numba.core.targetconfig import TargetConfig

    config: Any = TargetConfig

    def equal(self: Any, other: Any) -> Any:
        if type(self) is not type(other):
            return NotImplemented
        ours, others = self._values, other._values
        if ours == others:
            return True
        options = self.options
        for k in ours.keys() | others.keys():
            if (ours[k] if k in ours else options[k].default) != (others[k] if k in others else options[k].default):
                return False
        return True

    assert callable(config.__eq__)
    config.__eq__ = equal
    config.__hash__ = lambda self: hash(type(self))  # numba's is of the names of flags alone, the same for all


def quick_contexts() -> None:
    """Each step has a context for errors, and each type that is found one for warnings: plain objects, or none."""
    from numba.core import errors, lowering, ssa, typeinfer

    changed: Any = errors
    logs: Any = ssa
    users: tuple[Any, ...] = errors, lowering, typeinfer
    format_message, places, own = changed._format_msg, changed.loc_info, changed._numba_path
    nothing = contextlib.nullcontext()

    class Context:
        """What an error within is said to be about."""

        __slots__ = ("_about",)

        def __init__(self, text: str, *args: Any, **kwargs: Any) -> None:
            self._about = text, args, kwargs
            loc = kwargs.get("loc")
            if loc is not None and not loc.filename.startswith(own):
                places.update(kwargs)

        def __enter__(self) -> None:
            pass

        def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
            if isinstance(error, changed.NumbaError):
                error.add_context(format_message(*self._about))

    class Silent:
        def debug(self, *args: Any, **kwargs: Any) -> None:
            pass

    for module in users:
        assert callable(module.new_error_context)
        module.new_error_context = Context
    if not logs._logger.isEnabledFor(logging.DEBUG):
        logs._logger = Silent()
    changed.WarningsFixer.catch_warnings = lambda self, filename=None, lineno=None: nothing


def quick_names() -> None:
    """The names of values are what they would be, and are found in one step in place of three calls."""
    from llvmlite.ir._utils import NameScope

    scope: Any = NameScope
    plain = scope.register

    def register(self: Any, name: str, deduplicate: bool = False) -> Any:  # noqa: FBT001 - llvmlite's
        used = self._useset
        if not deduplicate:
            return plain(self, name)
        if name in used:
            base, numbers = name, self._basenamemap
            number = numbers[base]
            while name in used:
                number += 1
                name = f"{base}.{number}"
            numbers[base] = number
        used.add(name)
        return name

    assert scope()._useset == {""}
    scope.register = register


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

    def way_to(kind: type) -> Callable[[Any, list[Any]], None] | None:
        """How the variables in a value of this type are added to a list; None if it holds none."""
        if kind in nothing_in:
            return None
        if issubclass(kind, ir.Var):
            return lambda value, found: found.append(value)
        if issubclass(kind, ir.Inst):
            return lambda value, found: found.extend(value.list_vars())
        if issubclass(kind, dict):
            return lambda value, found: each_in(value.values(), found)
        return each_in if issubclass(kind, list | tuple) else None

    ways: dict[type, Callable[[Any, list[Any]], None] | None] = {}

    def each_in(values: Any, found: list[Any]) -> None:
        for each in values:
            kind = type(each)
            if kind not in ways:
                ways[kind] = way_to(kind)
            way = ways[kind]
            if way is not None:
                way(each, found)

    def list_vars(self: Any, value: Any) -> list[Any]:
        found: list[Any] = []
        each_in(value.values() if type(value) is dict else (value,), found)
        return found

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
    instruction._rec_list_vars = list_vars
