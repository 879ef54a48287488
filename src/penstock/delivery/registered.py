"""Registered: data sets that a service knows by a name, where the next dispatcher finds them.

What they are is the consumers' own matter: here they are bytes.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Protocol

from penstock.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_PREFIX = "dataset-"


class Kept(Protocol):
    """Where they are kept: bytes by name."""

    def get(self, name: str) -> bytes | None: ...
    def put(self, name: str, content: bytes) -> None: ...
    def names(self) -> list[str]: ...


class InFolder:
    """Files of a folder."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def get(self, name: str) -> bytes | None:
        try:
            return (self._folder / f"{_PREFIX}{name}").read_bytes()
        except FileNotFoundError:
            return None

    def put(self, name: str, content: bytes) -> None:
        part = self._folder / f"part-{os.getpid()}-{name}"
        part.write_bytes(content)
        part.replace(self._folder / f"{_PREFIX}{name}")

    def names(self) -> list[str]:
        return [path.name.removeprefix(_PREFIX) for path in self._folder.glob(f"{_PREFIX}*")]


class Registered:
    """Used by one thread at a time."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def put(self, name: str, fingerprint: str, content: bytes) -> None:
        """Keep a data set, unless the same is there. Raises FailedPreconditionError if the name is another one's."""
        if not _NAME.fullmatch(name):
            message = f"dataset_id must be 1 to 64 letters, digits, '_', '.' and '-', got dataset_id={name!r}."
            raise InvalidArgumentError(message, hint="Leave it out to have one made of what the data set does.")
        head = fingerprint.encode() + b"\n"
        found = self._kept.get(name)
        if found is None:
            self._kept.put(name, head + content)
        elif not found.startswith(head):
            message = f"Another data set is registered as {name!r}."
            raise FailedPreconditionError(message, hint="Leave dataset_id out, or give each data set its own.")

    def get(self, name: str) -> bytes:
        """The data set of this name. Raises NotFoundError."""
        found = self._kept.get(name) if _NAME.fullmatch(name) else None
        if found is None:
            known = ", ".join(map(repr, self.names())) or "none"
            message = f"No data set is registered as {name!r}; known are: {known}."
            raise NotFoundError(message, hint="ps.service.register_dataset(service, dataset) gives the id of one.")
        return found.partition(b"\n")[2]

    def names(self) -> list[str]:
        """The names of all data sets that are registered."""
        return sorted(self._kept.names())
