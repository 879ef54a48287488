"""Source and Reader: the two interfaces an origin of elements implements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from penstock.block.block import Block

Position = Any  # plain numbers, strings, lists and dicts, so that a checkpoint can be written as JSON


class Reader(ABC):
    """One pass over a source. Used by one thread at a time."""

    @abstractmethod
    def read(self, max_elements: int) -> Block | None:
        """The next 1 to `max_elements` elements, or None at the end; fewer where waiting for more would take long.

        An Exception takes the place of one element, behind all that were given; asked again, the reader goes on behind
        it (with the next record, or the next file), or says that the end has come.
        """

    @abstractmethod
    def position(self) -> Position:
        """What `Source.open` needs to go on behind the last element read."""

    @abstractmethod
    def close(self) -> None:
        """Let go of files. Idempotent."""


class Source(ABC):
    """An origin of elements that can be read again and again, from the start or from any position."""

    calls: ClassVar[bool] = False  # a user's code, for each element
    holds_spec: ClassVar[bool] = False  # so that asking for it reads nothing
    costly_by_number: ClassVar[str | None] = None  # what one element by number costs, where that is more than itself
    index_hint: ClassVar[str] = "Write its elements out once with save(); what load() gives can be read by number."

    @property
    @abstractmethod
    def label(self) -> str:
        """How errors and `explain` call it."""

    @property
    @abstractmethod
    def spec(self) -> Any:
        """The nest of specs of an element, or None where only reading can tell."""

    @property
    @abstractmethod
    def cardinality(self) -> int:
        """Number of elements, or -1 for infinite, -2 for unknown."""

    @abstractmethod
    def open(self, position: Position | None = None) -> Reader:
        """A new pass, from the start or from where a Reader's `position` pointed."""
