"""What a caller of `load` says about a saved data set, compared with its manifest."""

from __future__ import annotations

import logging
import time
from typing import Any

from penstock.block.arrow_nest import column_names, spec_from_json
from penstock.block.spec import LeafSpec
from penstock.block.structure import flatten
from penstock.cache.entry.entry import Entry
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.io import storage
from penstock.io.compression import AUTO, codec_of
from penstock.io.saved.manifest import NAME, Manifest, file_in, read_manifest

_LOG = logging.getLogger("penstock.dataset")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0  # seconds between looks at a folder
_PATIENCE = 10.0  # seconds, behind which it is said that it waits


def wait_for(folder: str, *, complete: bool) -> None:
    """Return when there is a manifest in the folder, or one that is complete."""
    pause, waited = _FIRST_PAUSE, 0.0
    while not storage.exists(file_in(folder, NAME)) or (complete and not read_manifest(folder).complete):
        if waited < _PATIENCE <= waited + pause:
            there = "is not complete" if storage.exists(file_in(folder, NAME)) else f"has no {NAME}"
            _LOG.warning("load(%r, wait=True): it waits: the folder %s.", folder, there)
        time.sleep(pause)
        waited += pause
        pause = min(pause * 2, _LONGEST_PAUSE)


def so_far(folder: str) -> Manifest:
    """What an entry holds that is not complete, and a warning that it is not."""
    entry = Entry(folder)
    entry.refresh()
    _LOG.warning(
        "load(%r): it is not complete, and these are the first %d elements. The data set that it belongs to completes "
        "it; load(..., wait=True) follows that.",
        folder,
        entry.elements,
    )
    return entry.part(0)


def check_compression(compression: str | None, manifest: Manifest) -> None:
    """Raise InvalidArgumentError for a compression that is not the one of the files; None and AUTO take any."""
    wanted = codec_of(compression)
    if wanted in (None, AUTO) or wanted == manifest.compression or not manifest.chunks:
        return
    found = "no compression" if manifest.compression is None else manifest.compression.upper()
    message = f"The data set was saved with {found}, got compression={compression!r}."
    raise InvalidArgumentError(message, hint="Leave it out: the manifest knows.")


def checked_spec(spec: Any, manifest: Manifest) -> Any:
    """The nest of specs that a caller gives, if it admits what was saved; what was saved, without one.

    Named tuples and dataclasses of the nest are those of the caller, who may have moved them to another module.
    """
    if spec is None or manifest.spec is None:
        return spec if manifest.spec is None else None
    wanted, structure = flatten(spec)
    for leaf in wanted:
        if not isinstance(leaf, LeafSpec):
            message = f"element_spec is a nest of TensorSpec, got {leaf!r:.60}."
            raise InvalidTypeError(message, hint="Leave it out: the manifest knows.")
    saved = [spec_from_json(leaf) for leaf in manifest.spec["leaves"]]
    found = dict(zip(column_names(flatten(_plain(manifest.spec["nest"]))[1]), saved, strict=True))
    given = dict(zip(column_names(structure), wanted, strict=True))
    if found.keys() != given.keys():
        message = f"element_spec has the components {list(given)}, and {list(found)} were saved."
        raise InvalidTypeError(message, hint="Leave it out: the manifest knows.")
    for name, have in found.items():
        if given[name].relax(have) != given[name]:
            message = f"element_spec says {given[name]} for {name!r}, and {have} was saved."
            raise InvalidTypeError(message, hint="Leave it out: the manifest knows.")
    if list(found) == list(given):
        return spec
    return flatten(manifest.element_spec())[1].build([given[name] for name in found])  # dict keys as they were saved


def _plain(nest: Any) -> Any:
    """A stored nest made of tuples and dicts alone: whether its classes are there does not matter for its names."""
    if nest is None:
        return 0
    if "tuple" in nest:
        return tuple(_plain(part) for part in nest["tuple"])
    if "dict" in nest:
        return {name: _plain(part) for name, part in nest["dict"]}
    if "none" in nest:
        return None
    return {name: _plain(part) for name, part in zip(nest["fields"], nest["parts"], strict=True)}
