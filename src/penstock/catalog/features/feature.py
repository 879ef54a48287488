"""Feature: the interface of all kinds of values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from penstock.io import FixedLenFeature


class Feature(ABC):
    """One named value of an example: checks and stores it, says how a parser finds it, brings it back.

    Values are stored as tf.train.Example knows them (bytes, int64, float32), in the way TFDS stores them.
    """

    # Where `features.json` sends TFDS for the same feature.
    tfds_class: str

    @abstractmethod
    def encode_example(self, value: Any, name: str) -> Any:
        """Check `value` and return what `io.encode_example` stores; `name` is for the error text."""

    @abstractmethod
    def serialized_spec(self) -> FixedLenFeature:
        """How `io.parse_single_example` reads the stored value."""

    @abstractmethod
    def decode_example(self, stored: Any) -> Any:
        """The value that users see, from the stored one."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The entry of this feature in TFDS's `features.json`, less the class name."""

    def save_metadata(self, folder: Path, name: str) -> None:  # noqa: B027 - most features have none
        """Write files that belong to the feature, such as the names of classes, into `folder`."""


def shape_json(shape: tuple[int | None, ...]) -> dict[str, Any]:
    """A shape as TFDS writes it: sizes as text, -1 where unknown, no entry for scalars.

    >>> shape_json((None, 3))
    {'dimensions': ['-1', '3']}
    >>> shape_json(())
    {}
    """
    return {"dimensions": [str(-1 if size is None else size) for size in shape]} if shape else {}
