"""Group: named settings, some of which are groups of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, overload

from penstock.errors import FrozenError, InvalidTypeError
from penstock.options.setting import Alias, Setting
from penstock.options.unknown import unknown

G = TypeVar("G", bound="Group")


class Group:
    """Settings that are given by keyword or by attribute; unknown names are errors that name the nearest known one.

    Once a data set uses it, it is frozen.
    """

    path: ClassVar[str] = ""  # how the settings are reached from Options

    _settings: ClassVar[dict[str, Setting[Any]]] = {}
    _below: ClassVar[dict[str, Subgroup[Any]]] = {}
    _aliases: ClassVar[set[str]] = set()

    _given: dict[str, Any]
    _groups: dict[str, Group]
    _owner: Group | None
    _frozen: bool

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = vars(cls)
        cls._settings = {name: item for name, item in own.items() if isinstance(item, Setting)}
        cls._below = {name: item for name, item in own.items() if isinstance(item, Subgroup)}
        cls._aliases = {name for name, item in own.items() if isinstance(item, Alias)}

    def __init__(self, **settings: Any) -> None:
        vars(self).update(_given={}, _groups={}, _owner=None, _frozen=False)
        for name, below in self._below.items():
            self._adopt(name, below.kind())
        for name, value in settings.items():
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._settings and name not in self._below and name not in self._aliases:
            if self._passes_over(f"{self.path}.{name}".lstrip(".")):
                vars(self)[name] = value
                return
            raise unknown(self, name)
        super().__setattr__(name, value)

    if not TYPE_CHECKING:  # a type checker is to find unknown names itself

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):  # pickle and copy ask for what may not be there yet
                raise AttributeError(name)
            raise unknown(self, name)

    def _passes_over(self, spelled: str) -> bool:
        """Whether a setting that is none is taken, and changes nothing: what stands above a group decides."""
        return self._owner is not None and self._owner._passes_over(spelled)

    def _give(self, setting: Setting[Any], value: Any) -> None:
        self._check_not_in_use(setting.name)
        if value is None:
            self._given.pop(setting.name, None)
        else:
            self._given[setting.name] = setting.checked(self, value)

    def _adopt(self, name: str, group: Group) -> None:
        self._check_not_in_use(name)
        vars(group)["_owner"] = self
        self._groups[name] = group

    def _check_not_in_use(self, name: str) -> None:
        if self._frozen:
            message = f"These options are in use by a data set; {name!r} cannot change any more."
            raise FrozenError(message, hint="Make a new Options object and apply it with with_options().")

    def _freeze(self) -> None:
        if self._frozen:
            return
        vars(self)["_frozen"] = True
        for group in self._groups.values():
            group._freeze()

    def _merged(self, other: Self) -> Self:
        """A new group: what `other` sets, and what we set where it does not. Both are in use from now on."""
        self._freeze()
        other._freeze()
        found = type(self)()
        found._given.update(self._given)
        found._given.update(other._given)
        for name, mine in self._groups.items():
            found._adopt(name, mine._merged(other._groups[name]))
        return found

    def _set(self) -> dict[str, Any]:
        """What was set, in the order of the class."""
        groups = {name: group for name, group in self._groups.items() if group._set()}
        values = self._given | groups
        return {name: values[name] for name in [*self._settings, *self._below] if name in values}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Group) and type(other) is type(self) and self._set() == other._set()

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self._set().items())
        return f"{type(self).__name__}({settings})"


class Subgroup(Generic[G]):
    """A group within a group; set by another one, by a dict of its settings, or setting by setting.

    A group with a `short` form also takes that setting's value in its own place.
    """

    name: str

    def __init__(self, kind: type[G], *, short: str | None = None) -> None:
        self.kind = kind
        self.__doc__ = kind.__doc__
        self._short = short

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, group: None, owner: type) -> Self: ...

    @overload
    def __get__(self, group: Group, owner: type) -> G: ...

    def __get__(self, group: Group | None, owner: type) -> Self | G:
        if group is None:
            return self
        found = group._groups[self.name]
        assert isinstance(found, self.kind)
        return found

    def __set__(self, group: Group, value: G | Mapping[str, Any] | bool | None) -> None:  # noqa: FBT001 - short form
        if isinstance(value, self.kind):
            group._adopt(self.name, value)
        elif isinstance(value, Mapping):
            group._adopt(self.name, self.kind(**value))
        elif self._short is not None:
            group._adopt(self.name, self.kind(**{self._short: value}))
        else:
            message = f"{type(group).__name__}.{self.name} must be {self.kind.__name__}, got {value!r}."
            raise InvalidTypeError(message, hint="A dict of its settings will do as well.")
