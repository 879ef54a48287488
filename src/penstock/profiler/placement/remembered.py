"""What a whole pass showed of the steps of a plan, kept for the next run of it on this machine.

One small JSON file per plan in the user's cache directory, as those of the tuner: whatever is wrong with it counts as
absent, and what cannot be written is not written. It holds names of steps, seconds and bytes. `PENSTOCK_REMEMBER=0`
switches it off.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.options import environment
from penstock.profiler.placement.figures import Spot
from penstock.runtime.autotune.remembered import machine_key, write_small
from penstock.runtime.machine.cache_folder import cache_folder

_FORMAT = 1
_MOST = 1 << 18  # bytes of a file

Figures = Mapping[str, tuple[float, float | None]]  # by step: seconds of a pass, bytes


def recall(key: str) -> tuple[int, Figures]:
    """How many whole passes there were, and what the first of them showed; (0, nothing) where that is not known."""
    path = _path(key)
    try:
        if path is None:
            return 0, {}
        with path.open("rb") as file:
            found = json.loads(file.read(_MOST + 1))
        body = found["body"]
        if found["format"] != _FORMAT or found["check"] != _check(body) or body["key"] != _whole(key):
            return 0, {}
        return body["epochs"], {name: (seconds, nbytes) for name, (seconds, nbytes) in body["steps"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return 0, {}


def remember(key: str, epochs: int, spots: Sequence[Spot]) -> None:
    """Keep the figures of steps after so many whole passes."""
    path = _path(key)
    steps = {spot.name: (spot.seconds, spot.nbytes) for spot in spots}
    if path is not None and all(math.isfinite(value or 0.0) for pair in steps.values() for value in pair):
        body = {"key": _whole(key), "epochs": epochs, "steps": steps}
        write_small(path, json.dumps({"format": _FORMAT, "check": _check(body), "body": body}))


def _check(body: Any) -> str:
    """A digest of the content: half a file, or one that somebody has edited, is none."""
    return hashlib.blake2b(json.dumps(body, sort_keys=True).encode(), digest_size=16).hexdigest()


def _whole(key: str) -> str:
    return f"{key}\n{machine_key()}"


def _path(key: str) -> Path | None:
    """The file of a plan on this machine, or None where nothing is to be remembered."""
    folder = None if environment("REMEMBER") == "0" else cache_folder("placement")
    name = hashlib.blake2b(_whole(key).encode(), digest_size=16).hexdigest()
    return None if folder is None else folder / f"{name}.json"
