"""Functions that create data sets from data sets, as `flat_map` gets: do they plan the same for all that are alike?

`lambda w: w.batch(n)` names steps, and looks at no element. Its plan for one window is its plan for every window of the
same size and kind.
"""

from __future__ import annotations

import ast
from types import FunctionType, MethodType
from typing import Any

from penstock.functions.code import words
from penstock.functions.definition import definition
from penstock.functions.objects import MAPPINGS, in_class, in_object, is_plain
from penstock.functions.ownership import is_penstocks
from penstock.functions.uses import attribute, closure, defaults

_STEPS = words("batch take skip shard map filter cardinality")  # whose functions are looked at elsewhere
_ABSENT = object()


def why_plans_otherwise(function: Any) -> str | None:
    """Return why a function might plan otherwise for a data set like one that it was given, or None.

    >>> why_plans_otherwise(print)
    '`print` is no function with a source text'
    """
    function = getattr(function, "__penstock_called__", function)  # the user's, in compat's
    called: Any = function.__func__ if type(function) is MethodType else function
    found = definition(called) if type(called) is FunctionType else None
    if found is None:
        return f"`{attribute(called, '__name__') or type(called).__name__}` is no function with a source text"
    node = found.node
    names = [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
    known = called.__globals__ | dict(closure(called)) | defaults(called)
    if type(function) is MethodType:
        known[names.pop(0)] = function.__self__
    parameters = set(names) - defaults(called).keys()
    body = [ast.Return(node.body)] if isinstance(node, ast.Lambda) else node.body
    for each in body:
        value = each.value if isinstance(each, (ast.Return, ast.Assign, ast.Expr)) else each
        wrong = _wrong(value, parameters, known)
        if wrong is not None:
            return f"it does more than to name steps: `{ast.unparse(wrong)}`"
        parameters |= {one.id for one in getattr(each, "targets", ()) if isinstance(one, ast.Name)}
    return None


def _wrong(node: ast.AST | None, parameters: set[str], known: dict[str, Any]) -> ast.AST | None:
    """Return the part of an expression that does more than to name steps with constants and functions, or None."""
    parts: list[ast.AST] = []
    match node:
        case None | ast.Constant() | ast.Lambda():
            return None
        case ast.Name(id=name) if name in parameters:
            return None
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)], keywords=[]) if name in parameters:
            return None
        case ast.Tuple() | ast.List() | ast.Dict() | ast.BinOp() | ast.UnaryOp():
            parts = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
        case ast.Call(func=ast.Attribute(value=owner, attr=name)):
            parts = [*node.args, *(keyword.value for keyword in node.keywords)]
            dataset = _resolved(owner, known)
            if not (name == "zip" and is_penstocks(dataset) and in_class(dataset, "zip") is not None):
                parts.append(owner if name in _STEPS else node.func)
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
