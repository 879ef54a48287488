"""Text that a function treats as `str`: text is `bytes` in elements, and never equal to a `str`.

The syntax tree of the function is searched for comparisons of text with string literals. A variable that is assigned
to counts as unknown. Functions that check types are skipped, because they may handle both types.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from penstock.block.spec import TensorSpec
from penstock.functions.definition import definition
from penstock.functions.ownership import is_users
from penstock.functions.uses import plain

_TEXT = TensorSpec((), bytes)
_ASKING = frozenset(("isinstance", "issubclass", "type", "hasattr", "singledispatch"))
_SAME = frozenset(("strip", "lstrip", "rstrip", "lower", "upper", "title"))


@dataclass(frozen=True, slots=True)
class TextAsStr:
    """A line on which a function treats text as `str`, and a correction."""

    where: str
    message: str
    mended: str


def texts_as_str(function: Callable[..., Any], arguments: Sequence[Any]) -> Iterator[TextAsStr]:
    """Yield the lines on which a function treats text as `str`, given the specs of its arguments."""
    called, owner = plain(function)
    found = definition(called) if type(called) is FunctionType and is_users(called) else None
    nodes = [] if found is None else list(ast.walk(found.node))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    if found is None or any(one.id in _ASKING for one in names):
        return
    places = [*found.node.args.posonlyargs, *found.node.args.args][owner is not None :]
    specs = dict(zip([one.arg for one in places], arguments, strict=False))
    changed = {one.id for one in names if not isinstance(one.ctx, ast.Load)}
    for node in nodes:  # a dict counts as changed if an item is assigned or a call gets it
        inner: list[ast.expr] = node.args if isinstance(node, ast.Call) else []
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            inner = [node.value]
        changed |= {one.id for one in inner if isinstance(one, ast.Name) and specs.get(one.id) != _TEXT}
    specs = {name: spec for name, spec in specs.items() if name not in changed}
    both = {node.value for node in nodes if isinstance(node, ast.Constant) and type(node.value) is bytes}
    for node in nodes:
        where = f"{called.__code__.co_filename}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.FormattedValue) and node.conversion == -1 and _spec(node.value, specs) == _TEXT:
            message = "formats text into a str, which gives \"b'…'\" with the b and the quotes"
            yield TextAsStr(where, message, 'f"{text.decode()}"')
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            literal, sign = _literal(node, specs), {ast.Eq: "==", ast.NotEq: "!="}.get(type(node.ops[0]), "in")
            if literal is not None and literal.encode() not in both:
                yield _told(where, literal, sign)


def _literal(node: ast.Compare, specs: dict[str, Any]) -> str | None:
    """Return the string literal that text is compared with, or None."""
    (other,) = node.comparators
    text = node.left
    if isinstance(node.ops[0], (ast.In, ast.NotIn)) and isinstance(other, (ast.Tuple, ast.List, ast.Set)):
        held = [each.value for each in other.elts if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        return held[0] if _spec(text, specs) == _TEXT and held and len(held) == len(other.elts) else None
    if isinstance(text, ast.Constant):
        text, other = other, text
    equal = isinstance(node.ops[0], (ast.Eq, ast.NotEq)) and _spec(text, specs) == _TEXT
    return other.value if equal and isinstance(other, ast.Constant) and isinstance(other.value, str) else None


def _told(where: str, literal: str, sign: str) -> TextAsStr:
    if sign == "in":
        mended = f"{literal.encode()!r} in place of {literal!r}, or text.decode() in place of the text"
        return TextAsStr(where, f"looks up text in a collection of str ({literal!r}), where it is never found", mended)
    result = "never equal" if sign == "==" else "always unequal"
    mended = f"text {sign} {literal.encode()!r}, or text.decode() {sign} {literal!r}"
    return TextAsStr(where, f"compares text with {literal!r}, which is {result}", mended)


def _spec(node: ast.expr, specs: dict[str, Any]) -> Any:
    """Return the spec of an expression: an argument, an item of an argument, or a method that returns text again."""
    if isinstance(node, ast.Name):
        return specs.get(node.id)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME:
        return _TEXT if _spec(node.func.value, specs) == _TEXT else None
    if isinstance(node, ast.Subscript):
        owner = _spec(node.value, specs)
        if isinstance(node.slice, ast.Slice):
            return owner if owner == _TEXT else None
        return owner.get(node.slice.value) if isinstance(owner, dict) and isinstance(node.slice, ast.Constant) else None
    return None
