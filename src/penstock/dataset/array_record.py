"""ArrayRecordDataset: the records of ArrayRecord files."""

from __future__ import annotations

from typing import Any

from penstock.dataset.dataset import Dataset
from penstock.dataset.files import read_files
from penstock.sources.array_record import ArrayRecordSource, reader_class


def ArrayRecordDataset(filenames: Any, num_parallel_reads: int | None = None) -> Dataset:
    """The records of local ArrayRecord files, as byte strings, which can be asked for by number.

    It needs the package array_record (`pip install 'penstock[array_record]'`; Linux and macOS). `len()` reads the ends
    of the files only; `ds[i]` and `shuffle(ps.ALL)` read the group of records that one is in, so files that are to be
    shuffled are best written with `group_size:1`. With `num_parallel_reads` the files are interleaved record by record,
    that many at a time, AUTOTUNE meaning a fixed 16, and records have no numbers.

        ds = ps.ArrayRecordDataset("train.array_record-00000-of-00008")
        len(ds), ds[12]

    What is wrong with a file comes with the pass, each in the place of one element: NotFoundError for a missing file,
    DataLossError for one that is cut short and for records whose group is damaged. Where a file cannot be counted,
    `len()`, `ds[i]` and `shuffle(ps.ALL)` raise what is wrong with it. MissingDependencyError where the package is not
    installed.
    """
    reader_class()
    return read_files(filenames, ArrayRecordSource(()), num_parallel_reads)
