"""Brace expansion, as shells do it: how the names of many shards are written in one."""

from __future__ import annotations

import re
from itertools import product

_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)(?:\.\.(-?\d+))?\Z")


def expand_braces(pattern: str) -> list[str]:
    """The names that a pattern with `{a,b}` and `{000..012}` stands for, in order; braces may be nested.

    >>> expand_braces("data-{08..10}.tar")
    ['data-08.tar', 'data-09.tar', 'data-10.tar']
    >>> expand_braces("{train,val}/{a,b}.tar")
    ['train/a.tar', 'train/b.tar', 'val/a.tar', 'val/b.tar']

    Braces that hold neither a comma nor a range stay as they are.
    """
    parts: list[list[str]] = []
    at = begin = 0
    while at < len(pattern):
        close = _closing(pattern, at) if pattern[at] == "{" else None
        choices = None if close is None else _choices(pattern[at + 1 : close])
        if close is None or choices is None:
            at += 1
            continue
        parts += [[pattern[begin:at]], choices]
        at = begin = close + 1
    return ["".join(chosen) for chosen in product(*parts, [pattern[begin:]])]


def _closing(pattern: str, at: int) -> int | None:
    depth = 0
    for place in range(at, len(pattern)):
        depth += {"{": 1, "}": -1}.get(pattern[place], 0)
        if not depth:
            return place
    return None


def _choices(inner: str) -> list[str] | None:
    """What stands between braces, or None where it is neither a list nor a range."""
    found = _RANGE.match(inner)
    if found is not None:
        return _numbers(*found.groups())
    items = _split(inner)
    return [name for item in items for name in expand_braces(item)] if len(items) > 1 else None


def _numbers(first: str, last: str, by: str | None) -> list[str]:
    padded = any(len(text.lstrip("-")) > 1 and text.lstrip("-")[0] == "0" for text in (first, last))
    width = max(len(first), len(last)) if padded else 0
    step = abs(int(by or 1)) or 1
    start, stop = int(first), int(last)
    numbers = range(start, stop + 1, step) if start <= stop else range(start, stop - 1, -step)
    return [f"{number:0{width}d}" if width else str(number) for number in numbers]


def _split(inner: str) -> list[str]:
    """The items of a list, whose commas inside further braces do not count."""
    items, depth = [""], 0
    for character in inner:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and not depth:
            items.append("")
        else:
            items[-1] += character
    return items
