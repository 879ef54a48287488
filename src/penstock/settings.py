"""Settings: named values with a type, a default and a text, in groups that are given by keyword or by attribute.

A group keeps what was set, and nothing else: reading a setting that was not set gives its default. So a setting that is
set to its default wins over an earlier one, and one that was never set does not. No setting is accepted and ignored; a
name of tf.data's that means nothing here stands in `WITHOUT_EFFECT` with the reason.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, overload

from penstock.errors import FrozenError, InvalidArgumentError, InvalidTypeError, UnknownNameError

G = TypeVar("G", bound="Group")
T = TypeVar("T")

WITHOUT_EFFECT = {
    "autotune.autotune_algorithm": "AUTOTUNE has one way to choose",
    "autotune.initial_parallelism": "AUTOTUNE starts with a worker per core, or with the best number of an earlier run",
    "experimental_distribute": "no data set is divided unasked: shard(num_shards, index) does it",
    "experimental_external_state_policy": "a checkpoint never holds what your functions keep for themselves",
    "experimental_service": "the framework that copies a batch to the device decides how memory is pinned",
    "experimental_slack": "buffers refill as they empty; autotune.cpu_budget leaves cores to the training step",
    "experimental_symbolic_checkpoint": "checkpoints hold positions and keys in any case, never elements",
    "framework_type": "nothing is reported to anybody",
    "threading.max_intra_op_parallelism": "an operation runs in the one worker that called it",
    "experimental_optimization.filter_parallelization": "a filter after a parallel map runs on its workers anyway, "
    "by map_and_filter_fusion",
    "experimental_optimization.parallel_batch": "elements are copied into a batch many at a time, and after a "
    "parallel map by its workers, by map_and_batch_fusion",
    "experimental_optimization.seq_interleave_prefetch": "interleave with num_parallel_calls reads its inputs ahead "
    "and keeps their order",
    "experimental_optimization.map_vectorization.use_choose_fastest": "a function runs by Block where that is known "
    "to be equal",
}  # tf.data's settings that are not here, each with the reason

REMOVED = {
    "experimental_optimization.approximate_image": "It was removed. To decode a smaller image, call "
    "decode_jpeg(contents, ratio=2) in the function: ratio is 1, 2, 4 or 8.",
}  # settings of former releases, each with what to do


class Setting(Generic[T]):
    """A setting. None stands for "not set": reading it then gives the default.

    `kind` is bool, int, float or str; numpy's bools and numbers are welcome, integers are floats too, and bools are no
    numbers. A number may have a bound: `least`, which it may reach, or `above`, which it may not. A text may have to be
    `one_of` some. `since` is the version of penstock that introduced the setting.
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
        since: str = "0.1.0",
    ) -> None:
        self.kind = kind
        self.default = default
        self.__doc__ = text
        self._least = least
        self._above = above
        self._one_of = one_of
        self._hint = hint
        self.since = since

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


class Group:
    """Settings that are given by keyword or by attribute; unknown names are errors that name the nearest known one.

    Once a data set uses it, it is frozen.
    """

    path: ClassVar[str] = ""  # how the settings are reached from Options

    _root: ClassVar[type[Group]]  # Options, which holds all groups
    _settings: ClassVar[dict[str, Setting[Any]]] = {}
    _below: ClassVar[dict[str, Subgroup[Any]]] = {}
    _aliases: ClassVar[set[str]] = set()

    _given: dict[str, Any]
    _groups: dict[str, Group]  # those that were asked for or given
    _owner: Group | None
    _frozen: bool

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        items: dict[str, Any] = {}
        for kind in cls.__mro__:
            items = items | {name: item for name, item in vars(kind).items() if name not in items}
        cls._settings = {name: item for name, item in items.items() if isinstance(item, Setting)}
        cls._below = {name: item for name, item in items.items() if isinstance(item, Subgroup)}
        cls._aliases = {name for name, item in items.items() if isinstance(item, Alias)}

    def __init__(self, **settings: Any) -> None:
        vars(self).update(_given={}, _groups={}, _owner=None, _frozen=False)
        for name, value in settings.items():
            if value is not None:
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

    def _unasked(self, name: str, group: Group) -> Group:
        """The group of a name that was not asked for yet: nothing is set in it. Threads may share what is frozen."""
        vars(group)["_owner"] = self
        if self._frozen:
            group._freeze()
        return self._groups.setdefault(name, group)

    def _check_not_in_use(self, name: str) -> None:
        if self._frozen:
            message = f"These options are in use by a data set; {name!r} cannot change any more."
            raise FrozenError(message, hint="Make a new Options object and apply it with with_options().")

    def _freeze(self) -> None:
        if self._frozen:
            return
        vars(self)["_frozen"] = True
        for group in self._asked():
            group._freeze()

    def _asked(self) -> list[Group]:
        return [self._groups[name] for name in self._below if name in self._groups]

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_groups": dict(self._groups)}

    def _merged(self, other: Self) -> Self:
        """A new group: what `other` sets, and what we set where it does not. Both are in use from now on."""
        self._freeze()
        other._freeze()
        found = type(self)()
        found._given.update(self._given)
        found._given.update(other._given)
        for name, below in self._below.items():
            mine, others = self._groups.get(name), other._groups.get(name)
            if mine is not None or others is not None:
                ours = below.kind() if mine is None else mine
                found._adopt(name, ours._merged(below.kind() if others is None else others))
        return found

    def _set(self) -> dict[str, Any]:
        """What was set, in the order of the class."""
        groups = {name: self._groups[name] for name in self._below if name in self._groups}
        values = self._given | {name: group for name, group in groups.items() if group._set()}
        return {name: values[name] for name in [*self._settings, *self._below] if name in values}

    def __eq__(self, other: object) -> bool:
        related = isinstance(other, type(self)) or isinstance(self, type(other))
        return isinstance(other, Group) and related and self._set() == other._set()

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self._set().items())
        return f"{type(self).__name__}({settings})"


class Subgroup(Generic[G]):
    """A group within a group; set by another one, by a dict of its settings, or setting by setting.

    `find` gives its class: when it is first needed, where a `text` says here what that class says else. A group with a
    `short` form also takes that setting's value in its own place.
    """

    name: str

    def __init__(self, find: Callable[[], type[G]], text: str | None = None, *, short: str | None = None) -> None:
        self._find = find
        self.__doc__ = find().__doc__ if text is None else text
        self._short = short

    @property
    def kind(self) -> type[G]:
        return self._find()

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, group: None, owner: type) -> Self: ...

    @overload
    def __get__(self, group: Group, owner: type) -> G: ...

    def __get__(self, group: Group | None, owner: type) -> Self | G:
        if group is None:
            return self
        found = group._groups.get(self.name)
        if found is None:
            found = group._unasked(self.name, self.kind())
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


def unknown(group: Group, name: str) -> UnknownNameError:
    """The error for a name that is not a setting of `group`."""
    spelled = f"{group.path}.{name}".lstrip(".")
    reason = WITHOUT_EFFECT.get(spelled)
    if reason is not None:
        message = f"tf.data's {spelled} does nothing here, because {reason}."
        return UnknownNameError(message, hint="Leave it out.")
    message = f"{type(group).__name__} has no setting {name!r}."
    return UnknownNameError(message, hint=REMOVED.get(spelled) or _hint(group, name))


def _hint(group: Group, name: str) -> str:
    """The setting that was meant: of this group, or of any other, or else all that there are."""
    import difflib

    here = [*group._settings, *group._below]
    close = difflib.get_close_matches(name, here, 1, cutoff=0.75)
    if close:
        return f"Did you mean {close[0]!r}?"
    paths = {path.rpartition(".")[2]: path for path in _paths(Group._root)}
    close = difflib.get_close_matches(name, paths, 1)
    if close:
        return f"Did you mean {paths[close[0]]!r}?"
    close = difflib.get_close_matches(name, here, 1)
    return f"Did you mean {close[0]!r}?" if close else f"Known are: {', '.join(sorted(here))}."


def _paths(kind: type[Group], lead: str = "") -> Iterator[str]:
    """All settings and groups as they are reached from Options, those nearest to it last."""
    for name, below in kind._below.items():
        yield from _paths(below.kind, f"{lead}{name}.")
    for name in (*kind._below, *kind._settings):
        yield lead + name
