"""Functions that create data sets from data sets, as `flat_map` gets: do they plan the same for all that are alike?

`lambda w: w.batch(n)` names steps, and looks at no element. Its plan for one window is its plan for every window of the
same size and kind.
"""

from __future__ import annotations

import ast
from types import FunctionType
from typing import Any

from penstock.functions.code import words
from penstock.functions.definition import definition
from penstock.functions.objects import in_class, is_plain
from penstock.functions.ownership import is_penstocks
from penstock.functions.uses import closure, defaults

_STEPS = words("batch take skip shard map filter cardinality")  # whose functions are looked at elsewhere


class _Differs(Exception):
    """The plan may be another one for each data set; the text says why."""


def why_plans_otherwise(function: Any) -> str | None:
    """Return why a function might plan otherwise for a data set like one that it was given, or None.

    >>> why_plans_otherwise(print)
    'it is no plain function'
    """
    function = getattr(function, "__penstock_called__", function)  # the user's, in compat's
    found = definition(function) if type(function) is FunctionType else None
    if found is None:
        return "it is no plain function" if type(function) is not FunctionType else "it has no source text"
    node = found.node
    body = node.body if isinstance(node, ast.Lambda) else node.body[-1]
    steps: list[ast.stmt] = [] if isinstance(node, ast.Lambda) else node.body[:-1]
    known = function.__globals__ | dict(closure(function)) | defaults(function)
    parameters = {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)} - defaults(function).keys()
    try:
        for statement in steps:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                continue  # a docstring
            if not isinstance(statement, ast.Assign) or not all(isinstance(one, ast.Name) for one in statement.targets):
                message = "it does more than to name steps"
                raise _Differs(message)
            _check(statement.value, parameters, known)
            parameters |= {one.id for one in statement.targets if isinstance(one, ast.Name)}
        value = body.value if isinstance(body, ast.Return) else body
        if not isinstance(value, ast.expr):
            return "it does more than to name steps"
        _check(value, parameters, known)
    except _Differs as why:
        return str(why)
    return None


def _check(node: ast.expr, parameters: set[str], known: dict[str, Any]) -> None:
    """Check an expression: steps of the parameters, with constants and functions as their arguments."""
    match node:
        case ast.Constant() | ast.Lambda():
            return
        case ast.Name(id=name) if name in parameters:
            return
        case ast.Name(id=name):
            if not (is_plain(known.get(name)) or isinstance(known.get(name), FunctionType)):
                message = f"it reads `{name}`, which may change"
                raise _Differs(message)
        case ast.Tuple() | ast.List() | ast.Dict() | ast.BinOp() | ast.UnaryOp():
            for each in ast.iter_child_nodes(node):
                if isinstance(each, ast.expr):
                    _check(each, parameters, known)
        case ast.Subscript():
            _check(node.value, parameters, known)
            _check(node.slice, parameters, known)
        case ast.Call(func=ast.Attribute() as called):
            for each in (*node.args, *(keyword.value for keyword in node.keywords)):
                _check(each, parameters, known)
            if called.attr == "zip" and _is_dataset(called.value, known):
                return
            if called.attr not in _STEPS:
                message = f"it uses .{called.attr}"
                raise _Differs(message)
            _check(called.value, parameters, known)
        case _:
            message = "it does more than to name steps"
            raise _Differs(message)


def _is_dataset(node: ast.expr, known: dict[str, Any]) -> bool:
    """Return True for `ps.Dataset` and `tf.data.Dataset`."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    found = known.get(node.id) if isinstance(node, ast.Name) else None
    for name in names:
        found = getattr(found, name, None) if is_penstocks(type(found)) or type(found).__name__ == "module" else None
    return isinstance(found, type) and is_penstocks(found) and in_class(found, "zip") is not None
