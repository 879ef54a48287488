"""Seals a state for the user with a version and a checksum, and opens and checks it again.

A state may go through JSON, pickle or other programs. The checksum covers only properties that all of these preserve. A
tuple equals a list, a key equals its string, and a numpy number equals a Python number. The order of keys does not
matter. The path of a side file is not covered, because the file may be moved.

The states of steps are nested. JSON and pickle follow only about a thousand levels, so a deep state is stored as one
list of parts, innermost first. The parts refer to each other by their position in the list.
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
from penstock.physical.stage import State
from penstock.store.durable import write_whole

VERSION = 3  # 2 had no checksum, and depended on the number of parallel calls
_DEEP = 60  # number of levels from which a state is flattened
_FLAT, _PART = "flat", "part"


def sealed(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state with its version and checksum, in a form that JSON and pickle preserve."""
    found = {"version": VERSION, **state, "stages": _flat(state["stages"])}
    return {**found, "checksum": _digest(_text(found).encode())}


def opened(state: Any) -> dict[str, Any]:
    """Check a sealed state and return its parts.

    Raises:
        InvalidArgumentError: If the value is no state.
        FailedPreconditionError: If the state is of another version of penstock.
        DataLossError: If the state was changed.
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
    except (TypeError, ValueError, RecursionError):  # it contains a value that no state has
        text = None
    if text is None or _digest(text.encode()) != state.get("checksum"):
        message = "This state is not as it was saved: its checksum does not fit."
        hint = "Save the dict as it is, as JSON or by pickle; to leave out elements, call skip_steps(count)."
        raise DataLossError(message, hint=hint)
    found = json.loads(text)  # only Python numbers, strings, lists and dicts
    for name in ("epoch", "skip"):
        if isinstance(found.get(name), bool) or not isinstance(found.get(name), int) or found[name] < 0:
            message = f"In a state, {name} is a count, got {found.get(name)!r:.40}."
            raise InvalidArgumentError(message, hint="Save the dict as it is, as JSON or by pickle.")
    if "side_file" in found:
        found["side_file"]["path"] = state["side_file"].get("path")
    return {**found, "stages": _nested(found["stages"])}


def _text(state: dict[str, Any]) -> str:
    """Return the string that the checksum covers."""
    side = state.get("side_file")
    if isinstance(side, Mapping):
        state = {**state, "side_file": {name: part for name, part in side.items() if name != "path"}}
    return json.dumps(state, sort_keys=True, separators=(",", ":"), default=_plain)


def _plain(value: Any) -> Any:
    """Return a numpy number as a Python number."""
    if not hasattr(value, "tolist"):
        message = f"{type(value).__name__} in a state"
        raise TypeError(message)
    return value.tolist()


def _flat(state: State) -> State:
    """Return the state with its parts in one list, if it is deep."""
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
    """Return the number of levels of lists and dicts, up to the limit."""
    level, depth = [state], 0
    while level and depth < _DEEP:
        level = [part for found in level if _is_nest(found) for part in _inside(found)]
        depth += 1
    return depth


# States are positions and keys, with two exceptions. The state of a user's `scan` function depends on all earlier
# elements, is expensive to compute again, and may be large. The counts of thousands of open groups are large as well.
# Such strings and tables go to a file beside the state.

_LARGE = 4096  # smallest number of characters of a string, or of a table as JSON, that goes to the file
_TEXT, _TABLE = "text_in_side_file", "table_in_side_file"


def set_aside(stages: Any, path: str | os.PathLike[str]) -> tuple[Any, dict[str, Any]]:
    """Write the large strings of a state to `path`, a file or a URL.

    Return the rest of the state, and a reference to the file.
    """
    parts: list[str] = []
    slim = _slim(stages, parts)
    content = "".join(parts).encode("ascii")
    name = storage.as_path(path)
    name = name if storage.is_url(name) else str(Path(name).absolute())
    write_whole(name, content)
    return slim, {"path": name, "digest": _digest(content)}


def brought_back(stages: Any, side_file: dict[str, Any]) -> Any:
    """Return the complete state.

    Raises NotFoundError if the file is missing, and DataLossError if it is another file.
    """
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
    """Return True for a number, or a list of numbers."""
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
