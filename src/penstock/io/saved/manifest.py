"""Manifest: what a saved data set holds, in one JSON file that is written last."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from penstock.block.arrow_nest import spec_from_json, spec_to_json, structure_from_json, structure_to_json
from penstock.block.structure import flatten
from penstock.errors import DataLossError, FailedPreconditionError, NotFoundError
from penstock.io import storage
from penstock.io.saved.durable import write_whole

NAME = "manifest.json"
_FORMAT = 1


@dataclass(frozen=True)
class Chunk:
    """An Arrow IPC file: neighbouring elements of a shard. All its record batches but the last have `rows` elements."""

    file: str  # relative to the manifest
    shard: int
    elements: int
    rows: int
    bytes: int
    crc32c: int


def _library() -> str:
    try:
        return version("penstock")
    except PackageNotFoundError:  # run from its source
        return "unknown"


@dataclass(frozen=True)
class Manifest:
    """The chunks of a saved data set in the order they were written, and what its elements are.

    `plan` is the fingerprint of the data set that was saved, `run` the folder its chunks are in. `spec` is the nest of
    specs as JSON, or None for a data set without elements whose spec nobody knew.
    """

    plan: str
    run: str
    compression: str | None
    spec: Any
    chunks: tuple[Chunk, ...]
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"), compare=False)
    penstock: str = field(default_factory=_library, compare=False)

    @cached_property
    def elements(self) -> int:
        return sum(chunk.elements for chunk in self.chunks)

    @cached_property
    def shards(self) -> tuple[int, ...]:
        """The numbers of the shards, ascending."""
        return tuple(sorted({chunk.shard for chunk in self.chunks}))

    def element_spec(self) -> Any:
        """The nest of specs. Raises InvalidTypeError for a class that is not loaded."""
        if self.spec is None:
            return None
        return structure_from_json(self.spec["nest"]).build([spec_from_json(leaf) for leaf in self.spec["leaves"]])

    def to_json(self) -> dict[str, Any]:
        return {"format": _FORMAT, "elements": self.elements, **asdict(self)}


def spec_as_json(spec: Any) -> Any:
    """A nest of specs for a Manifest."""
    if spec is None:
        return None
    leaves, structure = flatten(spec)
    return {"nest": structure_to_json(structure), "leaves": [spec_to_json(leaf) for leaf in leaves]}


def write_manifest(folder: str, manifest: Manifest, *, replace: bool) -> bool:
    """Make the chunks a saved data set; False if there is one already and it is not to be replaced."""
    text = json.dumps(manifest.to_json(), indent=1)
    return write_whole(Path(folder, NAME), text.encode(), replace=replace)


def file_in(folder: str, name: str) -> str:
    """A file in a folder that is local or a URL."""
    return f"{folder.rstrip('/')}/{name}"


def read_manifest(folder: str) -> Manifest:
    """The manifest of a saved data set.

    Raises NotFoundError where there is none, DataLossError for a damaged one, FailedPreconditionError for one of a
    later version.
    """
    name = file_in(folder, NAME)
    if not storage.exists(name):
        message = f"No data set is saved in {folder!r}: there is no {NAME}."
        raise NotFoundError(message, hint="save() writes it last; load(..., wait=True) waits for it.")
    with storage.open_read(name) as file:
        content = file.read()
    try:
        found = json.loads(content)
        if found["format"] != _FORMAT:
            message = f"The data set was saved in format {found['format']}; this version reads format {_FORMAT}."
            raise FailedPreconditionError(message, hint="Read it with the penstock that saved it.", file=name)
        return Manifest(
            plan=found["plan"],
            run=found["run"],
            compression=found["compression"],
            spec=found["spec"],
            chunks=tuple(Chunk(**chunk) for chunk in found["chunks"]),
            created=found["created"],
            penstock=found["penstock"],
        )
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, FailedPreconditionError):
            raise
        message = f"The manifest of the saved data set cannot be read: {error!r:.80}"
        raise DataLossError(message, file=name) from error
