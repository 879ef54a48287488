"""Data sets of samples: images in a directory per class, members of tar archives, shards of MDS and LitData."""

from __future__ import annotations

import glob as local_glob
import os
import re
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from penstock.dataset.dataset import Dataset
from penstock.dataset.files import paths, read_files
from penstock.errors import InvalidArgumentError, InvalidTypeError, NotFoundError
from penstock.io import storage
from penstock.plan.inputs import Scan
from penstock.plan.node import check_int
from penstock.sources.image_folder import ImageFolderSource
from penstock.sources.shards import of_litdata, of_mds, read_index
from penstock.sources.webdataset import KEY, WebSource

EXTENSIONS = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".webp")

_Found = list[tuple[tuple[str, ...], str]]  # (parts of the path below the directory, full name) of each file


class ImageFolderDataset(Dataset):
    """Data set of the image files of a directory, each with the number of its class.

    The directory has one subdirectory for each class, such as `cats/1.jpg`. Files may be at any depth below it. Hidden
    files, and files with another extension, are ignored. Elements are pairs `(content, label)`, sorted by class and
    name: decode the content with `ps.image.decode_image` in `map`. The label is int64. The files are listed when this
    class is called. The elements have an index, so shuffle with `shuffle(ps.ALL)` before you decode. A file that cannot
    be read is one element that fails.

    `labels` and `class_names` mean the same as in Keras' image_dataset_from_directory. The order is that of
    torchvision's ImageFolder.

    Args:
        directory: The directory, a path or a URL.
        labels: `"inferred"` numbers the subdirectories in the order of their names. Otherwise a sequence of integers,
            one for each file in the order of the sorted paths; or None for elements without a label. Default:
            `"inferred"`.
        class_names: Names of the subdirectories in the order of their numbers. Default: sorted.
        extensions: Extensions of image files.

    Attributes:
        class_names: Name of each label, or None if the labels are not inferred.

    Raises:
        NotFoundError: If the directory, or the subdirectory of a class, contains no images.
        InvalidArgumentError: If `labels` or `class_names` do not fit the files.
        InvalidTypeError: If `labels` are not integers, or if `extensions` are not strings.

    Example:
        >>> import pathlib, tempfile, penstock as ps
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> for name in ("cats/1.png", "dogs/1.png", "dogs/2.png"):
        ...     (folder / name).parent.mkdir(exist_ok=True)
        ...     _ = (folder / name).write_bytes(name.encode())
        >>> ds = ps.ImageFolderDataset(folder)
        >>> ds.class_names, [(image, int(label)) for image, label in ds]
        (['cats', 'dogs'], [(b'cats/1.png', 0), (b'dogs/1.png', 1), (b'dogs/2.png', 1)])
    """

    class_names: list[str] | None
    """Name of each label, or None if labels were not inferred."""

    def __new__(
        cls,
        directory: Any,
        labels: Any = "inferred",
        class_names: Sequence[str] | None = None,
        *,
        extensions: Sequence[str] = EXTENSIONS,
    ) -> ImageFolderDataset:
        """List the files."""
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
            numbers = _class_numbers(labels, len(files))
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
        """Do nothing: `__new__` has created the data set."""


def _endings(extensions: Any) -> tuple[str, ...]:
    if isinstance(extensions, (str, bytes)) or not all(isinstance(name, str) for name in extensions):
        message = f"extensions is a sequence of endings, got {extensions!r:.60}."
        raise InvalidTypeError(message, hint='For example extensions=(".jpg", ".png").')
    return tuple(f".{name.lower().removeprefix('.')}" for name in extensions)


def _listed(root: str, endings: tuple[str, ...]) -> _Found:
    """Return the images below a directory, sorted by their paths."""
    try:
        names = storage.glob(f"{root if storage.is_url(root) else local_glob.escape(root)}/**")
    except NotFoundError:
        names = []
    found = [(tuple(_below(root, name)), name) for name in names if name.lower().endswith(endings)]
    return sorted(file for file in found if not any(part.startswith(".") for part in file[0]))


def _below(root: str, name: str) -> list[str]:
    """Return the parts of a path below the directory.

    Depth is counted, as file systems may spell the directory differently.
    """
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


def _class_numbers(labels: Any, count: int) -> list[int]:
    hint = 'Give one integer per file, "inferred", or None.'
    if isinstance(labels, (str, bytes)) or not hasattr(labels, "__len__"):
        raise InvalidTypeError(f'labels is "inferred", None, or a sequence of integers, got {labels!r:.60}.', hint=hint)
    if len(labels) != count:
        raise InvalidArgumentError(f"There are {count} images and {len(labels)} labels.", hint=hint)
    try:
        return [label.__index__() for label in labels]
    except AttributeError as error:
        raise InvalidTypeError(f"labels are integers, got {list(labels)!r:.60}.", hint=hint) from error


_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)(?:\.\.(-?\d+))?\Z")


def expand_braces(pattern: str) -> list[str]:
    """Return the names for a pattern with `{a,b}` and `{000..012}`, in order. Braces may be nested.

    >>> expand_braces("data-{08..10}.tar")
    ['data-08.tar', 'data-09.tar', 'data-10.tar']
    >>> expand_braces("{train,val}/{a,b}.tar")
    ['train/a.tar', 'train/b.tar', 'val/a.tar', 'val/b.tar']

    Braces without a comma or a range stay unchanged.
    """
    parts: list[list[str]] = []
    at = begin = 0
    while at < len(pattern):
        close = _closing(pattern, at) if pattern[at] == "{" else None
        choices = None if close is None else _choices(pattern[at + 1 : close])
        if close is None or choices is None:
            at += 1
            continue
        parts += [[pattern[begin:at]], choices]
        at = begin = close + 1
    return ["".join(chosen) for chosen in product(*parts, [pattern[begin:]])]


def _closing(pattern: str, at: int) -> int | None:
    depth = 0
    for place in range(at, len(pattern)):
        depth += {"{": 1, "}": -1}.get(pattern[place], 0)
        if not depth:
            return place
    return None


def _choices(inner: str) -> list[str] | None:
    """Return the choices between braces, or None if they are neither a list nor a range."""
    found = _RANGE.match(inner)
    if found is not None:
        return _numbers(*found.groups())
    items = _split(inner)
    return [name for item in items for name in expand_braces(item)] if len(items) > 1 else None


def _numbers(first: str, last: str, by: str | None) -> list[str]:
    padded = any(len(text.lstrip("-")) > 1 and text.lstrip("-")[0] == "0" for text in (first, last))
    width = max(len(first), len(last)) if padded else 0
    step = abs(int(by or 1)) or 1
    start, stop = int(first), int(last)
    numbers = range(start, stop + 1, step) if start <= stop else range(start, stop - 1, -step)
    return [f"{number:0{width}d}" if width else str(number) for number in numbers]


def _split(inner: str) -> list[str]:
    """Return the items of a list. Commas inside nested braces do not separate items."""
    items, depth = [""], 0
    for character in inner:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and not depth:
            items.append("")
        else:
            items[-1] += character
    return items


def WebDataset(shards: Any, suffixes: Sequence[str] | None = None, num_parallel_reads: int | None = None) -> Dataset:
    """Create a data set of the samples of tar archives in the layout of the webdataset library.

    A sample consists of consecutive files with the same key. The key is the path of a file up to the first dot after
    its last slash. The rest, in lower case, is the suffix. All samples have the same suffixes. Files without a suffix,
    hidden files, and members that are not regular files are ignored. Local uncompressed archives are mapped into
    memory, and contents are not copied. Archives that are compressed with gzip are detected.

    Args:
        shards: A path or URL, a sequence of them, or a data set of file names. Braces are expanded as in a shell:
            `data-{0000..0009}.tar`.
        suffixes: Suffixes to read. Other files of a sample are ignored. Default: the suffixes of the first sample.
        num_parallel_reads: Number of archives that are read at the same time. Their samples alternate. `ps.AUTOTUNE`
            means 16. By default, one archive is read after another.

    Returns:
        A data set of dicts of byte strings: `"__key__"`, and the content of each file by its suffix. Decode them in
        `map`.

    Raises:
        InvalidTypeError: If `suffixes` are not strings, or, during the iteration, if a sample has other suffixes.
        InvalidArgumentError: If a suffix is given twice, or, during the iteration, if a sample has a suffix twice.
        NotFoundError: If, during the iteration, an archive is missing.
        DataLossError: If, during the iteration, an archive is damaged. The next archive follows.

    Example:
        >>> import io, pathlib, tarfile, tempfile, penstock as ps
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> with tarfile.open(folder / "data-0.tar", "w") as archive:
        ...     for name, content in [("a/1.txt", b"one"), ("a/1.cls", b"0"), ("a/2.txt", b"two"), ("a/2.cls", b"1")]:
        ...         member = tarfile.TarInfo(name)
        ...         member.size = len(content)
        ...         archive.addfile(member, io.BytesIO(content))
        >>> for sample in ps.WebDataset(f"{folder}/data-{{0..0}}.tar"):
        ...     print(sample)
        {'__key__': b'a/1', 'txt': b'one', 'cls': b'0'}
        {'__key__': b'a/2', 'txt': b'two', 'cls': b'1'}
    """
    source = WebSource((), suffixes=_checked(suffixes))
    if not isinstance(shards, Dataset):
        shards = [name for pattern in paths(shards) for name in expand_braces(os.fspath(pattern))]
    return read_files(shards, source, num_parallel_reads)


def _checked(suffixes: Any) -> tuple[str, ...] | None:
    if suffixes is None:
        return None
    if isinstance(suffixes, (str, bytes)) or not all(isinstance(name, str) for name in suffixes):
        message = f"suffixes is a sequence of names, got {suffixes!r:.60}."
        raise InvalidTypeError(message, hint='For example suffixes=("jpg", "cls").')
    names = tuple(name.lower().removeprefix(".") for name in suffixes)
    if not names or len(set(names)) < len(names) or KEY in names:
        message = f"suffixes names each suffix once, and at least one, got {list(suffixes)!r:.60}."
        raise InvalidArgumentError(message, hint="Leave it out to read what the first sample has.")
    return names


def MDSDataset(directory: Any, *, allow_pickle: bool = False) -> Dataset:
    """Create a data set of the samples that MosaicML Streaming wrote in its format MDS.

    The directory contains `index.json` and the shards. The elements have an index: `len(ds)`, `ds[i]` and
    `shuffle(ps.ALL)` work. Local uncompressed shards are mapped into memory. A compressed or remote shard is loaded
    when a sample is needed, and up to 64 such shards stay in memory.

    Numbers and arrays keep their dtypes. All other values are byte strings, as they are in the file: `str` and `json`
    are UTF-8; `str_int`, `str_float` and `str_decimal` are digits; `jpeg` and `png` are encoded images. Decode them in
    `map`, for example with `ps.image.decode_image`. Hashes are compared when a process first opens a shard. Hashes of
    the package xxhash are compared if this package is installed.

    Args:
        directory: Directory with `index.json`, a path or a URL.
        allow_pickle: If True, columns with the encoding `pkl` are unpickled. A pickle can run any code.

    Returns:
        A data set of dicts with one value for each column.

    Raises:
        NotFoundError: If there is no `index.json`, or, during the iteration, if a shard is missing.
        UnimplementedError: If the format or an encoding is unknown, or, during the iteration, the compression.
        InvalidTypeError: If a column is pickled and `allow_pickle` is False.
        DataLossError: If the index is damaged, or, during the iteration, if a shard is damaged or does not fit the
            index. The error names the file and the byte offset. In a compressed shard, the offset counts the
            decompressed bytes.

    Example:
        >>> import json, pathlib, struct, tempfile, penstock as ps
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "shard.00000.mds").write_bytes(struct.pack("<4I2q", 2, 16, 24, 32, 7, 8))
        >>> shard = {"format": "mds", "version": 2, "samples": 2, "compression": None, "zip_data": None}
        >>> shard |= {"column_names": ["x"], "column_encodings": ["int"], "column_sizes": [8]}
        >>> shard["raw_data"] = {"basename": "shard.00000.mds", "bytes": 32, "hashes": {}}
        >>> _ = (folder / "index.json").write_text(json.dumps({"version": 2, "shards": [shard]}))
        >>> ds = ps.MDSDataset(folder)
        >>> len(ds), ds[1]
        (2, {'x': np.int64(8)})
    """
    return Dataset._of(Scan(source=read_index(directory, of_mds, allow_pickle=allow_pickle)))


def LitDataset(directory: Any, block_size: int | None = None, *, allow_pickle: bool = False) -> Dataset:
    """Create a data set of the samples that LitData's `optimize` wrote.

    The directory contains `index.json` and the chunks. The elements have an index: `len(ds)`, `ds[i]` and
    `shuffle(ps.ALL)` work. Local uncompressed chunks are mapped into memory. A compressed or remote chunk is loaded
    when a sample is needed, and up to 64 such chunks stay in memory.

    An element has the nest of the sample; a list becomes a tuple. Numbers, arrays and tensors become numpy values of
    the same dtype. Strings are UTF-8 byte strings. Images, audio, video and other files are byte strings: decode them
    in `map`. LitData stores dicts of numbers, strings and lists as Arrow rows: their values are those that
    `ArrowDataset` gives for such a table.

    Args:
        directory: Directory with `index.json`, a path or a URL.
        block_size: Number of tokens in a row, for data that was written with `TokensLoader`. The tokens at the end of a
            chunk that fill no row are left out, as in LitData. Default: the data has samples.
        allow_pickle: If True, pickled values are unpickled. A pickle can run any code.

    Returns:
        A data set of samples, or of arrays of shape (block_size,).

    Raises:
        NotFoundError: If there is no `index.json`, or, during the iteration, if a chunk is missing.
        UnimplementedError: If the loader, an encoding, or the type of a sample is unknown, if chunks are encrypted, if
            each sample is compressed alone, or if `block_size` is missing or not needed.
        InvalidTypeError: If values are pickled and `allow_pickle` is False.
        InvalidArgumentError: If `block_size` is smaller than 1.
        DataLossError: If the index is damaged, or, during the iteration, if a chunk is damaged or does not fit the
            index. The error names the file and the byte offset. In a compressed chunk, the offset counts the
            decompressed bytes.

    Example:
        >>> import json, pathlib, struct, tempfile, penstock as ps
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "chunk-0-0.bin").write_bytes(struct.pack("<4I" + 2 * "Iq", 2, 16, 28, 40, 8, 7, 8, 8))
        >>> chunk = {"filename": "chunk-0-0.bin", "chunk_size": 2, "chunk_bytes": 40, "dim": None}
        >>> spec = json.dumps([1, {"type": None, "context": None, "children_spec": []}])
        >>> config = {"data_format": ["int"], "data_spec": spec, "compression": None}
        >>> _ = (folder / "index.json").write_text(json.dumps({"chunks": [chunk], "config": config}))
        >>> list(ps.LitDataset(folder))
        [np.int64(7), np.int64(8)]
    """
    size = None if block_size is None else check_int("block_size", block_size, least=1, hint="It counts tokens.")
    return Dataset._of(Scan(source=read_index(directory, of_litdata, allow_pickle=allow_pickle, block_size=size)))
