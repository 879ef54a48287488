"""Checks of the arguments of `load` against the manifest of a saved data set."""

from __future__ import annotations

import logging
import time
from typing import Any

from penstock.block.arrow_nest import column_names, spec_from_json
from penstock.block.spec import LeafSpec
from penstock.block.structure import flatten
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.io import storage
from penstock.io.compression import AUTO, codec_of
from penstock.store.entry import StoredEntry
from penstock.store.manifest import NAME, Manifest, file_in, read_manifest

_LOG = logging.getLogger("penstock.dataset")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0  # seconds between two checks of a folder
_PATIENCE = 10.0  # seconds after which a log line reports the waiting


def wait_for(folder: str, *, complete: bool) -> None:
    """Wait until the folder has a manifest, or a complete manifest."""
    pause, waited = _FIRST_PAUSE, 0.0
    while not storage.exists(file_in(folder, NAME)) or (complete and not read_manifest(folder).complete):
        if waited < _PATIENCE <= waited + pause:
            there = "is not complete" if storage.exists(file_in(folder, NAME)) else f"has no {NAME}"
            _LOG.warning("load(%r, wait=True) waits, because the folder %s.", folder, there)
        time.sleep(pause)
        waited += pause
        pause = min(pause * 2, _LONGEST_PAUSE)


def so_far(folder: str) -> Manifest:
    """Return the manifest of an incomplete entry, and log a warning."""
    entry = StoredEntry(folder)
    entry.refresh()
    _LOG.warning(
        "load(%r): the saved data set is not complete, so it has only its first %d elements. Use load(..., wait=True) "
        "to wait for the other elements.",
        folder,
        entry.elements,
    )
    return entry.part(0)


def check_compression(compression: str | None, manifest: Manifest) -> None:
    """Raise InvalidArgumentError if the files have another compression. None and AUTO accept any."""
    wanted = codec_of(compression)
    if wanted in (None, AUTO) or wanted == manifest.compression or not manifest.chunks:
        return
    found = "no compression" if manifest.compression is None else manifest.compression.upper()
    message = f"The data set was saved with {found}, got compression={compression!r}."
    raise InvalidArgumentError(message, hint="Leave it out: the manifest contains it.")


def checked_spec(spec: Any, manifest: Manifest) -> Any:
    """Return the caller's nest of specs, if the saved elements satisfy it. Without one, return that of the manifest.

    Named tuples and dataclasses are those of the caller, who may have moved them to another module.
    """
    if spec is None or manifest.spec is None:
        return spec if manifest.spec is None else None
    wanted, structure = flatten(spec)
    for leaf in wanted:
        if not isinstance(leaf, LeafSpec):
            message = f"element_spec is a nest of TensorSpec, got {leaf!r:.60}."
            raise InvalidTypeError(message, hint="Leave it out: the manifest contains it.")
    saved = [spec_from_json(leaf) for leaf in manifest.spec["leaves"]]
    found = dict(zip(column_names(flatten(_plain(manifest.spec["nest"]))[1]), saved, strict=True))
    given = dict(zip(column_names(structure), wanted, strict=True))
    if found.keys() != given.keys():
        message = f"element_spec has the components {list(given)}, and {list(found)} were saved."
        raise InvalidTypeError(message, hint="Leave it out: the manifest contains it.")
    for name, have in found.items():
        if given[name].relax(have) != given[name]:
            message = f"element_spec says {given[name]} for {name!r}, and {have} was saved."
            raise InvalidTypeError(message, hint="Leave it out: the manifest contains it.")
    if list(found) == list(given):
        return spec
    return flatten(manifest.element_spec())[1].build([given[name] for name in found])  # dict keys in the saved order


def _plain(nest: Any) -> Any:
    """Return a stored nest as tuples and dicts, so that its names can be read without importing its classes."""
    if nest is None:
        return 0
    if "tuple" in nest:
        return tuple(_plain(part) for part in nest["tuple"])
    if "dict" in nest:
        return {name: _plain(part) for name, part in nest["dict"]}
    if "none" in nest:
        return None
    return {name: _plain(part) for name, part in zip(nest["fields"], nest["parts"], strict=True)}
