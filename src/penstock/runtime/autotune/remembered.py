"""Stores the results of the tuner for the next run of the same plan on the same machine.

Each plan and machine has one small JSON file in the user's cache directory. A file that is missing, unreadable,
damaged, of another version or of another user counts as absent. A file that cannot be written is skipped. The file
contains names of steps and figures of speed, but no data of the pipeline. Results that other programs affected are not
stored. `PENSTOCK_REMEMBER=0` switches the storage off.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from penstock.cgroup import read
from penstock.options import Options, environment
from penstock.runtime.autotune.figures import Knobs, Sample
from penstock.runtime.machine.granted import granted_cores


def cache_folder(name: str) -> Path | None:
    """Return `penstock/name` in the user's cache directory, which may not exist yet.

    None: there is no home directory.
    """
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not given.is_absolute():  # the XDG specification ignores relative paths
        try:
            given = Path.home() / _beside_home()
        except RuntimeError:
            return None
    return given / "penstock" / name


def _beside_home() -> str:
    if sys.platform == "win32":
        return os.environ.get("LOCALAPPDATA") or "AppData/Local"  # an absolute path replaces the home directory
    return "Library/Caches" if sys.platform == "darwin" else ".cache"


_FORMAT = 1
_EXPIRES = 30 * 86400.0  # seconds until a setting is tuned again
_MOST_FILES = 1000
_MOST_BYTES = 1 << 22  # of all files
_MOST_OF_ONE = 1 << 18
_MOST_TEXT = 2000  # characters of a name or reason
_KNOWN = 1000  # plans that this process remembers
_KNOWN_PASSES = 100  # histories that this process remembers, of about 50 KiB each
_CPU = ("model name", "CPU implementer", "CPU part")  # x86 names its processors, ARM numbers them


@dataclass(frozen=True, slots=True)
class Remembered:
    """The settings of a segment and their rate."""

    knobs: Knobs
    reason: str  # a sentence for the user
    elements_per_second: float
    cpu_us: float  # microseconds of CPU time per element


_known: dict[Path, dict[str, Remembered]] = {}  # by file; an empty entry stands for a missing file
_passes: dict[str, Sequence[Sample]] = {}  # by plan: the history of its last iteration
_quick: dict[str, dict[str, bool]] = {}  # by plan and segment: True if the last tried input took no time


def tuning_digest(fingerprint: str, options: Options) -> str:
    """Return the key of stored settings: a plan, and the resources that the user allows it."""
    return f"{fingerprint} {options.autotune!r} {options.threading!r}"


def recall(plan_digest: str) -> dict[str, Remembered]:
    """Return the stored settings of a plan by segment. Empty: nothing is known.

    Each process reads the file once. The result is a proposal, because the limits of a segment may have changed.
    """
    path = _path(plan_digest)
    if path is None:
        return {}
    found = _known.get(path)
    if found is None:
        found = _read(path, plan_digest)
        _keep(path, found)
    return dict(found)


def remember(plan_digest: str, segments: Mapping[str, Remembered]) -> None:
    """Store settings of some segments of a plan. The settings of its other segments stay.

    A run with equal settings writes nothing.
    """
    path = _path(plan_digest)
    if path is None:
        return
    before = recall(plan_digest)
    new = {name: found for name, found in segments.items() if _is_sound(name, found)}
    if all(name in before and before[name].knobs == found.knobs for name, found in new.items()):
        return
    _keep(path, {**before, **new})
    found = {name: asdict(each) for name, each in {**before, **new}.items()}
    write_small(path, {"plan": plan_digest, "machine": machine_key(), "segments": found})


def last_pass(plan_digest: str) -> Sequence[Sample]:
    """Return the history of the last iteration of this process over a plan. Histories are not written to disk."""
    return () if environment("REMEMBER") == "0" else _passes.get(plan_digest, ())


def remember_pass(plan_digest: str, history: Sequence[Sample]) -> None:
    """Store the history of an iteration for the next iteration over the same plan."""
    if plan_digest not in _passes and len(_passes) >= _KNOWN_PASSES:
        _passes.clear()  # in one step, because other threads read at the same time
    _passes[plan_digest] = history


def inputs_were_quick(plan_digest: str, segment: str) -> bool:
    """Return True if the inputs of a step took no time in the last iteration of this process over a plan."""
    return environment("REMEMBER") != "0" and _quick.get(plan_digest, {}).get(segment, False)


def remember_inputs(plan_digest: str, segment: str, *, quick: bool) -> None:
    """Record for the next iteration of this process if the inputs of a step took no time."""
    if plan_digest not in _quick and len(_quick) >= _KNOWN:
        _quick.clear()
    _quick.setdefault(plan_digest, {})[segment] = quick


def machine_key() -> str:
    """Return the machine properties that settings depend on: cores, processor, Python, its lock, penstock's version."""
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    return f"{_machine()}, {'with' if gil else 'without'} GIL"


@cache
def _machine() -> str:
    version = vars(sys.modules["penstock"])["__version__"]  # this layer cannot import the package itself
    python = f"{platform.python_implementation()} {sys.version_info.major}.{sys.version_info.minor}"
    return f"{granted_cores():g} cores of {_processor()}, {platform.system()}, {python}, penstock {version}"


def _processor(root: Path = Path("/")) -> str:
    """Return the manufacturer's name of the processor, if the system has it, and the architecture."""
    lines = [line.partition(":") for line in (read(root / "proc/cpuinfo") or "").partition("\n\n")[0].splitlines()]
    names = [value.strip() for key, _, value in lines if key.strip() in _CPU]
    return " ".join([*names, platform.machine()])


def _path(plan_digest: str) -> Path | None:
    return small_file("tuning", f"{plan_digest}\n{machine_key()}")


def small_file(folder: str, key: str) -> Path | None:
    """Return the file for a key in a folder of the cache directory, or None if nothing must be stored."""
    found = None if environment("REMEMBER") == "0" else cache_folder(folder)
    return None if found is None else found / f"{hashlib.blake2b(key.encode(), digest_size=16).hexdigest()}.json"


def _keep(path: Path, found: dict[str, Remembered]) -> None:
    if len(_known) >= _KNOWN:
        _known.clear()  # in one step, because other threads read at the same time
    _known[path] = found


# -- files


def _check(body: Any) -> str:
    """Return a digest of the content, which detects incomplete and edited files."""
    return hashlib.blake2b(json.dumps(body, sort_keys=True).encode(), digest_size=16).hexdigest()


def _read(path: Path, plan_digest: str) -> dict[str, Remembered]:
    try:
        if time.time() - path.stat().st_mtime > _EXPIRES:
            return {}
        body = read_small(path)
        if body["plan"] != plan_digest or body["machine"] != machine_key():
            return {}
        segments = {
            name: Remembered(**{**entry, "knobs": Knobs(**entry["knobs"])}) for name, entry in body["segments"].items()
        }
    except DAMAGED:
        return {}
    return segments if all(_is_sound(name, entry) for name, entry in segments.items()) else {}


def _is_sound(name: str, found: Remembered) -> bool:
    """Return True if every field has the right type and a possible value."""
    values = [(part.type, getattr(found.knobs, part.name)) for part in fields(Knobs)]
    values += [("str", name), ("str", found.reason)]
    values += [("float", found.elements_per_second), ("float", found.cpu_us)]
    return all(_fits(kind, value) for kind, value in values)


def _fits(kind: Any, value: Any) -> bool:
    if kind == "str":
        return isinstance(value, str) and len(value) <= _MOST_TEXT
    wanted = (int, float) if kind == "float" else (int,)
    return type(value) in wanted and math.isfinite(value) and 0 <= value < 1 << 63


DAMAGED = (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError)  # errors of damaged small files


def read_small(path: Path) -> Any:
    """Return the value that `write_small` has written. Raises one of `DAMAGED` if the file is missing or damaged."""
    with path.open("rb") as file:
        found = json.loads(file.read(_MOST_OF_ONE + 1))
    if found["format"] != _FORMAT or found["check"] != _check(found["body"]):
        raise ValueError
    return found["body"]


def write_small(path: Path, body: Any) -> None:
    """Write plain values to a small file atomically: first under another name, so that readers find complete files.

    A file that is too large is not written. If the folder has too many files, the oldest are removed. Never raises
    OSError.
    """
    import tempfile

    text = json.dumps({"format": _FORMAT, "check": _check(body), "body": body}, indent=1)
    if len(text) > _MOST_OF_ONE:
        return
    with contextlib.suppress(OSError):
        is_new = not path.exists()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(suffix=".tmp", dir=path.parent)
        temporary = Path(name)
        try:
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(text)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        if is_new:
            _tidy(path)


def _tidy(path: Path) -> None:
    """Remove the oldest files until the folder is within its limits. `path` stays."""
    found = []
    for entry in os.scandir(path.parent):
        if entry.name.endswith((".json", ".tmp")) and entry.name != path.name:
            with contextlib.suppress(OSError):
                stat = entry.stat(follow_symlinks=False)
                found.append((stat.st_mtime_ns, stat.st_size, entry.path))
    found.sort(reverse=True)
    kept = _MOST_OF_ONE  # the largest possible size of `path`
    for number, (_, size, name) in enumerate(found, 2):
        kept += size
        if number > _MOST_FILES or kept > _MOST_BYTES:
            with contextlib.suppress(OSError):
                Path(name).unlink()
