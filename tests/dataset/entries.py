"""Pipelines whose elements are kept in entries, and what lies in the folders of these."""

import errno
import json
import os
from pathlib import Path

import pytest
from tests.positions import given, stage_of

import penstock as ps
from penstock.store import entry_writer as writer

RANGE = ps.Dataset.range
COUNT = 20
WANTED = [x * x for x in range(COUNT)]


def square(x):
    return x * x


def squares():
    return RANGE(COUNT).map(square)


KINDS = {
    "cache": lambda path, ds=None: (ds or squares()).cache(path),
    "snapshot": lambda path, ds=None: (ds or squares()).snapshot(path),
}
by_kind = pytest.mark.parametrize("kind", KINDS)


def values(dataset):
    return [int(x) for x in dataset]


def begin(dataset, count):
    """A pass that stops behind so many elements."""
    stage = stage_of(dataset)
    found = []
    for element in given(stage, 2):
        found.append(int(element))
        if len(found) >= count:
            break
    stage.close()
    return found


def entry_of(path):
    (folder,) = {manifest.parent for manifest in Path(path).glob("*/manifest.json")}
    writer.is_writing(folder)  # a pass that was closed has written the rest
    return folder


def entry_of_writing(path):
    return next(Path(path).glob("*/manifest.json")).parent


def committed(path):
    lines = (entry_of(path) / "journal.jsonl").read_text().splitlines()
    return [chunk for line in lines for chunk in json.loads(line)[1]["chunks"]]


def is_complete(path):
    return json.loads((entry_of(path) / "manifest.json").read_text())["complete"]


def damage(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def close(monkeypatch, folder):
    """Nobody may look into a folder any more, nor at what is in it."""
    stat, opened = os.stat, open

    def refuse(path, *, itself):
        inside = str(path).startswith(f"{folder}/") or (itself and str(path) == str(folder))
        if isinstance(path, (str, os.PathLike)) and inside:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))

    def refusing(call, *, itself):
        def called(path, *arguments, **named):
            refuse(path, itself=itself)
            return call(path, *arguments, **named)

        return called

    monkeypatch.setattr(os, "stat", refusing(stat, itself=False))
    for name in ("listdir", "scandir", "open", "mkdir"):
        monkeypatch.setattr(os, name, refusing(getattr(os, name), itself=True))
    monkeypatch.setattr("builtins.open", refusing(opened, itself=True))
