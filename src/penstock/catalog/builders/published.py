"""Published: the base class of builders of published data sets, and the facts in files of this folder."""

from __future__ import annotations

import re
import tomllib
from abc import abstractmethod
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from penstock.catalog.builder import Builder
from penstock.catalog.download.manager import Checksum
from penstock.catalog.features import Feature, FeaturesDict
from penstock.catalog.info import DatasetInfo
from penstock.catalog.names import snake_case

_KEY = re.compile(r"@[^{]*\{([^,]*),")


class Published(Builder):
    """Base class of the builders of published data sets.

    Its attributes and its description come from the table of the data set in `published.toml`. A class derived from a
    builder without a table of its own has the facts of that builder.
    """

    URL: ClassVar[str]
    _FACTS: ClassVar[Mapping[str, Any]]

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        facts = _tables().get(snake_case(cls.__name__))
        if facts is not None:
            cls._FACTS = facts
            cls.VERSION, cls.URL = facts["version"], facts["url"]
            cls.RELEASE_NOTES, cls.EXAMPLES = facts.get("release_notes", {}), facts.get("examples", {})
            cls.CHECKSUMS = checksums(cls.URL)

    @abstractmethod
    def _features(self) -> Mapping[str, Feature]:
        """Return the features of an example."""

    def _info(self) -> DatasetInfo:
        return DatasetInfo(
            features=FeaturesDict(self._features()),
            description=self._FACTS["description"],
            supervised_keys=tuple(self._FACTS["supervised_keys"]),
            homepage=self._FACTS["homepage"],
            citation=citation(self._FACTS["citation"]),
        )


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
def _tables() -> dict[str, dict[str, Any]]:
    return tomllib.loads(_content("published.toml"))


@cache
def _content(file: str) -> str:
    return (Path(__file__).parent / file).read_text(encoding="utf-8")
