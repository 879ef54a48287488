"""check_manifest: what stands in a manifest is of the right kinds, whoever wrote it."""

from __future__ import annotations

from typing import Any

from penstock.block.arrow_nest import spec_from_json
from penstock.errors import PenstockError
from penstock.io.saved.compression import AUTO

_KINDS: dict[str, tuple[type, ...]] = {
    "penstock": (str,),
    "created": (str,),
    "key": (str,),
    "run": (str,),
    "complete": (bool,),
    "elements": (int,),
    "compression": (str, type(None)),
    "made_of": (list,),
    "sources": (list,),
    "chunks": (list,),
}
_CODECS = (None, AUTO, "lz4", "zstd")
_MOST = 1 << 62  # elements
_PART = ((str,), (str,), (str,))
_SOURCE = ((str,), (int,), (int, str))


def check_manifest(found: dict[str, Any]) -> None:
    """Raise ValueError, TypeError or KeyError for fields that no manifest has; chunks are looked at by `Chunk`."""
    for name, kinds in _KINDS.items():
        _require(type(found[name]) in kinds, name, found[name])
    _require(found["elements"] < _MOST, "elements", found["elements"])
    _require(found["compression"] in _CODECS, "compression", found["compression"])
    for name, row in (("made_of", _PART), ("sources", _SOURCE)):
        for item in found[name]:
            sound = type(item) is list and len(item) == len(row)
            _require(sound and all(type(part) in kinds for part, kinds in zip(item, row, strict=True)), name, item)
    if found["spec"] is not None:
        _check_spec(found["spec"])


def _require(sound: bool, name: str, value: Any) -> None:
    if not sound:
        message = f"{name} is {value!r:.60}"
        raise ValueError(message)


def _check_spec(spec: Any) -> None:
    try:
        leaves = [spec_from_json(leaf) for leaf in spec["leaves"]]
    except PenstockError as error:
        raise ValueError(error.message) from error
    _require(_leaves_in(spec["nest"]) == len(leaves), "spec", spec)


def _leaves_in(nest: Any) -> int:
    """How many leaves a nest has, whose classes need not be there."""
    if nest is None:
        return 1
    if "tuple" in nest:
        return sum(map(_leaves_in, nest["tuple"]))
    if "dict" in nest:
        names, parts = [name for name, _ in nest["dict"]], [part for _, part in nest["dict"]]
        _require(all(type(name) in (str, int, bool) for name in names), "spec", names)
    elif "none" in nest:
        return 0
    else:
        names, parts = nest["fields"], nest["parts"]
        _require(type(nest["type"]) is str and all(type(name) is str for name in names), "spec", nest)
        _require(len(names) == len(parts), "spec", nest)
    _require(len(set(names)) == len(names), "spec", names)
    return sum(map(_leaves_in, parts))
