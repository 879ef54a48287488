"""Manifest: the description of a saved data set, in one JSON file.

The types of all fields are checked when the file is read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from penstock.block.arrow_nest import spec_from_json, spec_to_json, structure_from_json, structure_to_json
from penstock.block.structure import flatten
from penstock.errors import DataLossError, FailedPreconditionError, NotFoundError, PenstockError
from penstock.io import storage
from penstock.io.compression import AUTO
from penstock.store.chunk import Chunk, remedy
from penstock.store.durable import write_whole

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
    """Raise ValueError, TypeError or KeyError for invalid fields of a manifest. `Chunk` checks the chunks."""
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


def _require(sound: object, name: str, value: Any) -> None:
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
    """Return the number of leaves of a nest, whose classes need not be loaded."""
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


NAME = "manifest.json"
_FORMAT = 2
_CHECKSUM = b',\n "crc32c": '  # checksum of all text before it


@cache
def library() -> str:
    """Return the version of penstock."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("penstock")
    except PackageNotFoundError:  # penstock runs from its source
        return "unknown"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class Manifest:
    """The chunks of a saved data set in the order they were written, and a description of its elements.

    `key` identifies the elements, and `run` is the folder of the chunks. `spec` is the nest of specs as JSON, or None
    if it was unknown. `sources` are the files that were read, as (name, size, modification time in nanoseconds or
    etag). `made_of` are the inputs of the key, as (path in the plan, description, digest). Chunks are missing unless
    the manifest is `complete`.
    """

    key: str
    run: str
    compression: str | None
    spec: Any
    chunks: tuple[Chunk, ...]
    sources: tuple[tuple[str, int, int | str], ...] = ()
    made_of: tuple[tuple[str, str, str], ...] = ()
    complete: bool = True
    created: str = field(default_factory=_now, compare=False)
    penstock: str = field(default_factory=library, compare=False)

    @cached_property
    def elements(self) -> int:
        return sum(chunk.elements for chunk in self.chunks)

    @cached_property
    def shards(self) -> tuple[int, ...]:
        """Return the numbers of the shards, ascending."""
        return tuple(sorted({chunk.shard for chunk in self.chunks}))

    def element_spec(self) -> Any:
        """Return the nest of specs. Raises InvalidTypeError for a class that is not loaded."""
        if self.spec is None:
            return None
        return structure_from_json(self.spec["nest"]).build([spec_from_json(leaf) for leaf in self.spec["leaves"]])


def spec_as_json(spec: Any) -> Any:
    """Return a nest of specs as JSON for a Manifest."""
    if spec is None:
        return None
    leaves, structure = flatten(spec)
    return {"nest": structure_to_json(structure), "leaves": [spec_to_json(leaf) for leaf in leaves]}


def _text_of(manifest: Manifest) -> bytes:
    """Return readable JSON, with a line for each field, chunk and file."""
    import crc32c

    lists = {
        "made_of": manifest.made_of,
        "sources": manifest.sources,
        "chunks": [chunk.to_json() for chunk in manifest.chunks],
    }
    plain = {
        "format": _FORMAT,
        "penstock": manifest.penstock,
        "created": manifest.created,
        "key": manifest.key,
        "run": manifest.run,
        "complete": manifest.complete,
        "elements": manifest.elements,
        "compression": manifest.compression,
        "spec": manifest.spec,
    }
    fields = [f' "{name}": {json.dumps(value)}' for name, value in plain.items()]
    for name, items in lists.items():
        lines = ",".join(f"\n  {json.dumps(item)}" for item in items)
        fields.append(f' "{name}": [{lines}\n ]' if lines else f' "{name}": []')
    text = ("{\n" + ",\n".join(fields)).encode()
    return text + _CHECKSUM + f"{crc32c.crc32c(text)}\n}}\n".encode()


def write_manifest(folder: str, manifest: Manifest, *, replace: bool) -> bool:
    """Write the manifest. Return False if there is one already and `replace` is False."""
    return write_whole(file_in(folder, NAME), _text_of(manifest), replace=replace)


def file_in(folder: str, name: str) -> str:
    """Return the path of a file in a local folder or at a URL."""
    return f"{folder.rstrip('/')}/{name}"


def read_manifest(folder: str) -> Manifest:
    """Return the manifest of a saved data set.

    Raises NotFoundError if there is none, DataLossError if it is damaged, and FailedPreconditionError if it has another
    format.
    """
    name = file_in(folder, NAME)
    if not storage.exists(name):
        message = f"No data set is saved in {folder!r}: there is no {NAME}."
        raise NotFoundError(message, hint=_elsewhere(folder))
    content = storage.read_now(name)
    try:
        return _manifest_of(content, name)
    except DataLossError as error:
        error.hint = remedy(folder)
        raise
    except PenstockError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        message = f"The manifest of the saved data set cannot be read: {error!r:.80}"
        raise DataLossError(message, hint=remedy(folder), file=name) from error


def _elsewhere(folder: str) -> str:
    """Return a hint about the location of a data set that is not in a folder."""
    inside = [] if storage.is_url(folder) else sorted(str(path.parent) for path in Path(folder).glob(f"*/{NAME}"))
    if inside:
        return f"Folders in it hold what snapshots or caches have written: load one of them, such as {inside[0]!r}."
    return "save() writes it last; load(..., wait=True) waits for it."


def _manifest_of(content: bytes, name: str) -> Manifest:
    """Parse the content of a manifest. Invalid content raises an error of any kind."""
    import crc32c

    text, mark, rest = content.rpartition(_CHECKSUM)
    if mark and rest.rstrip(b"}\n") != str(crc32c.crc32c(text)).encode():
        message = "The manifest of the saved data set is damaged: its checksum is not that of what was written."
        raise DataLossError(message, file=name)
    found = json.loads(content)
    if found["format"] != _FORMAT:
        message = f"The data set was saved in format {found['format']}; this version reads format {_FORMAT}."
        hint = f"Read it with the penstock that saved it, {found.get('penstock', 'unknown')}, or save it again."
        raise FailedPreconditionError(message, hint=hint, file=name)
    if not mark:
        message = "The manifest of the saved data set is damaged: its checksum is missing."
        raise DataLossError(message, file=name)
    check_manifest(found)
    same = ("key", "run", "compression", "spec", "complete", "created", "penstock")
    manifest = Manifest(
        **{name: found[name] for name in same},
        chunks=tuple(Chunk.from_json(chunk) for chunk in found["chunks"]),
        sources=tuple((source, size, stamp) for source, size, stamp in found["sources"]),
        made_of=tuple((path, what, digest) for path, what, digest in found["made_of"]),
    )
    if manifest.elements != found["elements"]:
        message = f"its chunks have {manifest.elements} elements, and it says {found['elements']}"
        raise ValueError(message)
    return manifest
