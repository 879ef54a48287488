"""Settings: named values with a type, a default and a text, in groups. They are set by keyword or by attribute.

A group stores only the settings that were set; the others have their defaults. So a setting that was set to its default
overrides an earlier value, and a setting that was not set does not. No setting is accepted without effect: settings of
tf.data that do nothing here are errors, with a reason from `WITHOUT_EFFECT`.
"""

from __future__ import annotations

import inspect
import math
import numbers
import re
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
}  # settings of tf.data that penstock lacks, with reasons

REMOVED = {
    "experimental_optimization.approximate_image": "It was removed. To decode a smaller image, call "
    "decode_jpeg(contents, ratio=2) in the function: ratio is 1, 2, 4 or 8.",
}  # settings of former releases, with replacements


class Setting(Generic[T]):
    """A setting. None means "not set": the value is then the default.

    `kind` is bool, int, float or str. numpy's bools and numbers are accepted, and integers for floats; a bool is not
    accepted for a number. A number may have a bound: `least` is the smallest value, and values must be larger than
    `above`. A text may be limited to the values `one_of`. `since` is the version that introduced the setting. If there
    is no `text`, the section `Args` in the docstring of the class describes the setting.
    """

    name: str

    def __init__(
        self,
        kind: type,
        default: T,
        text: str | None = None,
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
        """Return the value that was set, or the default."""
        found: T = group._given.get(self.name, self.default)
        return found

    def checked(self, group: Group, value: Any) -> Any:
        """Return the value as a built-in type.

        Raises InvalidTypeError, and InvalidArgumentError for a number that is too small, infinite or NaN.
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
        """Return the condition that a value does not meet, as a text, or None."""
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
    """Settings, set by keyword or by attribute. For unknown names, the error suggests the nearest known one.

    A group is frozen when a data set uses it.
    """

    path: ClassVar[str] = ""  # path from Options

    _root: ClassVar[type[Group]]  # Options, which contains all groups
    _settings: ClassVar[dict[str, Setting[Any]]] = {}
    _below: ClassVar[dict[str, Subgroup[Any]]] = {}
    _aliases: ClassVar[set[str]] = set()

    _given: dict[str, Any]
    _groups: dict[str, Group]  # groups that were read or set
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
        texts = _described(cls.__doc__ or "")
        for name, setting in cls._settings.items():
            setting.__doc__ = setting.__doc__ or texts.get(name)

    def __init__(self, **settings: Any) -> None:
        self._begin(settings)

    def _begin(self, given: dict[str, Any]) -> None:
        """Set the given settings. A class with typed keywords passes its `locals()`: `self`, keywords and `others`."""
        vars(self).update(_given={}, _groups={}, _owner=None, _frozen=False)
        for name, value in (given | given.get("others", {})).items():
            if name in ("self", "others"):
                continue
            if value is not None:
                setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._settings and name not in self._below and name not in self._aliases:
            if self._passes_over(f"{self.path}.{name}".lstrip(".")):
                vars(self)[name] = value
                return
            raise unknown(self, name)
        super().__setattr__(name, value)

    if not TYPE_CHECKING:  # so that a type checker finds unknown names

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):  # pickle and copy read attributes before they exist
                raise AttributeError(name)
            raise unknown(self, name)

    def _passes_over(self, spelled: str) -> bool:
        """Return True if an unknown name is accepted without effect. The owner of a group decides."""
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
        """Store and return the empty group of a name that was not read before. Threads may share frozen options."""
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
        """Return a new group: the settings of `other`, then those of this group. Both are frozen from now on."""
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
        """Return the settings that were set, in the order of the class."""
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


def _described(docstring: str) -> dict[str, str]:
    """Return the texts of the section `Args` of a docstring, by argument."""
    section = inspect.cleandoc(docstring).partition("\nArgs:\n")[2].partition("\n\n")[0]
    entries = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", section, re.MULTILINE)
    return {name: re.sub(r"\n +", " ", text) for name, text in entries}


class Subgroup(Generic[G]):
    """A group within a group. It is set by another group, by a dict of settings, or setting by setting.

    `find` returns the class. With a `text`, the class is first needed at the first use; otherwise its docstring is the
    text. A group with a `short` form also accepts a plain value, which is that of the setting `short`.
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
    """Return the error for a name that is not a setting of `group`."""
    spelled = f"{group.path}.{name}".lstrip(".")
    reason = WITHOUT_EFFECT.get(spelled)
    if reason is not None:
        message = f"tf.data's {spelled} does nothing here, because {reason}."
        return UnknownNameError(message, hint="Leave it out.")
    message = f"{type(group).__name__} has no setting {name!r}."
    return UnknownNameError(message, hint=REMOVED.get(spelled) or _hint(group, name))


def _hint(group: Group, name: str) -> str:
    """Suggest a setting: of this group, or of another, or else list the settings of this group."""
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
    """Yield the paths from Options to all settings and groups, the nearest last."""
    for name, below in kind._below.items():
        yield from _paths(below.kind, f"{lead}{name}.")
    for name in (*kind._below, *kind._settings):
        yield lead + name
