"""Quarantine: a file with a line of JSON for every element that was left out."""

from __future__ import annotations

import json
from pathlib import Path

from penstock.errors import Context, PenstockError, context_of, said, writing_to


def write_line(path: str, error: Exception) -> None:
    """Add a line to the file, made if it is missing, and its folders with it.

    Each line is written at once and whole, so that passes may share a file, and a killed process leaves all of them.
    """
    line = json.dumps(described(error), ensure_ascii=False) + "\n"
    try:
        with writing_to(path), Path(path).open("ab", buffering=0) as file:
            file.write(line.encode("utf-8", "backslashreplace"))
    except FileNotFoundError:
        Path(path).parent.mkdir(parents=True)
        write_line(path, error)


def described(error: Exception) -> dict[str, str | int | None]:
    """Which element failed, and how: stage, line of the user's code, element, file, offset, error."""
    context = error.context if isinstance(error, PenstockError) else context_of(error) or Context()
    return {
        "stage": context.stage,
        "line": context.where,
        "element": context.element,
        "file": context.file,
        "offset": context.offset,
        "error": f"{type(error).__name__}: {said(error)}",
    }
