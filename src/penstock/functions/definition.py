"""The syntax tree of a function, where it is proven to be that of the code that runs; and Python's parser and compiler.

What a file says may be older or newer than the function, and a line may hold several lambdas. So the tree is compiled
again, and only one whose instructions, constants, names and places are those of the function's code is given.

Parser and compiler count how deep a tree is in one place for all threads, and raise SystemError where two of them work
at the same time ("AST constructor recursion depth mismatch", CPython up to 3.12). Both are C code, which keeps the GIL,
but for a garbage collection that runs somebody's Python: so there is none meanwhile.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import functools
import gc
import linecache
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any
from weakref import WeakKeyDictionary

from penstock.forked import new_rlock

_LOCK = new_rlock()


def parsed(text: str) -> ast.Module:
    """`ast.parse(text)`.

    >>> ast.unparse(parsed("a+b"))
    'a + b'
    """
    with _alone():
        return ast.parse(text)


def parsed_expression(text: str) -> ast.Expression:
    """`ast.parse(text, mode="eval")`, which `ast.literal_eval` takes."""
    with _alone():
        return ast.parse(text, mode="eval")


def compiled_tree(module: ast.Module, file: str, flags: int) -> CodeType:
    """The code of a tree; the `__future__` features are those in `flags` only."""
    with _alone():
        made: CodeType = compile(module, file, "exec", flags=flags, dont_inherit=True)
        return made


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    with _LOCK:
        collects = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if collects:
                gc.enable()


Definition = ast.FunctionDef | ast.Lambda

_OUTER = "outside"  # the function around it, which holds the names it has from outside
_FUTURE = functools.reduce(
    int.__or__, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)
_NO_TREE = SyntaxError, ValueError, RecursionError, SystemError  # the last where another thread compiles by itself
_LONGEST = 1 << 20  # characters of a file: it is parsed once, at some 5 MB a second


@dataclass(frozen=True, slots=True)
class FoundDefinition:
    """A function's tree, and the names that its file imports: calls of what is in them are compiled in another way."""

    node: Definition
    imports: tuple[str, ...]


def definition(function: FunctionType) -> FoundDefinition | None:
    """The tree of a function's definition, or None where there is none to be trusted.

    >>> definition(eval("lambda x: x")) is None
    True
    """
    code = function.__code__
    if code in _MADE:
        return _MADE[code]
    text = "".join(linecache.getlines(code.co_filename, function.__globals__))
    if not text or len(text) > _LONGEST:
        return None
    try:
        nodes, imports = _definitions(text)
    except _NO_TREE:
        return None
    candidates = [FoundDefinition(node, imports) for node in nodes.get(code.co_firstlineno, ())]
    return next((found for found in candidates if _same(_code_of(found, code), code)), None)


_MADE: WeakKeyDictionary[CodeType, FoundDefinition] = WeakKeyDictionary()


def remember(code: CodeType, found: FoundDefinition) -> None:
    """Keep the tree of code that was made from it."""
    _MADE[code] = found


@functools.lru_cache(8)
def _definitions(text: str) -> tuple[dict[int, list[Definition]], tuple[str, ...]]:
    """Every function in a file, by the line on which its code begins, and the names that the file itself imports."""
    found: dict[int, list[Definition]] = {}
    tree = parsed(text)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else ()
            line = min([node.lineno, *(decorator.lineno for decorator in decorators)])
            found.setdefault(line, []).append(node)
    return found, tuple(sorted(_imported(tree) - {"*"}))


def _imported(node: ast.AST) -> set[str]:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        return set()
    return set().union(*map(_imported, ast.iter_child_nodes(node)))


def compiled(found: FoundDefinition, like: CodeType) -> Iterator[CodeType]:
    """The codes of its name that a definition compiles to in the place where `like` stands."""
    node = found.node
    statement: ast.stmt = node if isinstance(node, ast.FunctionDef) else ast.copy_location(ast.Expr(node), node)
    own = [] if like.co_name in like.co_freevars or not like.co_name.isidentifier() else [like.co_name]
    names = [ast.arg(name, lineno=1, col_offset=0) for name in like.co_freevars]
    around = ast.FunctionDef(
        name=_OUTER,
        args=ast.arguments(posonlyargs=[], args=names, kwonlyargs=[], kw_defaults=[], defaults=[]),
        body=[*([ast.Global(own)] if own else []), statement],  # it calls itself by its global name
        decorator_list=[],
        lineno=1,
        col_offset=0,
    )
    if "type_params" in ast.FunctionDef._fields:
        around.type_params = []  # type: ignore[attr-defined, unused-ignore]
    module = ast.fix_missing_locations(ast.Module([*_imports(found.imports), around], []))
    flags = like.co_flags & _FUTURE
    whole = compiled_tree(module, like.co_filename, flags)
    outer = next(item for item in whole.co_consts if isinstance(item, CodeType) and item.co_name == _OUTER)
    return (item for item in outer.co_consts if isinstance(item, CodeType) and item.co_name == like.co_name)


def _imports(names: Sequence[str]) -> list[ast.stmt]:
    """An import of each name, which is never run."""
    return [ast.Import([ast.alias(name)]) for name in names]


def _code_of(found: FoundDefinition, like: CodeType) -> CodeType | None:
    try:
        return next(compiled(found, like), None)
    except _NO_TREE:
        return None


def _same(first: CodeType | None, second: CodeType) -> bool:
    return (
        first is not None
        and first.co_code == second.co_code
        and _shape(first) == _shape(second)
        and list(first.co_positions()) == list(second.co_positions())
        and _same_constants(first.co_consts, second.co_consts)
    )


def _shape(code: CodeType) -> Any:
    return (
        code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars,
        code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & ~_FUTURE,
        code.co_exceptiontable,
    )  # fmt: skip


def _same_constants(first: Sequence[Any], second: Sequence[Any]) -> bool:
    if len(first) != len(second):
        return False
    return all(
        _same(a, b)
        if isinstance(a, CodeType) and isinstance(b, CodeType)
        else type(a) is type(b) and repr(a) == repr(b)
        for a, b in zip(first, second, strict=True)
    )
