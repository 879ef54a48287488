"""Setting: one named value of a group of options, with its default, its type and what it does."""

from __future__ import annotations

import math
import numbers
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

from penstock.errors import InvalidArgumentError, InvalidTypeError

if TYPE_CHECKING:
    from penstock.options.group import Group

T = TypeVar("T")


class Setting(Generic[T]):
    """A setting. None stands for "not set": reading it then gives the default.

    `kind` is bool, int, float or str; numpy's bools and numbers are welcome, integers are floats too, and bools are no
    numbers. A number may have a bound: `least`, which it may reach, or `above`, which it may not. A text may have to be
    `one_of` some.
    """

    name: str

    def __init__(
        self,
        kind: type,
        default: T,
        text: str,
        *,
        least: int | None = None,
        above: int | None = None,
        one_of: tuple[str, ...] = (),
        hint: str | None = None,
    ) -> None:
        self.kind = kind
        self.default = default
        self.__doc__ = text
        self._least = least
        self._above = above
        self._one_of = one_of
        self._hint = hint

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, group: None, owner: type) -> Self: ...

    @overload
    def __get__(self, group: Group, owner: type) -> T: ...

    def __get__(self, group: Group | None, owner: type) -> Self | T:
        return self if group is None else self.value(group)

    def __set__(self, group: Group, value: T | None) -> None:
        group._give(self, value)

    def value(self, group: Group) -> T:
        """What holds: what was set, else the default."""
        found: T = group._given.get(self.name, self.default)
        return found

    def checked(self, group: Group, value: Any) -> Any:
        """The value in Python's own type.

        Raises InvalidTypeError, and InvalidArgumentError for a number that is too small, infinite or none.
        """
        spelled = f"{type(group).__name__}.{self.name}"
        if not self._fits(value):
            message = f"{spelled} must be of type {self.kind.__name__}, got {value!r}."
            raise InvalidTypeError(message, hint=self._hint)
        found = self._converted(value)
        wanted = self._unmet(found)
        if wanted is not None:
            message = f"{spelled} must be {wanted}, got {self.name}={found!r}."
            raise InvalidArgumentError(message, hint=self._hint)
        return found

    def _fits(self, value: Any) -> bool:
        if self.kind is bool:
            return type(value).__name__ in ("bool", "bool_")
        if self.kind is int:
            return hasattr(value, "__index__") and not isinstance(value, bool)
        if self.kind is float:
            return isinstance(value, numbers.Real) and not isinstance(value, bool)
        return isinstance(value, self.kind)

    def _converted(self, value: Any) -> Any:
        if self.kind is int:
            return value.__index__()
        try:
            return self.kind(value)
        except OverflowError:  # an integer that no float can hold
            return math.inf

    def _unmet(self, value: Any) -> str | None:
        """The bound that a value does not keep to, in words."""
        if self.kind is float and not math.isfinite(value):
            return "a finite number"
        if self._least is not None and value < self._least:
            return f"at least {self._least}"
        if self._above is not None and value <= self._above:
            return f"above {self._above}"
        if self._one_of and value not in self._one_of:
            return f"one of {', '.join(map(repr, self._one_of))}"
        return None


class Alias(Generic[T]):
    """Another name of a setting or group, which tf.data keeps for old programs."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.__doc__ = f"Another name of `{target}`."

    def __get__(self, group: Any, owner: type) -> Any:
        return self if group is None else getattr(group, self.target)

    def __set__(self, group: Any, value: T) -> None:
        setattr(group, self.target, value)
