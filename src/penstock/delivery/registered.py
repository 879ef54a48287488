"""Registered: data sets that a service knows by a name, in files of its folder, where the next dispatcher finds them.

What they are is the consumers' own matter: here they are bytes.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from penstock.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_PREFIX = "dataset-"


class Registered:
    """Used by one thread at a time."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def put(self, name: str, fingerprint: str, content: bytes) -> None:
        """Keep a data set, unless the same is there. Raises FailedPreconditionError if the name is another one's."""
        if not _NAME.fullmatch(name):
            message = f"dataset_id must be 1 to 64 letters, digits, '_', '.' and '-', got dataset_id={name!r}."
            raise InvalidArgumentError(message, hint="Leave it out to have one made of what the data set does.")
        path = self._folder / f"{_PREFIX}{name}"
        if path.exists():
            if _first_line(path) != fingerprint:
                message = f"Another data set is registered as {name!r}."
                raise FailedPreconditionError(message, hint="Leave dataset_id out, or give each data set its own.")
            return
        part = path.with_name(f"part-{os.getpid()}-{name}")
        part.write_bytes(fingerprint.encode() + b"\n" + content)
        part.replace(path)

    def get(self, name: str) -> bytes:
        """The data set of this name. Raises NotFoundError."""
        path = self._folder / f"{_PREFIX}{name}"
        if not _NAME.fullmatch(name) or not path.exists():
            known = ", ".join(map(repr, self.names())) or "none"
            message = f"No data set is registered as {name!r}; known are: {known}."
            raise NotFoundError(message, hint="ps.service.register_dataset(service, dataset) gives the id of one.")
        return path.read_bytes().partition(b"\n")[2]

    def names(self) -> list[str]:
        """Of all that are known."""
        return sorted(path.name.removeprefix(_PREFIX) for path in self._folder.glob(f"{_PREFIX}*"))


def _first_line(path: Path) -> str:
    with path.open("rb") as file:
        return file.readline().rstrip(b"\n").decode()
