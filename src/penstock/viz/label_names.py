"""`label_names_of`: what the numbers of a data set's labels stand for, where its plan knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

Names = Sequence[str] | Mapping[int, str]


def label_names_of(data: Any) -> Names | None:
    """The names of a folder's classes, or of the one label of a data set of the catalog; None where none are known."""
    names = getattr(data, "class_names", None)
    if isinstance(names, list):
        return names
    plan = getattr(data, "__penstock_dataset__", None)
    below = [] if plan is None else [plan]
    while below:
        node = below.pop()
        told = getattr(getattr(node, "function", None), "label_names", None)  # of a decoder of the catalog
        if told:
            return list(told)
        source = getattr(node, "source", None)
        labels, directory = getattr(source, "labels", None), getattr(source, "directory", None)
        if source is not None and labels is not None and directory is not None:
            files = zip(labels, source.files, strict=True)
            return {label: PurePath(file[len(directory) :].lstrip("/")).parts[0] for label, file in files}
        below += node.inputs
    return None
