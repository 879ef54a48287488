"""The syntax tree of a function, proven to belong to the code that runs. Also Python's parser and compiler.

The file of a function may have changed since its import, and a line can contain several lambdas. `definition` therefore
compiles each possible tree again. It returns a tree only if the instructions, constants, names and positions are those
of the function's code.

Parser and compiler count the depth of a tree in one variable for all threads. They raise SystemError if two threads use
them at the same time ("AST constructor recursion depth mismatch", CPython up to 3.12). Both are C code and keep the
GIL, unless a garbage collection runs Python code. The collection is therefore switched off during each call.
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
    """Return `ast.parse(text)`.

    >>> ast.unparse(parsed("a+b"))
    'a + b'
    """
    with _alone():
        return ast.parse(text)


def parsed_expression(text: str) -> ast.Expression:
    """Return `ast.parse(text, mode="eval")`, which can be passed to `ast.literal_eval`."""
    with _alone():
        return ast.parse(text, mode="eval")


def compiled_tree(module: ast.Module, file: str, flags: int) -> CodeType:
    """Return the code of a tree. Only the `__future__` features in `flags` are on."""
    with _alone():
        return compile(module, file, "exec", flags=flags, dont_inherit=True)


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

_OUTER = "outside"  # the name of the enclosing function, whose parameters are the free variables
_FUTURE = functools.reduce(
    int.__or__, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)
_NO_TREE = SyntaxError, ValueError, RecursionError, SystemError  # SystemError: another thread compiles without the lock
_LONGEST = 1 << 20  # characters of a file; parsing takes about 0.2 s per MB


@dataclass(frozen=True, slots=True)
class FoundDefinition:
    """A function's tree, and the names that its file imports. Python compiles calls of their methods differently."""

    node: Definition
    imports: tuple[str, ...]


def definition(function: FunctionType) -> FoundDefinition | None:
    """Return the tree of a function's definition, or None if no tree is proven to be right.

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
    """Remember the tree from which `code` was compiled."""
    _MADE[code] = found


@functools.lru_cache(8)
def _definitions(text: str) -> tuple[dict[int, list[Definition]], tuple[str, ...]]:
    """Return all functions in a file by the first line of their code, and the names that the module level imports."""
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
    """Compile a definition in the place of `like`, and yield the code objects with the name of `like`."""
    node = found.node
    statement: ast.stmt = node if isinstance(node, ast.FunctionDef) else ast.copy_location(ast.Expr(node), node)
    own = [] if like.co_name in like.co_freevars or not like.co_name.isidentifier() else [like.co_name]
    names = [ast.arg(name, lineno=1, col_offset=0) for name in like.co_freevars]
    around = ast.FunctionDef(
        name=_OUTER,
        args=ast.arguments(posonlyargs=[], args=names, kwonlyargs=[], kw_defaults=[], defaults=[]),
        body=[*([ast.Global(own)] if own else []), statement],  # if it calls itself, its name is a global
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
    """Return an import statement for each name. The statements are compiled and never run."""
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
