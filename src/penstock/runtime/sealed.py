"""Sealed: a state as users keep it, with a checksum over all of it, and that state checked and taken apart again.

A state goes through JSON, pickle and the hands of others. The checksum is over what all of these keep: a tuple is a
list, a key is its text, the order of keys does not matter, a number of numpy's is a number. The place of a side file is
left out, since the file may be moved.

Steps stand in a state one inside the other. JSON and pickle follow only about a thousand levels, so the parts of a deep
state are put in one list, innermost first, and refer to each other by their place in it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    InvalidTypeError,
    NotFoundError,
)
from penstock.io import storage
from penstock.io.saved.durable import write_whole
from penstock.physical.stage import State

VERSION = 3  # 2 had no checksum, and depended on how many calls ran in parallel
_DEEP = 60  # levels from which a state is laid flat
_FLAT, _PART = "flat", "part"


def sealed(state: dict[str, Any]) -> dict[str, Any]:
    """The state with its version and checksum, and its stages such that JSON and pickle keep them."""
    found = {"version": VERSION, **state, "stages": _flat(state["stages"])}
    return {**found, "checksum": _checksum(_text(found))}


def opened(state: Any) -> dict[str, Any]:
    """The parts of a state that is what `sealed` gave.

    Raises InvalidArgumentError for what is no state, FailedPreconditionError for one of another version of penstock,
    and DataLossError for one that was changed.
    """
    if not isinstance(state, Mapping) or not {"version", "plan", "stages"} <= set(state):
        message = f"A state is what Iterator.state_dict() returned, got {type(state).__name__}."
        raise InvalidArgumentError(message, hint="Save the dict as it is, as JSON or by pickle.")
    version = state["version"]
    if version != VERSION or isinstance(version, bool):
        message = f"This state has format {version!r:.40}; this version of penstock reads format {VERSION}."
        hint = "Finish the epoch with the version of penstock that saved it, or start it again."
        raise FailedPreconditionError(message, hint=hint)
    try:
        text = _text({name: part for name, part in state.items() if name != "checksum"})
    except (TypeError, ValueError, RecursionError):  # it holds what no state does
        text = None
    if text is None or _checksum(text) != state.get("checksum"):
        message = "This state is not as it was saved: its checksum does not fit."
        hint = "Save the dict as it is, as JSON or by pickle; to leave out elements, call skip_steps(count)."
        raise DataLossError(message, hint=hint)
    found = json.loads(text)  # numbers, texts, lists and dicts of Python's
    for name in ("epoch", "skip"):
        if isinstance(found.get(name), bool) or not isinstance(found.get(name), int) or found[name] < 0:
            message = f"In a state, {name} is a count, got {found.get(name)!r:.40}."
            raise InvalidArgumentError(message, hint="Save the dict as it is, as JSON or by pickle.")
    if "side_file" in found:
        found["side_file"]["path"] = state["side_file"].get("path")
    return {**found, "stages": _nested(found["stages"])}


def _checksum(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _text(state: dict[str, Any]) -> str:
    """What the checksum is over."""
    side = state.get("side_file")
    if isinstance(side, Mapping):
        state = {**state, "side_file": {name: part for name, part in side.items() if name != "path"}}
    return json.dumps(state, sort_keys=True, separators=(",", ":"), default=_plain)


def _plain(value: Any) -> Any:
    """A number of numpy's."""
    if not hasattr(value, "tolist"):
        message = f"{type(value).__name__} in a state"
        raise TypeError(message)
    return value.tolist()


def _flat(state: State) -> State:
    """The state with its parts in one list, if it is deep."""
    if _depth(state) < _DEEP:
        return state
    parts: list[Any] = []
    places: dict[int, int] = {}
    waiting = [state]
    while waiting:
        found = waiting[-1]
        inner = [part for part in _inside(found) if _is_nest(part) and id(part) not in places]
        if inner:
            waiting += reversed(inner)
            continue
        waiting.pop()
        if id(found) not in places:
            places[id(found)] = len(parts)
            parts.append(_with(found, [_place(places, part) for part in _inside(found)]))
    return {_FLAT: parts}


def _place(places: dict[int, int], part: Any) -> Any:
    return {_PART: places[id(part)]} if _is_nest(part) else part


def _nested(state: State) -> State:
    if not isinstance(state, dict) or state.keys() != {_FLAT}:
        return state
    made: list[Any] = []
    for part in state[_FLAT]:
        made.append(_with(part, [made[inner[_PART]] if _is_nest(inner) else inner for inner in _inside(part)]))
    return made[-1]


def _is_nest(state: State) -> bool:
    return isinstance(state, (list, tuple, dict))


def _inside(state: State) -> list[Any]:
    return list(state.values()) if isinstance(state, dict) else list(state)


def _with(state: State, parts: list[Any]) -> State:
    return dict(zip(state, parts, strict=True)) if isinstance(state, dict) else parts


def _depth(state: State) -> int:
    """Levels of lists and dicts, counted as far as it matters."""
    level, depth = [state], 0
    while level and depth < _DEEP:
        level = [part for found in level if _is_nest(found) for part in _inside(found)]
        depth += 1
    return depth


# States are positions and keys. The exception is a value that a user's function hands on (`scan`): it follows from
# everything before it, cannot be made again cheaply, and may be large. The counts of thousands of open groups are large
# as well. Such texts and tables of a state go to a file beside it.

_LARGE = 4096  # characters from which a text, or a table as text, is set aside
_TEXT, _TABLE = "text_in_side_file", "table_in_side_file"


def set_aside(stages: Any, path: str | os.PathLike[str]) -> tuple[Any, dict[str, Any]]:
    """The state without its large texts, which `path`, a file or a URL, is given, and what tells where they are."""
    parts: list[str] = []
    slim = _slim(stages, parts)
    content = "".join(parts).encode("ascii")
    name = storage.as_path(path)
    name = name if storage.is_url(name) else str(Path(name).absolute())
    write_whole(name, content)
    return slim, {"path": name, "digest": _digest(content)}


def brought_back(stages: Any, side_file: dict[str, Any]) -> Any:
    """The whole state again. Raises NotFoundError or DataLossError for a file that is gone or another one."""
    path = side_file["path"]
    if not isinstance(path, (str, os.PathLike)):
        message = f"The path of a side file is a string, got {path!r:.40}."
        raise InvalidTypeError(message, hint='Say where it is: state["side_file"]["path"] = ....')
    path = os.fspath(path)
    try:
        content = storage.read_now(path)
    except FileNotFoundError as error:
        message = "The side file of this state is missing."
        hint = 'Put it back, or say where it is: state["side_file"]["path"] = ....'
        raise NotFoundError(message, hint=hint, file=path) from error
    if _digest(content) != side_file["digest"]:
        message = "The side file is not the one that was written with this state."
        raise DataLossError(message, hint="Give every checkpoint a side file of its own.", file=path)
    return _whole(stages, content.decode("ascii"))


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _slim(state: Any, parts: list[str]) -> Any:
    if isinstance(state, str) and len(state) > _LARGE and state.isascii():
        return {_TEXT: _kept(state, parts)}
    if isinstance(state, (list, tuple)) and len(state) > 1 and all(map(_is_row, state)):
        text = json.dumps(state)
        return {_TABLE: _kept(text, parts)} if len(text) > _LARGE else state
    if isinstance(state, dict):
        return {name: _slim(part, parts) for name, part in state.items()}
    if isinstance(state, (list, tuple)):
        return [_slim(part, parts) for part in state]
    return state


def _kept(text: str, parts: list[str]) -> list[int]:
    start = sum(map(len, parts))
    parts.append(text)
    return [start, len(text)]


def _is_row(entry: Any) -> bool:
    """A number, or a list of numbers."""
    if isinstance(entry, (list, tuple)):
        return all(isinstance(item, int) for item in entry)
    return isinstance(entry, int)


def _whole(state: Any, content: str) -> Any:
    if isinstance(state, dict):
        if set(state) in ({_TEXT}, {_TABLE}):
            ((mark, (start, length)),) = state.items()
            text = content[start : start + length]
            return text if mark == _TEXT else json.loads(text)
        return {name: _whole(part, content) for name, part in state.items()}
    if isinstance(state, list):
        return [_whole(part, content) for part in state]
    return state
