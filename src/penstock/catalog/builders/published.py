"""Published facts about data sets, from files in this folder: checksums, citations, and names of classes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from penstock.catalog.download.manager import Checksum

_KEY = re.compile(r"@[^{]*\{([^,]*),")


def checksums(address: str) -> Mapping[str, Checksum]:
    """Return the files of `checksums.tsv` whose addresses begin with `address`.

    >>> list(checksums("https://www.cs.toronto.edu/~kriz/cifar-10-"))
    ['https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz']
    """
    rows = [line.split("\t") for line in _content("checksums.tsv").splitlines() if line.startswith(address)]
    return {url: Checksum(int(size), sha256, *filename) for url, size, sha256, *filename in rows}


def citation(key: str) -> str:
    """Return the entry of `citations.bib` with this key."""
    entries = _content("citations.bib").strip().split("\n\n")
    return next(entry for entry in entries if (found := _KEY.match(entry)) and found[1] == key)


def labels(name: str) -> list[str]:
    """Return the names of the classes of a data set, from `labels/<name>.txt`."""
    return _content(f"labels/{name}.txt").splitlines()


@cache
def _content(file: str) -> str:
    return (Path(__file__).parent / file).read_text(encoding="utf-8")
