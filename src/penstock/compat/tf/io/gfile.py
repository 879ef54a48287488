"""`tf.io.gfile`: files and folders by path or URL."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import fsspec

from penstock.compat.op import named
from penstock.compat.teaching import missing_in
from penstock.compat.values import lowered
from penstock.errors import writing_to
from penstock.io.storage import as_path, open_read


def _at(path: Any) -> tuple[Any, str]:
    return fsspec.core.url_to_fs(as_path(lowered(path)))


def read_bytes(path: str) -> bytes:
    """Return the content of a file. Raises NotFoundError if there is no file."""
    with open_read(path) as file:
        return file.read()


def write_bytes(path: str, content: bytes) -> None:
    """Write `content` to a file. A missing folder is made."""
    system, place = _at(path)
    system.makedirs(os.path.dirname(place), exist_ok=True)  # noqa: PTH120 - the path may be a URL
    with writing_to(path), fsspec.open(path, "wb") as file:
        file.write(content)


def join(path: Any, *paths: Any) -> str:
    """Join paths by a slash, as in URLs."""
    return os.path.join(*(os.fsdecode(lowered(part)) for part in (path, *paths)))  # noqa: PTH118 - may be a URL


def stat(path: Any) -> Any:
    """Return the `length` of a file, and `is_directory`."""
    system, place = _at(path)
    info = system.info(place)
    return SimpleNamespace(length=info["size"], is_directory=info["type"] == "directory")


def GFile(name: Any, mode: str = "r") -> Any:
    """Open a file like `open`, also at a URL."""
    system, place = _at(name)
    return system.open(place, mode) if "b" in mode else system.open(place, mode, encoding="utf-8")


Open = GFile


def _method(name: str, description: str, **settings: Any) -> Any:
    """Return a function of a path that calls a method of fsspec's file system."""

    def call(path: Any) -> Any:
        system, place = _at(path)
        return getattr(system, name)(place, **settings)

    return named(call, name, description)


exists = _method("exists", "Return True if there is a file or a folder.")
isdir = _method("isdir", "Return True if there is a folder.")
mkdir = makedirs = _method("makedirs", "Make a folder and its missing parents.", exist_ok=True)
remove = _method("rm_file", "Remove a file.")
rmtree = _method("rm", "Remove a folder with its content.", recursive=True)
walk = _method("walk", "Yield each folder below a folder, with the names of its folders and of its files.")


def listdir(path: Any) -> list[str]:
    system, place = _at(path)
    return sorted(name.rstrip("/").rpartition("/")[2] for name in system.ls(place, detail=False))


def rename(src: Any, dst: Any, overwrite: bool = False) -> None:
    system, place = _at(src)
    if not overwrite and exists(dst):
        raise FileExistsError(f"{dst} is there already.")
    system.mv(place, _at(dst)[1])


def copy(src: Any, dst: Any, overwrite: bool = False) -> None:
    if not overwrite and exists(dst):
        raise FileExistsError(f"{dst} is there already.")
    write_bytes(as_path(lowered(dst)), read_bytes(as_path(lowered(src))))


def glob(pattern: Any) -> list[str]:
    """Return the names that match a pattern, or one of several patterns."""
    patterns = pattern if isinstance(pattern, (list, tuple)) else [pattern]
    found = []
    for one in patterns:
        system, place = _at(one)
        local = "://" not in as_path(lowered(one))
        relative = local and not os.path.isabs(as_path(lowered(one)))  # noqa: PTH117
        names = system.glob(place)
        found += [os.path.relpath(x) if relative else x if local else system.unstrip_protocol(x) for x in names]
    return sorted(found)


# TensorFlow 1's spellings, as in `tf.gfile.Glob`.
Exists, IsDirectory, ListDirectory, MakeDirs, MkDir = exists, isdir, listdir, makedirs, mkdir
Remove, DeleteRecursively, Rename, Copy, Glob, Walk, FastGFile = remove, rmtree, rename, copy, glob, walk, GFile

__getattr__ = missing_in("tf.io.gfile", globals())
