"""NumpyDataset: slices of the arrays in `.npy` and `.npz` files."""

from __future__ import annotations

from typing import Any

from penstock.dataset.dataset import Dataset
from penstock.dataset.files import read_files
from penstock.sources.numpy_files import NumpySource


def NumpyDataset(filenames: Any, mmap: bool = True) -> Dataset:
    """The slices along the first axis of the arrays in files of np.save and np.savez, one file after the other.

    A `.npy` file gives arrays, one of a structured dtype dicts of its fields, a `.npz` file dicts of the slices of its
    arrays, which all have the same extent. Fixed-width strings become bytes; pickled objects are never loaded.
    `filenames` is a path or URL, a sequence of them, or a Dataset of names.

    Local files are mapped into memory and read where they are looked at; compressed members, files at a URL, and all
    files with `mmap=False`, are loaded when the pass comes to them. Slices can be asked for by number, and `len()`
    reads the headers only. Functions get views of the files
    that they can only read, a loop copies.

    >>> import pathlib, tempfile, numpy as np, penstock as ps
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.npz"
    >>> np.savez(path, x=np.arange(6).reshape(3, 2), y=np.array([0, 1, 0], np.int8))
    >>> ds = ps.NumpyDataset(path)
    >>> len(ds), next(iter(ds))
    (3, {'x': array([0, 1]), 'y': np.int8(0)})

    Errors come with the pass, each in the place of one element: NotFoundError for a missing file, DataLossError for a
    damaged one, InvalidTypeError for pickled objects or arrays that differ from the first file's,
    InvalidArgumentError for extents that differ. Over such files the cardinality is unknown, and `len()`, `ds[i]` and
    `shuffle(ps.ALL)` raise what is wrong with the first of them.
    """
    return read_files(filenames, NumpySource((), mmap=bool(mmap)))
