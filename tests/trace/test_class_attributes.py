"""Attributes of the user's classes are constants for functions that read them, until they change."""

from __future__ import annotations

import abc
import dataclasses
import enum
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

import penstock as ps
from penstock.trace.purity import inspected, why_impure


class Config:
    size, scale, table = 32, 0.5, np.array([2.0, 4.0])
    names: ClassVar[dict[str, int]] = {"a": 3}

    class Model:
        width = (4, 5)

    @staticmethod
    def halved(x: Any) -> Any:
        return x * 0.5

    def method(self, x: Any) -> Any:
        return x * self.size

    @classmethod
    def of_class(cls, x: Any) -> Any:
        return x * cls.size

    @property
    def computed(self) -> int:
        return 3


class Derived(Config):
    size = 8


class Abstract(abc.ABC):  # noqa: B024 - it holds constants
    size = 7


class Mode(enum.Enum):
    FAST = 3
    SLOW = 5


class Number(enum.IntEnum):
    FAST = 3


class Counted(enum.IntEnum):
    FAST = 3

    def __rmul__(self, other: Any) -> Any:
        calls.append(other)
        return other * 2


class Valued(enum.Enum):
    FAST = 3

    @property
    def value(self) -> Any:
        calls.append(self)
        return 4


@dataclasses.dataclass
class Settings:
    size: int = 3
    sizes: list[int] = dataclasses.field(default_factory=list)


class Point(NamedTuple):
    size: int = 3
    shape: tuple[int, ...] = (1, 2)


class Further(Point):
    @property
    def size(self) -> int:  # type: ignore[override]
        calls.append(self)
        return 4


class Meta(type):
    def __getattribute__(cls, name: str) -> Any:
        calls.append(name)
        return super().__getattribute__(name)


class Answering(metaclass=Meta):
    size = 3


class Lazily(type):
    def __getattr__(cls, name: str) -> Any:
        calls.append(name)
        return 3


class Asked(metaclass=Lazily):
    pass


class Descriptor:
    def __get__(self, owner: Any, kind: Any) -> Any:
        calls.append(kind)
        return len(calls)


class Described:
    size = Descriptor()


class Slotted:
    __slots__ = ("size",)


class Listing(list):
    size = 3


calls: list[Any] = []
POINT, FURTHER = Point(5), Further(5)

CONSTANT = {
    "a number": lambda x: x * Config.size + Config.scale,
    "an array": lambda x: x * Config.table,
    "a dict's item": lambda x: x * Config.names["a"],
    "a class inside": lambda x: x * Config.Model.width[0],
    "a static method": lambda x: Config.halved(x),
    "a method given its object": lambda x: x + Config.Model.width[1],
    "inherited": lambda x: x * Derived.scale + Derived.size,
    "of an abstract class": lambda x: x * Abstract.size,
    "an enumeration": lambda x: x * Mode.FAST.value if Mode.SLOW.name == "SLOW" else x,
    "one of numbers": lambda x: x * Number.FAST,
    "a default of a dataclass": lambda x: x * Settings.size,
    "a field of a named tuple": lambda x: x * POINT.size + POINT.shape[1],
    "in a comprehension": lambda x: [x * Config.size for _ in range(2)],
}
COMPUTED = {
    "a metaclass": lambda x: x * Answering.size,
    "a metaclass that answers": lambda x: x * Asked.size,
    "a descriptor": lambda x: x * Described.size,
    "a class method": lambda x: Config.of_class(x),
    "a property": lambda x: (x, Config.computed),
    "not there": lambda x: x * Config.nothing,  # type: ignore[attr-defined]
    "of all classes": lambda x: (x, Config.__name__),
    "a slot": lambda x: (x, Slotted.size),
    "a class of a library's": lambda x: x * Listing.size,
    "a class by itself": lambda x: (x, Config),
    "an object made": lambda x: Settings(3).size * x,
    "a member that calculates": lambda x: x * Counted.FAST,
    "a member's value that is computed": lambda x: x * Valued.FAST.value,
    "a member by itself": lambda x: (x, Mode.FAST),
    "a property of a named tuple": lambda x: x * FURTHER.size,
    "written to": lambda x: (x, Config.names.update(a=4)),
    "an array written to": lambda x: np.multiply(x, 1, Config.table),
}


@pytest.mark.parametrize("name", CONSTANT)
def test_what_a_class_holds_is_a_constant(name: str) -> None:
    function = CONSTANT[name]
    assert why_impure(function) is None
    by_block = ps.Dataset.range(5).map(function)
    assert [np.asarray(x).tolist() for x in by_block] == [np.asarray(function(np.int64(n))).tolist() for n in range(5)]
    assert "by Block" in str(by_block.explain())


@pytest.mark.parametrize("name", COMPUTED)
def test_what_is_computed_when_it_is_asked_for_is_none(name: str) -> None:
    calls.clear()
    assert why_impure(COMPUTED[name]) is not None
    assert all(isinstance(call, str) and call.startswith("_") for call in calls)  # isinstance calls these


class Changing:
    size = 2

    class Inner:
        size = 3


class Below(Changing):
    pass


class Replaced(enum.Enum):
    FAST = 3


CHANGES = {
    "its own": lambda: setattr(Changing, "size", 5),
    "inside": lambda: setattr(Changing.Inner, "size", 5),
    "the class inside": lambda: setattr(Changing, "Inner", type("Inner", (), {"size": 6})),
    "one below": lambda: setattr(Below, "size", 7),
    "a member's value": lambda: setattr(Replaced.FAST, "_value_", 8),
}


def reads_all(x: Any) -> Any:
    return x * Below.size + Changing.Inner.size * Changing.size + Replaced.FAST.value


@pytest.mark.parametrize("change", CHANGES)
def test_a_class_that_changes_is_seen(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, name in ((Changing, "size"), (Changing, "Inner"), (Changing.Inner, "size"), (Replaced.FAST, "_value_")):
        monkeypatch.setattr(place, name, getattr(place, name))
    why, seen = inspected(reads_all)
    assert why is None
    assert seen.unchanged()
    ds = ps.Dataset.range(4).map(reads_all)
    assert [int(x) for x in ds] == [int(reads_all(n)) for n in range(4)]
    CHANGES[change]()
    try:
        assert not seen.unchanged()
        assert [int(x) for x in ds] == [int(reads_all(n)) for n in range(4)]
    finally:
        if "size" in vars(Below):
            del Below.size
