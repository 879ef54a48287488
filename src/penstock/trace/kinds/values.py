"""What is known of a value's kind while code is read, None where nothing is; and what is found in it."""

from __future__ import annotations

from dataclasses import dataclass
from types import CodeType
from typing import Any

import numpy as np

from penstock.block.spec import TensorSpec

Kind = Any  # one of the classes below, or None


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A value from outside of the function: a constant, global, default or captured variable."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


@dataclass(frozen=True, slots=True)
class Text:
    """A text of the element: `bytes`, or (`many`) a list or array of them."""

    many: bool = False


@dataclass(frozen=True, slots=True)
class Byte:
    """One item of a text: a number."""


@dataclass(frozen=True, slots=True)
class Spelled:
    """A `str` that holds a text as `b'…'`."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number or (`array`) an array of numbers; `widened` says what has made float64 of it unasked."""

    dtype: np.dtype
    array: bool
    widened: Widened | None = None


@dataclass(frozen=True, slots=True)
class Widened:
    """An operation that gave float64: of an array of `dtype`, with an operand as it is spelled."""

    where: str
    dtype: str
    operator: str
    operand: str
    number: float | None
    in_front: bool = False  # the operand, of the array

    @property
    def spelled(self) -> str:
        parts = (self.operand, self.dtype) if self.in_front else (self.dtype, self.operand)
        return f" {self.operator} ".join(parts)


@dataclass(frozen=True, slots=True)
class Nest:
    """Several values under keys, or in order."""

    keys: tuple[Any, ...]
    kinds: tuple[Kind, ...]
    in_order: bool

    def at(self, key: Any) -> Kind:
        if self.in_order:
            if type(key) is not int or not -len(self.kinds) <= key < len(self.kinds):
                return None
            return self.kinds[key]
        return self.kinds[self.keys.index(key)] if key in self.keys else None


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a sequence, in `[]`."""


@dataclass(frozen=True, slots=True)
class Method:
    """An attribute of a value."""

    owner: Kind
    name: str


@dataclass(frozen=True, slots=True)
class Inner:
    """A function or comprehension that the code makes."""

    code: CodeType


@dataclass(frozen=True, slots=True)
class Null:
    """The empty place that calls have on the stack."""


def kind_of_spec(spec: Any) -> Kind:
    """The kind of an element, or of a part of one."""
    if isinstance(spec, TensorSpec):
        if spec.dtype is bytes:
            return Text(many=True) if len(spec.shape) == 1 else Text() if not spec.shape else None
        return Number(np.dtype(spec.dtype), array=bool(spec.shape))
    if isinstance(spec, tuple):
        return Nest(getattr(spec, "_fields", ()), tuple(map(kind_of_spec, spec)), in_order=True)
    if isinstance(spec, dict):
        return Nest(tuple(spec), tuple(map(kind_of_spec, spec.values())), in_order=False)
    return None


def joined(a: Kind, b: Kind) -> Kind:
    """What holds of a value that is one or the other."""
    return a if a == b else None


def is_mutable(kind: Kind) -> bool:
    """Whether what a value holds may be changed in place for another kind."""
    if isinstance(kind, Nest):
        return not kind.in_order or any(map(is_mutable, kind.kinds))
    return kind == Text(many=True) or (isinstance(kind, Method) and is_mutable(kind.owner))


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A text compared with, or looked up among, `str`: never equal, and nothing says so.

    `compared` is the `str`, or the first of those it is looked up among; `how` the operation as it is written.
    """

    where: str
    how: str
    compared: str

    @property
    def encoded(self) -> bytes:
        return self.compared.encode(errors="replace")

    @property
    def message(self) -> str:
        said = {
            "==": f"compares text with {self.compared!r}, which is never equal",
            "!=": f"compares text with {self.compared!r}, which is always unequal",
            "among": f"compares text with values that are str ({self.compared!r}), which is never equal",
            "in": f"looks text up among str ({self.compared!r}), where it is never found",
            "count": f"counts text in what holds str ({self.compared!r}), where it is never found",
            "byte": f"compares one byte of a text, which is a number, with {self.compared!r}",
        }
        in_dict = f"looks text up in a dict whose keys are str ({self.compared!r}), where it is never found"
        return said.get(self.how, in_dict)

    @property
    def mended(self) -> str:
        wanted, instead = repr(self.encoded), repr(self.compared)
        if self.how == "byte":
            return f"text[:1] == {wanted}"
        if self.how == "among":
            return f"text == np.array([{wanted}, …])"
        if self.how in ("==", "!="):
            return f"text {self.how} {wanted}, or text.decode() {self.how} {instead}"
        return f"{wanted} in place of {instead}, or text.decode() in place of the text"


@dataclass(frozen=True, slots=True)
class SpelledText:
    """A text in an f-string, in `str()` or in `format()`: it is written as `b'…'`."""

    where: str

    message: str = "writes text into a str, which gives \"b'…'\" with the b and the quotes"
    mended: str = 'f"{text.decode()}"'
