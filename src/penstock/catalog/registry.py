"""The catalog: which builder belongs to which name. The only list of builders."""

from __future__ import annotations

import difflib
import importlib
import os
from typing import Any, cast

from penstock.catalog.builder import Builder
from penstock.errors import InvalidArgumentError

# Name → "module:class"; a builder is imported when it is asked for.
_BUILDERS = {
    "shapes": "penstock.catalog.builders.shapes:Shapes",
}


def list_builders() -> list[str]:
    """The names that `load` and `builder` know, sorted.

    >>> list_builders()
    ['shapes']
    """
    return sorted(_BUILDERS)


def builder(name: str, *, data_dir: str | os.PathLike[str] | None = None, **builder_kwargs: Any) -> Builder:
    """The builder of the data set `name`; further arguments go to it.

    >>> builder("shapes", num_examples=100).info.supervised_keys
    ('image', 'label')

    Raises:
        InvalidArgumentError: there is no data set of that name.
    """
    if name not in _BUILDERS:
        near = difflib.get_close_matches(str(name), _BUILDERS, n=1)
        message = f"There is no data set {name!r} in the catalog."
        known = f"It holds {', '.join(list_builders())}. Labelled photographs that need no download: 'shapes'."
        raise InvalidArgumentError(message, hint=f"Did you mean {near[0]!r}? {known}" if near else known)
    module, _, class_name = _BUILDERS[name].partition(":")
    kind = cast(type[Builder], getattr(importlib.import_module(module), class_name))
    return kind(data_dir=data_dir, **builder_kwargs)
