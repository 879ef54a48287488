"""Functions that create data sets from data sets, such as those of `flat_map`: do similar inputs give equal plans?

`lambda w: w.batch(n)` adds steps and reads no element. Its plan for one window is its plan for every window of the
same size and kind.
"""

from __future__ import annotations

import ast
from types import FunctionType, MethodType
from typing import Any

from penstock.functions.code import words
from penstock.functions.definition import definition
from penstock.functions.objects import MAPPINGS, contents, in_class, in_object, is_plain
from penstock.functions.ownership import is_penstocks
from penstock.functions.uses import attribute, closure, defaults

_STEPS = words(  # methods of data sets whose functions are checked elsewhere, and methods of dicts
    "batch take skip shard map filter cardinality keys values items"
)
_ABSENT = object()


def why_plans_otherwise(function: Any) -> str | None:
    """Return why a function might create another plan for a similar data set, or None.

    >>> why_plans_otherwise(print)
    '`print` is no function with a source text'
    """
    function = getattr(function, "__penstock_called__", function)  # compat wraps the user's function
    called: Any = function.__func__ if type(function) is MethodType else function
    found = definition(called) if type(called) is FunctionType else None
    if found is None:
        return f"`{attribute(called, '__name__') or type(called).__name__}` is no function with a source text"
    node = found.node
    names = [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
    known = called.__globals__ | dict(closure(called)) | defaults(called)
    if type(function) is MethodType and names:
        known[names.pop(0)] = function.__self__
    parameters = set(names) - defaults(called).keys()
    known = {name: value for name, value in known.items() if name not in parameters}
    body = [ast.Return(node.body)] if isinstance(node, ast.Lambda) else node.body
    for each in body:
        wrong: ast.AST | None = each
        match each:
            case ast.Return(value=value) | ast.Expr(value=value):
                wrong = _wrong(value, parameters, known)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                wrong = _wrong(value, parameters, known)
                parameters.add(name)
                known.pop(name, None)
        if wrong is not None:
            return f"it does more than add steps: `{ast.unparse(wrong)}`"
    return None


def _wrong(node: ast.AST | None, parameters: set[str], known: dict[str, Any]) -> ast.AST | None:
    """Return the part of an expression that does more than add steps with constants and functions, or None."""
    parts: list[ast.AST] = []
    match node:
        case None | ast.Constant() | ast.Lambda():
            return None
        case ast.Name(id=name) if name in parameters:
            return None
        case ast.Call(func=ast.Name(id="len" | "tuple" | "list" | "dict" as name), args=[part], keywords=[]):
            parts = [part]
            if name in known or name in parameters:
                return node
        case ast.DictComp() | ast.ListComp() | ast.GeneratorExp():
            for each in node.generators:
                constants = contents(_resolved(each.iter, known))
                if each.ifs or not (constants is not None and all(map(is_plain, constants))):
                    parts += [*each.ifs, each.iter]
                parameters = parameters | {one.id for one in ast.walk(each.target) if isinstance(one, ast.Name)}
            parts += [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        case ast.Tuple() | ast.List() | ast.Dict() | ast.BinOp() | ast.UnaryOp():
            parts = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
        case ast.Call(func=ast.Attribute(value=owner, attr=name)):
            parts = [*node.args, *(keyword.value for keyword in node.keywords)]
            dataset = _resolved(owner, known)
            if name in _STEPS:
                parts.append(owner)
            elif not (name == "zip" and is_penstocks(dataset) and in_class(dataset, "zip") is not None):
                return node
        case ast.Subscript(value=owner, slice=key) if _resolved(node, known) is _ABSENT:
            parts = [owner, key]
        case _:
            value = _resolved(node, known)
            return None if is_plain(value) or isinstance(value, FunctionType) else node
    return next((wrong for part in parts if (wrong := _wrong(part, parameters, known)) is not None), None)


def _resolved(node: ast.AST, known: dict[str, Any]) -> Any:
    """Return the object that a name, an attribute or an item stands for, without running any code."""
    match node:
        case ast.Name(id=name):
            return known.get(name, _ABSENT)
        case ast.Attribute(value=owner, attr=name):
            value = _resolved(owner, known)
            if isinstance(value, type):
                return in_class(value, name)
            named = isinstance(value, dict) or type(value).__name__ in ("module", "Namespace")
            return getattr(value, name, _ABSENT) if named else in_object(value, name)
        case ast.Subscript(value=owner, slice=ast.Constant(value=key)):
            value = _resolved(owner, known)
            return value[key] if type(value) in MAPPINGS and key in value else _ABSENT
    return _ABSENT
