"""LmdbDataset: the entries of LMDB databases."""

from __future__ import annotations

from typing import Any

from penstock.dataset.dataset import Dataset
from penstock.dataset.files import read_files
from penstock.errors import InvalidTypeError
from penstock.sources.lmdb import LmdbSource


def LmdbDataset(
    filenames: Any, num_parallel_reads: int | None = None, *, database: str | bytes | None = None
) -> Dataset:
    """The `(key, value)` pairs of local LMDB databases, as byte strings, which can be asked for by number.

    A database is a folder with data.mdb in it, or such a file; `database` names one of several in it. Pairs come in the
    order of their keys. `len()`, `ds[i]` and `shuffle(ps.ALL)` work. What frameworks keep in LMDB is pairs too:
    of LSUN the value is the content of a picture, of Caffe and mmcv keys are "000001" and so on; take keys that are no
    examples, such as `__len__`, out with `filter`.

        ds = ps.LmdbDataset("lsun/bedroom_train_lmdb")
        pictures = ds.map(lambda key, value: ps.image.decode_image(value))

    No package is needed: pages are read, and not mapped into memory, so that processes and forks may share a data set,
    and a file that is damaged or cut short is an error and not the end of the process. What is read should not be
    written at the same time. With `num_parallel_reads` databases are interleaved pair by pair, that many at a time,
    AUTOTUNE meaning a fixed 16, and pairs have no numbers.

    What is wrong with a file comes with the pass: NotFoundError for a missing one, DataLossError for one whose tree of
    pages is damaged, each in the place of one element; DataLossError for a pair that is damaged. LMDB keeps no
    checksums, so a changed byte of a value is not found. UnimplementedError for a database with several values for a
    key; InvalidArgumentError for a `database` that is not there.
    """
    if database is not None and not isinstance(database, str | bytes):
        message = f"database must be a name, got {database!r}."
        raise InvalidTypeError(message, hint="Leave it out for the database that has no name.")
    name = database.encode() if isinstance(database, str) else database
    return read_files(filenames, LmdbSource((), database=name), num_parallel_reads)
