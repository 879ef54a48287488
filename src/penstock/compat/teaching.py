"""Errors for unknown names, with advice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any

from penstock.errors import UnknownNameError
from penstock.habits import teach

_ALIKE = 0.8  # least similarity of a suggested name
_FUNCTIONS = "Functions are Python on arrays: write it with numpy, np.asarray(x), or with a function of your own."
_OF_ARRAYS = ("audio", "image", "io", "linalg", "math", "nn", "ragged", "random", "signal", "sparse", "strings")
_ARRAYS = {"tf", *(f"tf.{part}" for part in _OF_ARRAYS)}
_OTHERS = {
    "tfds": "What it has of tfds, and what stands for the rest, is in docs/reference/tfds.md.",
    "tf.data": "What it has of tf.data, and what stands for the rest, is in docs/reference/tf-data.md.",
}


def unknown(owner: str, name: str, table: Mapping[str, str], names: Iterable[str]) -> AttributeError:
    """Return the error for a name that `owner` does not have.

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
    """Return a module's `__getattr__`. `names` are the present names of the module."""

    def missing(name: str) -> Any:
        public = [known for known in names if not known.startswith("_")]
        raise unknown(module, name, table or {}, public)

    return missing


class Namespace(SimpleNamespace):
    """Names below a name, for a module that is too small for a file."""

    def __init__(self, owner: str, table: Mapping[str, str] | None = None, **names: Any) -> None:
        super().__init__(**names)
        self._owner, self._table = owner, table or {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # a protocol such as pickle asks for this before __init__ has run
            raise AttributeError(name)
        raise unknown(self._owner, name, self._table, vars(self))
