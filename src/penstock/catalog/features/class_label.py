"""ClassLabel: which of a list of classes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from penstock.catalog.features.tensor import Tensor
from penstock.errors import InvalidArgumentError, InvalidTypeError


class ClassLabel(Tensor):
    """The number of a class, 0 … `num_classes` - 1; -1 means unknown. Names are optional; stored as int64.

    >>> animal = ClassLabel(names=["cat", "dog"])
    >>> animal.str2int("dog"), animal.int2str(0), animal.num_classes
    (1, 'cat', 2)
    """

    tfds_class = "tensorflow_datasets.core.features.class_label_feature.ClassLabel"

    def __init__(self, *, num_classes: int | None = None, names: Sequence[str] | None = None) -> None:
        super().__init__(shape=(), dtype=np.int64)
        self.names = None if names is None else tuple(names)
        count = num_classes if self.names is None else len(self.names)
        if count is None or (num_classes is not None and names is not None):
            message = f"exactly one of num_classes and names must be given, got {num_classes=} and {names=}."
            raise InvalidArgumentError(message, hint='For example ClassLabel(names=["cat", "dog"]).')
        if self.names is not None and len(set(self.names)) != len(self.names):
            message = f"names must differ from one another, got {list(self.names)}."
            raise InvalidArgumentError(message, hint="Each class stands in the list once.")
        self.num_classes = count

    def str2int(self, name: str) -> int:
        """The number of the class called `name`; of classes without names, the number that the text is."""
        if self.names is None and name.isdecimal() and int(name) < self.num_classes:
            return int(name)
        if self.names is None or name not in self.names:
            message = f"there is no class {name!r}; the classes are {_listed(self.names, self.num_classes)}."
            raise InvalidArgumentError(message, hint="Check the spelling, or give the number of the class.")
        return self.names.index(name)

    def int2str(self, number: int) -> str:
        """The name of class `number`; the number itself as text where classes have no names."""
        if not 0 <= number < self.num_classes:
            message = f"a class number must be from 0 to {self.num_classes - 1}, got {number}."
            raise InvalidArgumentError(message, hint=f"The classes are {_listed(self.names, self.num_classes)}.")
        return str(int(number)) if self.names is None else self.names[number]

    def facts(self) -> dict[str, Any]:
        return {**super().facts(), "num_classes": self.num_classes}

    def encode_example(self, value: Any, name: str) -> Any:
        if isinstance(value, bytes):
            value = value.decode()
        if isinstance(value, str):
            return np.int64(self.str2int(value))
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            message = f"feature {name!r} must be the name or the number of a class, got {type(value).__name__}."
            raise InvalidTypeError(message, hint=f"The classes are {_listed(self.names, self.num_classes)}.")
        if not -1 <= value < self.num_classes:
            message = f"feature {name!r} must be from 0 to {self.num_classes - 1}, or -1 for unknown, got {value}."
            raise InvalidArgumentError(message, hint=f"The classes are {_listed(self.names, self.num_classes)}.")
        return np.int64(value)

    def to_json(self) -> dict[str, Any]:
        return {"classLabel": {"numClasses": str(self.num_classes)} if self.num_classes else {}}

    def name(self, names: Sequence[str]) -> None:
        """Give the classes names that were not known when the feature was made, such as those in a download."""
        if len(names) != self.num_classes or len(set(names)) != len(names):
            message = f"there must be {self.num_classes} names that differ, got {list(names)!r:.100}."
            raise InvalidArgumentError(message, hint="One for each class, in the order of their numbers.")
        self.names = tuple(names)

    def save_metadata(self, folder: Path, name: str) -> None:
        """Write the names of the classes, one a line, as `<feature>.labels.txt`."""
        if self.names is not None:
            path = folder / f"{name}.labels.txt"
            path.write_text("".join(f"{label}\n" for label in self.names), encoding="utf-8")

    def load_metadata(self, folder: Path, name: str) -> None:
        """Take the names of the classes from `<feature>.labels.txt`, where there is one."""
        path = folder / f"{name}.labels.txt"
        if path.is_file():
            lines = path.read_text(encoding="utf-8").split("\n")
            self.names = tuple(line.strip() for line in lines if line.strip())
            self.num_classes = len(self.names)


def _listed(names: tuple[str, ...] | None, count: int) -> str:
    if names is None:
        return f"0 to {count - 1}"
    shown = [repr(name) for name in names[:12]]
    return ", ".join(shown if len(names) <= 12 else [*shown, f"… ({len(names)} in all)"])
