"""Elements as the content of an Arrow IPC file, and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.block.arrow import from_arrow, to_arrow
from penstock.block.block import Block
from penstock.block.column import BytesColumn
from penstock.block.spec import LeafSpec, TensorSpec
from penstock.block.structure import Structure
from penstock.errors import DataLossError
from penstock.io import storage
from penstock.io.saved.compression import AUTO
from penstock.io.saved.manifest import Chunk

_REMEDY = "Save the data set again; a snapshot is written again once its folder is deleted."
_BATCH = 1 << 20  # bytes of a record batch that is decompressed, or taken apart, as a whole
_WORTH = 0.9  # of the size, from which on AUTO does not compress


def encode_chunk(block: Block, specs: Sequence[LeafSpec], codec: str | None) -> tuple[memoryview, int, str | None]:
    """(content, elements of a record batch, codec) of a file that holds the elements of a Block, which are of `specs`.

    AUTO becomes lz4 where that saves a tenth of the first megabyte or more, and else None. Without compression arrays
    of one shape and byte strings are read where they lie, so that all are in one record batch. Raises InvalidTypeError
    for what cannot be stored.
    """
    if codec == AUTO:
        rows = _batch_rows(block)
        first = block.slice(0, rows)
        plain, packed = (len(_content(first, specs, rows, name)) for name in (None, "lz4"))
        codec = "lz4" if packed < _WORTH * plain else None
    whole = codec is None and all(isinstance(spec, TensorSpec) and None not in spec.shape for spec in specs)
    rows = block.size if whole else _batch_rows(block)
    return _content(block, specs, rows, codec), rows, codec


def _batch_rows(block: Block) -> int:
    return min(max(block.size * _BATCH // max(block.nbytes, 1), 1), block.size)


def _content(block: Block, specs: Sequence[LeafSpec], rows: int, codec: str | None) -> memoryview:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    writer = None
    for start in range(0, block.size, rows):
        batch = to_arrow(block.slice(start, start + rows), specs)
        if writer is None:
            writer = pa.ipc.new_file(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression=codec))
        writer.write_batch(batch)
    assert writer is not None
    writer.close()
    return memoryview(sink.getvalue())


class ChunkFile:
    """An open chunk, whose checksum was right when it was opened.

    Raises DataLossError, when it is made, for a file that is not what was written, and NotFoundError for none.
    """

    def __init__(self, name: str, chunk: Chunk) -> None:
        import crc32c
        import pyarrow as pa

        self._name = name
        self._content = _whole(name)
        if len(self._content) != chunk.bytes:
            message = f"The file is damaged: it has {len(self._content)} bytes, and {chunk.bytes} were written."
            raise DataLossError(message, hint=_REMEDY, file=name)
        if crc32c.crc32c(self._content.data) != chunk.crc32c:
            message = "The file is damaged: its checksum is not that of what was written."
            raise DataLossError(message, hint=_REMEDY, file=name)
        self._reader = pa.ipc.open_file(pa.py_buffer(self._content))

    def block(self, number: int, structure: Structure) -> Block:
        """The elements of a record batch."""
        return from_arrow(self._reader.get_batch(number), structure=structure)

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


def _whole(name: str) -> np.ndarray:
    if not storage.is_url(name):
        return storage.map_file(name)
    with storage.open_read(name) as file:
        return np.frombuffer(file.read(), np.uint8)
