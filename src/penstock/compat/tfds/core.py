"""`tfds.core`: what a builder derives from, and describes itself with."""

from __future__ import annotations

from typing import Any

from penstock.catalog import Builder, BuilderConfig, ReadInstruction, SplitInfo
from penstock.catalog import DatasetInfo as _DatasetInfo
from penstock.compat.teaching import missing_in
from penstock.errors import InvalidArgumentError


class Version(str):
    """A version such as "1.2.0": text that compares by its numbers.

    >>> Version("1.10.0") > "1.9.3", Version("1.2.0").match("1.*.*"), Version("1.2.0").minor
    (True, True, 2)
    """

    __slots__ = ()

    def __new__(cls, version: Any) -> Version:
        parts = str(version).split(".")
        if len(parts) != 3 or not all(part.isdigit() for part in parts):
            message = f"A version is three numbers, got {version!r}."
            raise InvalidArgumentError(message, hint='Such as tfds.core.Version("1.0.0").')
        return super().__new__(cls, version)

    @property
    def tuple(self) -> Any:
        return tuple(map(int, self.split(".")))

    major = property(lambda self: self.tuple[0])
    minor = property(lambda self: self.tuple[1])
    patch = property(lambda self: self.tuple[2])

    def match(self, other_version: str) -> bool:
        """Whether this is the version, where * stands for any number."""
        return all(one in ("*", mine) for mine, one in zip(self.split("."), str(other_version).split("."), strict=True))

    def __lt__(self, other: Any) -> bool:
        return bool(self.tuple < Version(other).tuple)

    def __le__(self, other: Any) -> bool:
        return not self > other

    def __gt__(self, other: Any) -> bool:
        return bool(self.tuple > Version(other).tuple)

    def __ge__(self, other: Any) -> bool:
        return not self < other


def DatasetInfo(*, builder: Any = None, **kwargs: Any) -> _DatasetInfo:
    """What is known about a data set; the builder knows its name and version itself."""
    return _DatasetInfo(**kwargs)


class GeneratorBasedBuilder(Builder):
    """A builder under tfds's name; see `penstock.catalog.Builder`."""

    def dataset_info_from_configs(self, **kwargs: Any) -> _DatasetInfo:
        """The description of the data set, of these arguments."""
        return _DatasetInfo(**kwargs)


__all__ = [
    "Builder",
    "BuilderConfig",
    "DatasetInfo",
    "GeneratorBasedBuilder",
    "ReadInstruction",
    "SplitInfo",
    "Version",
]

__getattr__ = missing_in(
    "tfds.core",
    globals(),
    {"BeamBasedBuilder": "Derive from tfds.core.GeneratorBasedBuilder; catalog.Each makes examples in parallel."},
)
