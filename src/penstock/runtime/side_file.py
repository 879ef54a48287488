"""Side file: where a checkpoint puts what is too large to stand in it.

States are positions and keys. The exception is a value that a user's function hands on (`scan`): it follows from
everything before it, cannot be made again cheaply, and may be large. The counts of thousands of open groups are large
as well. Such texts and tables of a state go to a file beside it.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from penstock.errors import DataLossError, InvalidTypeError, NotFoundError
from penstock.io import storage
from penstock.io.saved.durable import write_whole

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
