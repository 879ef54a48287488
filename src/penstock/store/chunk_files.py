"""The chunks of a saved data set as files: written one after the other, and read through a memory map."""

from __future__ import annotations

import io
import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from penstock.block.arrow import from_arrow, to_arrow, too_little_memory
from penstock.block.block import Block
from penstock.block.column import BytesColumn
from penstock.block.spec import LeafSpec, TensorSpec
from penstock.block.structure import Structure
from penstock.cgroup import machine_left, memory_left
from penstock.errors import Context, DataLossError, PenstockError, annotate
from penstock.io import storage
from penstock.io.compression import AUTO
from penstock.store.chunk import Chunk, checksums
from penstock.store.durable import DiskFile, ask_for, is_as_written, note_as_written, whole_file, write_whole
from penstock.store.manifest import file_in


class ChunkFile:
    """A chunk that is mapped, or completely read if it is at a URL.

    Its checksums are verified when the object is created, unless they were `verified` before, or this process has just
    written the file. Raises DataLossError if the content differs from the written content, and NotFoundError for a
    missing file.
    """

    def __init__(self, name: str, chunk: Chunk, *, verified: bool = False) -> None:
        import pyarrow as pa

        self._name = name
        self._chunk = chunk
        self._content = _whole(name)
        known = verified or (not storage.is_url(name) and is_as_written(name, chunk.crcs))
        if not known or len(self._content) != chunk.bytes:
            chunk.check(self._content.data, name)
        with self._damage():
            self._reader = pa.ipc.open_file(pa.py_buffer(self._content))

    def block(self, number: int, structure: Structure) -> Block:
        """Return the elements of a record batch.

        Raises DataLossError if the file has other content, although its checksums are right.
        """
        with self._damage():
            batch = self._reader.get_batch(number)
            batch.validate(full=True)  # positions outside of the file would later be used without a check
            return from_arrow(batch, structure=structure)

    @contextmanager
    def _damage(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # a file from an unknown writer may raise any exception
            if isinstance(error, PenstockError) or too_little_memory(error):
                annotate(error, Context(file=self._name))
                raise
            message = f"The file does not hold the elements of a saved data set: {error!s:.120}"
            raise DataLossError(message, hint=self._chunk.remedy(self._name), file=self._name) from error

    def holds(self, block: Block) -> int:
        """Return the bytes that a Block of this file needs besides the mapped file."""
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
    """Make the system read a local file in the background."""
    if not storage.is_url(name):
        with suppress(OSError), Path(name).open("rb") as file:
            ask_for(file.fileno(), os.fstat(file.fileno()).st_size)


def _whole(name: str) -> np.ndarray:
    """Return all bytes of a file."""
    if storage.is_url(name):
        return np.frombuffer(storage.read_remote(name), np.uint8)
    return storage.bytes_of(name)


_BATCH = 1 << 20  # bytes of a record batch that is decompressed or converted as a whole
_WORTH = 0.9  # share of the size; AUTO does not compress if the compressed size is larger


def decided(block: Block, specs: Sequence[LeafSpec], codec: str | None) -> str | None:
    """Return the codec. AUTO becomes lz4 if this saves a tenth of the first megabyte or more, and otherwise None.

    Raises InvalidTypeError for elements that cannot be stored.
    """
    if codec != AUTO:
        return codec
    rows = _batch_rows(block)
    first = block.slice(0, rows)
    plain, packed = (_size(first, specs, rows, name) for name in (None, "lz4"))
    return "lz4" if packed < _WORTH * plain else None


def batch_rows(block: Block, specs: Sequence[LeafSpec], codec: str | None) -> int:
    """Return the number of elements of a record batch.

    Uncompressed arrays of one shape and byte strings are read in place, so one batch has all elements.
    """
    whole = codec is None and all(isinstance(spec, TensorSpec) and spec.fixed for spec in specs)
    return block.size if whole else _batch_rows(block)


def _batch_rows(block: Block) -> int:
    return min(max(block.size * _BATCH // max(block.nbytes, 1), 1), block.size)


def encode(block: Block, specs: Sequence[LeafSpec], codec: str | None, rows: int, sink: Any) -> None:
    """Write the elements of a Block with the specs `specs` to `sink`, a file of Python or pyarrow.

    Record batches have `rows` elements. Raises InvalidTypeError for elements that cannot be stored.
    """
    import pyarrow as pa

    writer = None
    for start in range(0, block.size, rows):
        batch = to_arrow(block.slice(start, start + rows), specs)
        if writer is None:
            writer = pa.ipc.new_file(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression=codec))
        writer.write_batch(batch)
    assert writer is not None
    writer.close()


def _size(block: Block, specs: Sequence[LeafSpec], rows: int, codec: str | None) -> int:
    import pyarrow as pa

    sink = pa.MockOutputStream()
    encode(block, specs, codec, rows, sink)
    return int(sink.size())


KEPT = 0.5  # share of the free memory; caches of files that were not used lately count as free
# seconds of CPU time per byte copied into the system's cache, above which copies count as expensive; 0.2e-9 is usual
_DEAR = 0.6e-9
_TRIED_AGAIN = 15  # number of chunks after which a copy is tried again
_TIME_TO_READ = 2  # chunks that are written before the system has read one back


class ChunkWriter:
    """Writes chunks below a folder or a URL. `codec` is Arrow's name, None, or AUTO, which the first chunk decides."""

    def __init__(self, folder: str, codec: str | None) -> None:
        self._folder = folder
        self._kept = 0  # bytes that stay in the system's cache of files
        self._dear = 0  # remaining chunks to write past the cache, because copies into it were expensive
        self._read_back: deque[tuple[str, Chunk]] = deque()  # chunks that the system is reading back into its cache
        self.codec = codec

    def write(self, file: str, shard: int, block: Block, specs: Sequence[LeafSpec]) -> Chunk:
        """Write elements with the specs `specs` to the disk, under their final name.

        Raises InvalidTypeError for elements that cannot be stored, and OSError if the disk or its permissions refuse
        the file.
        """
        self.codec = decided(block, specs, self.codec)
        rows = batch_rows(block, specs, self.codec)
        name = file_in(self._folder, file)
        if storage.is_url(name):
            sent = io.BytesIO()
            encode(block, specs, self.codec, rows, sent)
            size, crcs = sent.tell(), tuple(checksums(sent.getbuffer()))
            write_whole(name, sent.getbuffer())
            return Chunk(file, shard, block.size, rows, size, crcs)
        fits = self._fits(block.nbytes)
        cached = fits and not self._dear
        with whole_file(Path(name)) as part, DiskFile(part, cached=cached) as content:
            encode(block, specs, self.codec, rows, content)
            content.finish()
            if fits:
                content.keep()
        self._kept += content.size if fits else 0
        if cached:
            self._dear = _TRIED_AGAIN if content.copying > _DEAR * content.size else 0
        else:
            self._dear = max(self._dear - 1, 0)
        chunk = Chunk(file, shard, block.size, rows, content.size, tuple(content.crcs))
        if fits and not cached:
            self._look_at_earlier(name, chunk)
        return chunk

    def _look_at_earlier(self, name: str, chunk: Chunk) -> None:
        """Verify chunks that the system has read back.

        The next epoch then finds memory that the processor has used before.
        """
        self._read_back.append((name, chunk))
        if len(self._read_back) > _TIME_TO_READ:
            earlier, of = self._read_back.popleft()
            with suppress(OSError, PenstockError):  # the next reader raises the error
                of.check(storage.bytes_of(earlier).data, earlier)
                note_as_written(earlier, of.crcs)

    def _fits(self, nbytes: int) -> bool:
        """Return True if `nbytes` more bytes fit into the share of the free memory for this data set.

        They then stay in memory until the next epoch reads them.

        Further chunks are written past the cache, because a large entry would displace its own beginning and everything
        else.
        A copy into the system's cache saves reading from the disk. In virtual machines that return free memory to the
        host, new memory makes such a copy ten times as expensive. Then the chunk is read back from the disk instead.
        """
        found = [amount for amount in (machine_left(), memory_left()) if amount is not None]
        return bool(found) and self._kept + nbytes <= min(found) * KEPT
