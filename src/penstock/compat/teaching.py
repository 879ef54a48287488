"""Errors for names that are not there, with what to use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any

from penstock.errors import UnknownNameError
from penstock.habits import teach

_ALIKE = 0.8  # a name that is less like the one that was asked for means something else
_FUNCTIONS = "Functions are Python on arrays: write it with numpy, np.asarray(x), or with a function of your own."
_OF_ARRAYS = ("audio", "image", "io", "linalg", "math", "nn", "ragged", "random", "signal", "sparse", "strings")
_ARRAYS = {"tf", *(f"tf.{part}" for part in _OF_ARRAYS)}
_OTHERS = {
    "tfds": "What it has of tfds, and what stands for the rest, is in docs/reference/tfds.md.",
    "tf.data": "What it has of tf.data, and what stands for the rest, is in docs/reference/tf-data.md.",
}


def unknown(owner: str, name: str, table: Mapping[str, str], names: Iterable[str]) -> AttributeError:
    """The error for a name that `owner` does not have.

    >>> print(unknown("tf.strings", "lowr", {}, ["lower", "upper"]))
    tf.strings has no 'lowr'.
      Did you mean lower?
    """
    found = teach.unknown(owner, name, table, names, alike=_ALIKE)
    if isinstance(found, UnknownNameError) and found.hint is None:
        functions = owner in _ARRAYS and not name[0].isupper()
        part = next((part for part in _OTHERS if f"{owner}.".startswith(f"{part}.")), None)
        hint = _FUNCTIONS if functions else None if part is None else _OTHERS[part]
        return UnknownNameError(found.message, hint=hint or f"dir({owner}) lists what there is.")
    return found


def missing_in(module: str, names: Mapping[str, Any], table: Mapping[str, str] | None = None) -> Callable[[str], Any]:
    """A module's `__getattr__`: `names` are the module's own, as they are when it is asked."""

    def missing(name: str) -> Any:
        public = [known for known in names if not known.startswith("_")]
        raise unknown(module, name, table or {}, public)

    return missing


class Namespace(SimpleNamespace):
    """Names below a name: a module that is too small to be one."""

    def __init__(self, owner: str, table: Mapping[str, str] | None = None, **names: Any) -> None:
        super().__init__(**names)
        self._owner, self._table = owner, table or {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # a protocol that somebody asks for, while it is not made yet
            raise AttributeError(name)
        raise unknown(self._owner, name, self._table, vars(self))
