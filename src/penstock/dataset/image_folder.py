"""ImageFolderDataset: image files in one directory per class."""

from __future__ import annotations

import glob as local_glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock.dataset.dataset import Dataset
from penstock.errors import InvalidArgumentError, InvalidTypeError, NotFoundError
from penstock.io import storage
from penstock.plan.scan import Scan
from penstock.sources.image_folder import ImageFolderSource

EXTENSIONS = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".webp")

_Found = list[tuple[tuple[str, ...], str]]  # the path below the directory, in parts, and the whole name


class ImageFolderDataset(Dataset):
    """The image files of a directory as (content, label), sorted by class and name; nothing is decoded yet.

    The directory, a path or URL, holds one directory per class (`cats/1.jpg`), the files at any depth below; hidden
    ones and those without one of the `extensions` are left out. The label is int64: the number of the class among the
    sorted names, or among `class_names`, which must be the same names. Instead of "inferred", `labels` may be a
    sequence of integers, one for each file in the order of their sorted paths, or None for elements that are the
    contents alone; then the directories mean nothing. Files are listed when this is called; they can be asked for by
    number.

    The meaning of `labels` and `class_names` is that of Keras' image_dataset_from_directory, the order that of
    torchvision's ImageFolder. Shuffle with `shuffle(len(ds))` before images are decoded.

    >>> import pathlib, tempfile, penstock as ps
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name in ("cats/1.png", "dogs/1.png", "dogs/2.png"):
    ...     (folder / name).parent.mkdir(exist_ok=True)
    ...     _ = (folder / name).write_bytes(name.encode())
    >>> ds = ps.ImageFolderDataset(folder)
    >>> ds.class_names, [(image, int(label)) for image, label in ds]
    (['cats', 'dogs'], [(b'cats/1.png', 0), (b'dogs/1.png', 1), (b'dogs/2.png', 1)])

    Raises NotFoundError for a directory, or a class, without images, InvalidArgumentError for labels or class_names
    that do not fit the files. A file that cannot be read is one failure, when the pass comes there.
    """

    class_names: list[str] | None
    """The name of each label, or None where labels were not inferred."""

    def __new__(
        cls,
        directory: Any,
        labels: Any = "inferred",
        class_names: Sequence[str] | None = None,
        *,
        extensions: Sequence[str] = EXTENSIONS,
    ) -> ImageFolderDataset:
        """Lists the files."""
        root = storage.as_path(directory).rstrip("/")
        files = _listed(root, _endings(extensions))
        names: list[str] | None = None
        numbers: list[int] | None = None
        if isinstance(labels, str) and labels == "inferred":
            names = _classes(root, files, class_names)
            number_of = {name: number for number, name in enumerate(names)}
            files = [file for file in files if len(file[0]) > 1]
            numbers = [number_of[parts[0]] for parts, _ in files]
        elif class_names is not None:
            message = "class_names gives the order of inferred labels, and the labels are not inferred."
            raise InvalidArgumentError(message, hint='Leave out class_names, or labels (default "inferred").')
        elif labels is not None:
            numbers = _numbers(labels, len(files))
        if not files:
            message = f"There are no images in {root!r}."
            raise NotFoundError(message, hint=f"Looked for files ending in {', '.join(extensions)}.")
        numbered = None if numbers is None else tuple(numbers)
        source = ImageFolderSource(tuple(name for _, name in files), numbered, root)
        found = object.__new__(cls)
        vars(found).update(vars(Dataset._of(Scan(source=source))))
        found.class_names = names
        return found

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """All is done by then."""


def _endings(extensions: Any) -> tuple[str, ...]:
    if isinstance(extensions, (str, bytes)) or not all(isinstance(name, str) for name in extensions):
        message = f"extensions is a sequence of endings, got {extensions!r:.60}."
        raise InvalidTypeError(message, hint='For example extensions=(".jpg", ".png").')
    return tuple(f".{name.lower().removeprefix('.')}" for name in extensions)


def _listed(root: str, endings: tuple[str, ...]) -> _Found:
    """The images below a directory, sorted by their paths."""
    try:
        names = storage.glob(f"{root if storage.is_url(root) else local_glob.escape(root)}/**")
    except NotFoundError:
        names = []
    found = [(tuple(_below(root, name)), name) for name in names if name.lower().endswith(endings)]
    return sorted(file for file in found if not any(part.startswith(".") for part in file[0]))


def _below(root: str, name: str) -> list[str]:
    """The parts of a path behind the directory it was found in, whose own name a file system may spell differently."""
    depth = len([part for part in root.split("://")[-1].split("/") if part])
    return [part for part in name.split("://")[-1].replace(os.sep, "/").split("/") if part][depth:]


def _classes(root: str, files: _Found, class_names: Any) -> list[str]:
    found = {parts[0] for parts, _ in files if len(parts) > 1}
    if not storage.is_url(root) and Path(root).is_dir():
        for entry in sorted(Path(root).iterdir()):
            if entry.is_dir() and not entry.name.startswith(".") and entry.name not in found:
                message = f"The class {entry.name!r} has no images, in {str(entry)!r}."
                raise NotFoundError(message, hint="Labels count the directories: remove it, or put its images there.")
    if class_names is None:
        return sorted(found)
    names = list(class_names)
    if sorted(names, key=str) != sorted(found):
        message = f"class_names must be the names of the classes, {sorted(found)}, in any order; got {names}."
        raise InvalidArgumentError(message)
    return names


def _numbers(labels: Any, count: int) -> list[int]:
    hint = 'Give one integer per file, "inferred", or None.'
    if isinstance(labels, (str, bytes)) or not hasattr(labels, "__len__"):
        message = f'labels is "inferred", None, or a sequence of integers, got {labels!r:.60}.'
        raise InvalidTypeError(message, hint=hint)
    if len(labels) != count:
        message = f"There are {count} images and {len(labels)} labels."
        raise InvalidArgumentError(message, hint=hint)
    try:
        return [label.__index__() for label in labels]
    except AttributeError as error:
        message = f"labels are integers, got {list(labels)!r:.60}."
        raise InvalidTypeError(message, hint=hint) from error
