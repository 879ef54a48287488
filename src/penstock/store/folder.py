"""Paths and URLs of the folders that a step stores elements in."""

from __future__ import annotations

import os
import re
from typing import Any

from penstock.errors import InvalidArgumentError
from penstock.hints import redacted
from penstock.io import storage

_READ_ONLY = r"([\w.+-]+::)*https?://"


def last_name(path: str) -> str:
    """Return the last part of a path."""
    return path.rstrip("/").rpartition("/")[2]


def folder_to_write(path: Any, step: str) -> str:
    """Return the path or URL of a folder to write to, or raise an error."""
    name = storage.as_path(path)
    if not name:
        message = f"{step} writes into a folder, and its path is empty."
        raise InvalidArgumentError(
            message, hint='Give the path of a folder. It is created if needed. "." is the current folder.'
        )
    if storage.is_url(name):
        if re.match(_READ_ONLY, name):
            message = f"{step} cannot write to {redacted(name)!r}: web servers are read-only."
            raise InvalidArgumentError(message, hint="Give a folder, or the URL of one in s3://, gs:// or hdfs://.")
        return name.rstrip("/")
    if os.path.isfile(name):  # noqa: PTH113 - pathlib takes longer to import than this module
        message = f"{step} writes into a folder, and {name!r} is a file."
        raise InvalidArgumentError(message, hint="Give the path of a folder. It is created if needed.")
    return name
