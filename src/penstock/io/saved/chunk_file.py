"""ChunkFile: an open chunk, whose elements are read where they lie."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from penstock.block.arrow import from_arrow, too_little_memory
from penstock.block.block import Block
from penstock.block.column import BytesColumn
from penstock.block.structure import Structure
from penstock.errors import Context, DataLossError, PenstockError, annotate
from penstock.io import storage
from penstock.io.saved.chunk import Chunk
from penstock.io.saved.direct_file import ask_for


class ChunkFile:
    """A chunk that is mapped, or read as a whole where it is a URL.

    Its checksums are looked at when it is made, unless they were `verified` before. Raises DataLossError then for a
    file that is not what was written, and NotFoundError for none.
    """

    def __init__(self, name: str, chunk: Chunk, *, verified: bool = False) -> None:
        import pyarrow as pa

        self._name = name
        self._chunk = chunk
        self._content = _whole(name)
        if not verified or len(self._content) != chunk.bytes:
            chunk.check(self._content.data, name)
        with self._damage():
            self._reader = pa.ipc.open_file(pa.py_buffer(self._content))

    def block(self, number: int, structure: Structure) -> Block:
        """The elements of a record batch.

        Raises DataLossError for a file that holds something else, though its checksums are right.
        """
        with self._damage():
            batch = self._reader.get_batch(number)
            batch.validate(full=True)  # places outside of the file would be read by nobody who checks them
            return from_arrow(batch, structure=structure)

    @contextmanager
    def _damage(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # of any kind: a file of strangers may hold anything
            if isinstance(error, PenstockError) or too_little_memory(error):
                annotate(error, Context(file=self._name))
                raise
            message = f"The file does not hold the elements of a saved data set: {error!s:.120}"
            raise DataLossError(message, hint=self._chunk.remedy(self._name), file=self._name) from error

    def holds(self, block: Block) -> int:
        """Bytes that a Block of this file costs beside the file itself."""
        first = self._content.ctypes.data
        stop = first + len(self._content)
        cost = 0
        for column in block.columns:
            arrays = column.buffers if isinstance(column, BytesColumn) else [getattr(column, "array", None)]
            inside = all(array is not None and first <= array.ctypes.data < stop for array in arrays)
            places = 16 * block.size if isinstance(column, BytesColumn) else 0
            cost += places if inside else column.nbytes + places
        return cost


def read_soon(name: str) -> None:
    """Have the system read a local file while something else is done."""
    if not storage.is_url(name):
        with suppress(OSError), Path(name).open("rb") as file:
            ask_for(file.fileno(), os.fstat(file.fileno()).st_size)


def _whole(name: str) -> np.ndarray:
    """All bytes of a file."""
    if storage.is_url(name):
        return np.frombuffer(storage.read_remote(name), np.uint8)
    return storage.bytes_of(name)
