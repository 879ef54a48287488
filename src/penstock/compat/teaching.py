"""Errors for names that are not there, with what to use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from penstock.errors import UnknownNameError
from penstock.habits import teach


def unknown(owner: str, name: str, table: Mapping[str, str], names: Iterable[str]) -> AttributeError:
    """The error for a name that `owner` does not have."""
    found = teach.unknown(owner, name, table, names)
    if isinstance(found, UnknownNameError) and found.hint is None:
        hint = "Functions are Python on arrays: write it with numpy, np.asarray(x), or with a function of your own."
        return UnknownNameError(found.message, hint=hint)
    return found


def missing_in(module: str, names: Mapping[str, Any], table: Mapping[str, str] | None = None) -> Callable[[str], Any]:
    """A module's `__getattr__`: `names` are the module's own, as they are when it is asked."""

    def missing(name: str) -> Any:
        public = [known for known in names if not known.startswith("_")]
        raise unknown(module, name, table or {}, public)

    return missing
