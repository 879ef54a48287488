"""Options: what a user may switch; frozen once a data set uses them. The one reader of environment variables."""

from __future__ import annotations

import difflib
import os
from typing import Any, ClassVar

from penstock.errors import FailedPreconditionError, InvalidArgumentError, InvalidTypeError


class _Group:
    """Named settings with defaults; unknown names are errors that name the nearest known one."""

    _defaults: ClassVar[dict[str, Any]] = {}
    _frozen: bool

    def __init__(self, **settings: Any) -> None:
        object.__setattr__(self, "_frozen", False)
        for name, value in self._defaults.items():
            object.__setattr__(self, name, value() if isinstance(value, type) else value)
        for name, value in settings.items():
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._defaults:
            close = difflib.get_close_matches(name, self._defaults, 1)
            hint = f"Did you mean {close[0]!r}?" if close else f"Known are: {', '.join(sorted(self._defaults))}."
            message = f"{type(self).__name__} has no setting {name!r}."
            raise InvalidArgumentError(message, hint=hint)
        if self._frozen:
            message = f"These options are in use by a data set; {name!r} cannot change any more."
            raise FailedPreconditionError(message, hint="Make a new Options object and apply it with with_options().")
        default = self._defaults[name]
        wanted = default if isinstance(default, type) else type(default)
        if (wanted is int and isinstance(value, bool)) or not isinstance(value, wanted):
            message = f"{type(self).__name__}.{name} must be of type {wanted.__name__}, got {value!r}."
            raise InvalidTypeError(message)
        object.__setattr__(self, name, value)

    def _freeze(self) -> None:
        object.__setattr__(self, "_frozen", True)
        for name in self._defaults:
            value = getattr(self, name)
            if isinstance(value, _Group):
                value._freeze()

    def _changed(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, default in self._defaults.items():
            value = getattr(self, name)
            if isinstance(value, _Group):
                below = value._changed()
                if below:
                    found[name] = below
            elif value != default:
                found[name] = value
        return found

    def _merged(self, other: _Group) -> Any:
        """A new group: `other`'s settings where they differ from the defaults, else ours."""
        found = type(self)()
        for name, default in self._defaults.items():
            mine, theirs = getattr(self, name), getattr(other, name)
            if isinstance(mine, _Group):
                object.__setattr__(found, name, mine._merged(theirs))
            else:
                object.__setattr__(found, name, mine if theirs == default else theirs)
        return found

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._changed() == other._changed()

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._changed())
        return f"{type(self).__name__}({settings})"


class OptimizationOptions(_Group):
    """Which rewrites run, by name; each keeps the output equal."""

    noop_elimination: bool
    map_fusion: bool
    map_and_batch_fusion: bool
    shuffle_before_map: bool
    map_vectorization: bool

    _defaults: ClassVar[dict[str, Any]] = {
        "noop_elimination": True,
        "map_fusion": True,
        "map_and_batch_fusion": True,
        "shuffle_before_map": True,
        "map_vectorization": True,
    }


class Options(_Group):
    """What holds for a whole data set; apply with `ds.with_options(options)`.

    >>> options = Options(deterministic=False)
    >>> options.experimental_optimization.map_fusion = False
    >>> options
    Options(deterministic=False, experimental_optimization=OptimizationOptions(map_fusion=False))
    """

    deterministic: bool
    seed: int
    experimental_optimization: OptimizationOptions

    _defaults: ClassVar[dict[str, Any]] = {
        "deterministic": True,
        "seed": 0,
        "experimental_optimization": OptimizationOptions,
    }


def environment(name: str) -> str | None:
    """The value of `PENSTOCK_<name>`, or None; no other place reads the environment."""
    return os.environ.get(f"PENSTOCK_{name}") or None
