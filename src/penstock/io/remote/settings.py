"""RemoteSettings: the limits of reading behind URLs, from the environment, which workers of any kind inherit."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache

from penstock.errors import InvalidArgumentError

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_NAMES = {
    "tries": "PENSTOCK_REMOTE_TRIES",
    "timeout": "PENSTOCK_REMOTE_TIMEOUT",
    "patience": "PENSTOCK_REMOTE_PATIENCE",
    "buffer": "PENSTOCK_REMOTE_BUFFER",
    "cache": "PENSTOCK_REMOTE_CACHE",
    "cache_bytes": "PENSTOCK_REMOTE_CACHE_BYTES",
}


@dataclass(frozen=True)
class RemoteSettings:
    """How often and how long a request is tried, what is read ahead, and where blocks are kept."""

    tries: int = 8  # of one request
    timeout: float = 60.0  # seconds for one try
    patience: float = 300.0  # seconds for all tries of one request
    buffer: int = 1 << 28  # bytes that all files of a process together read ahead
    cache: str | None = None  # a local folder
    cache_bytes: int = 10 << 30


def settings() -> RemoteSettings:
    """Read the settings from the environment as it is now. Raises InvalidArgumentError for a value that is none."""
    return _parsed(tuple(os.environ.get(name) for name in _NAMES.values()))


@cache
def _parsed(values: tuple[str | None, ...]) -> RemoteSettings:
    given = {field: text for field, text in zip(_NAMES, values, strict=True) if text}
    found: dict[str, int | float | str] = {}
    for field, text in given.items():
        found[field] = text if field == "cache" else _number(field, text)
    return RemoteSettings(**found)  # type: ignore[arg-type]


def _number(field: str, text: str) -> int | float:
    seconds = field in ("timeout", "patience")
    unit = text[-1:].upper()
    scale = 1 if seconds or unit not in _UNITS else _UNITS[unit]
    try:
        number = float(text) if seconds else int(text[:-1] if unit in _UNITS else text) * scale
    except ValueError:
        number = 0
    if not 0 < number < float("inf"):
        what = "a number of seconds" if seconds else "a positive number, with K, M, G or T behind it for a larger one"
        message = f"{_NAMES[field]} is {what}, got {text!r:.40}."
        raise InvalidArgumentError(message, hint="Correct the environment variable, or leave it out.")
    return number
