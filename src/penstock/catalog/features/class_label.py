"""ClassLabel: one of a list of classes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from penstock.catalog.features.feature import Doc
from penstock.catalog.features.tensor import Tensor
from penstock.errors import InvalidArgumentError, InvalidTypeError


class ClassLabel(Tensor):
    """Feature for the number of a class, from 0 to `num_classes - 1`, as int64. -1 means unknown.

    If the names are known after a download only, set them later: `label.names = [...]`.

    Args:
        num_classes: Number of classes, which are then named "0", "1" and so on.
        names: Names of the classes.
        names_file: File with the name of one class on each line.
        doc: A `Documentation`, or a string.

    Example:
        >>> animal = ClassLabel(names=["cat", "dog"])
        >>> animal.str2int("dog"), animal.int2str(0), animal.num_classes
        (1, 'cat', 2)
        >>> ClassLabel(num_classes=3).names
        ['0', '1', '2']
    """

    tfds_class = "tensorflow_datasets.core.features.class_label_feature.ClassLabel"

    def __init__(
        self,
        *,
        num_classes: int | None = None,
        names: Sequence[str] | None = None,
        names_file: str | os.PathLike[str] | None = None,
        doc: Doc = None,
    ) -> None:
        super().__init__(shape=(), dtype=np.int64, doc=doc)
        given = [what for what in (num_classes, names, names_file) if what is not None]
        if len(given) > 1:
            message = (
                f"one of num_classes, names and names_file must be given, got {num_classes=}, {names=}, {names_file=}."
            )
            raise InvalidArgumentError(message, hint='For example ClassLabel(names=["cat", "dog"]).')
        self._names: tuple[str, ...] | None = None
        self.num_classes = num_classes
        if names_file is not None:
            names = _lines(Path(names_file))
        if names is not None:
            self.names = names

    @property
    def names(self) -> list[str]:
        """The names of the classes, or their numbers as text."""
        return list(map(str, range(self.num_classes or 0))) if self._names is None else list(self._names)

    @names.setter
    def names(self, names: Sequence[str]) -> None:
        if isinstance(names, str) or not all(isinstance(name, str) for name in names):
            message = f"names must be a list of texts, got {names!r:.100}."
            raise InvalidTypeError(message, hint='For example ["cat", "dog"].')
        if len(set(names)) != len(names):
            twice = next(name for number, name in enumerate(names) if name in names[:number])
            message = f"names must differ from one another, got {twice!r} twice."
            raise InvalidArgumentError(message, hint="Each class stands in the list once.")
        if self.num_classes is not None and len(names) != self.num_classes:
            message = f"there must be {self.num_classes} names, got {len(names)}: {list(names)!r:.100}."
            raise InvalidArgumentError(message, hint="One for each class, in the order of their numbers.")
        self._names, self.num_classes = tuple(names), len(names)

    @property
    def has_names(self) -> bool:
        """True if the classes have names other than their numbers."""
        return self._names is not None

    def str2int(self, name: str) -> int:
        """Return the number of the class called `name`. For classes without names, `name` is a number as text."""
        count = self._count()
        if self._names is None and name.isdecimal() and int(name) < count:
            return int(name)
        if self._names is None or name not in self._names:
            message = f"there is no class {name!r}; the classes are {self._listed()}."
            raise InvalidArgumentError(message, hint="Check the spelling, or give the number of the class.")
        return self._names.index(name)

    def int2str(self, number: int) -> str:
        """Return the name of class `number`, or the number as text if the classes have no names."""
        count = self._count()
        if not 0 <= number < count:
            message = f"a class number must be from 0 to {count - 1}, got {number}."
            raise InvalidArgumentError(message, hint=f"The classes are {self._listed()}.")
        return str(int(number)) if self._names is None else self._names[number]

    def facts(self) -> dict[str, Any]:
        return {**super().facts(), "num_classes": self.num_classes}

    def encode_example(self, value: Any, name: str) -> Any:
        count = self._count(name)
        if isinstance(value, bytes):
            value = value.decode()
        if isinstance(value, str):
            return np.int64(self.str2int(value))
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            message = f"feature {name!r} must be the name or the number of a class, got {type(value).__name__}."
            raise InvalidTypeError(message, hint=f"The classes are {self._listed()}.")
        if not -1 <= value < count:
            message = f"feature {name!r} must be from 0 to {count - 1}, or -1 for unknown, got {value}."
            raise InvalidArgumentError(message, hint=f"The classes are {self._listed()}.")
        return np.int64(value)

    def to_json(self) -> dict[str, Any]:
        return {"classLabel": {"numClasses": str(self.num_classes)} if self.num_classes else {}}

    def save_metadata(self, folder: Path, name: str) -> None:
        """Write the names of the classes, one a line, as `<feature>.labels.txt`."""
        if self._names is not None:
            path = folder / f"{name}.labels.txt"
            path.write_text("".join(f"{label}\n" for label in self._names), encoding="utf-8")

    def load_metadata(self, folder: Path, name: str) -> None:
        """Read the names of the classes from `<feature>.labels.txt`, if it exists."""
        path = folder / f"{name}.labels.txt"
        if path.is_file():
            self._names = tuple(_lines(path))
            self.num_classes = len(self._names)

    def _count(self, name: str = "") -> int:
        if self.num_classes is None:
            message = f"the classes {f'of feature {name!r} ' if name else ''}are not known yet."
            hint = "Say how many there are, ClassLabel(num_classes=…), or what they are called: label.names = [...]."
            raise InvalidArgumentError(message, hint=hint)
        return self.num_classes

    def _listed(self) -> str:
        if self._names is None:
            return f"0 to {self._count() - 1}"
        shown = [repr(name) for name in self._names[:12]]
        return ", ".join(shown if len(self._names) <= 12 else [*shown, f"… ({len(self._names)} in all)"])


def _lines(path: Path) -> list[str]:
    return [line.strip() for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
