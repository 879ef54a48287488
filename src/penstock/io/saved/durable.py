"""Files that are whole or not there, also after a power cut; and objects behind URLs, which services make so."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

from penstock.errors import writing_to
from penstock.io import storage


def write_whole(path: str | Path, content: bytes | memoryview, *, replace: bool = True) -> bool:
    """Write a file under a temporary name, bring it to the disk, and give it its name; or make an object of a URL.

    With `replace=False` a file that is there already stays, and the result is False.
    """
    if storage.is_url(path):
        if not replace and storage.exists(path):
            return False
        with storage.open_write(path) as sent:
            sent.write(content)
        return True
    path = Path(path)
    with _part(path) as part:
        with writing_to(path), part.open("xb") as file:  # new: never through a symbolic link
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            part.replace(path)
        else:
            try:
                os.link(part, path)
            except OSError:  # it is there, or this file system has no links
                if path.exists():
                    return False
                part.replace(path)
    _sync_folder(path.parent)
    return True


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """The temporary name of a file, which is written and brought to the disk inside, and gets its name behind."""
    with _part(path) as part:
        yield part
        part.replace(path)
    _sync_folder(path.parent)


@contextmanager
def _part(path: Path) -> Iterator[Path]:
    part = path.with_name(f"{path.name}.{token_hex(4)}.part")  # processes of two machines may have one number
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk, where the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows opens no folders
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
