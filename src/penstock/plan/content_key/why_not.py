"""Why none of the entries in a folder is that of a plan."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from penstock.errors import PenstockError
from penstock.io import storage
from penstock.io.saved.manifest import NAME, Manifest, read_manifest
from penstock.plan.content_key.difference import differences
from penstock.plan.content_key.made_of import MadeOf
from penstock.plan.content_key.part import Part

_TOLD = 4  # differences; the others are counted


def made_by(manifest: Manifest) -> MadeOf:
    """What an entry is made of, as its manifest tells, which anybody may have written."""
    parts = (map(str, part) for part in manifest.made_of)
    return MadeOf(
        tuple(Part(path, text if text.isprintable() else repr(text), digest) for path, text, digest in parts),
        tuple((*source,) for source in manifest.sources),
    )


def why_not(made: MadeOf, folder: str) -> str | None:
    """The entry of a folder that is nearest to what is wanted, and what differs; None where there is no other."""
    others = [found for found in _manifests(folder) if found.key != made.key]
    if not others:
        return None
    lists = [differences(made, made_by(other)) for other in others]
    newest_first = sorted(zip(lists, others, strict=True), key=lambda pair: pair[1].created, reverse=True)
    differing, nearest = min(newest_first, key=lambda pair: len(pair[0]))
    return f"nearest is {nearest.key[:8]} of {nearest.created}; what differs: {in_a_line(differing)}"


def in_a_line(differing: list[str]) -> str:
    """The first differences, and how many more there are."""
    more = [f"{len(differing) - _TOLD} more"] if len(differing) > _TOLD else []
    return "; ".join([*differing[:_TOLD], *more])


def _manifests(folder: str) -> Iterator[Manifest]:
    if storage.is_url(folder):  # a request for each would cost more than the line is worth
        return
    try:
        folders = sorted(Path(folder).iterdir())
    except OSError:  # it is not there yet, or nobody may look into it
        return
    for entry in folders:
        try:
            if (entry / NAME).exists():
                yield read_manifest(str(entry))
        except (PenstockError, OSError):  # damaged, of another version, somebody else's, or removed meanwhile
            continue
