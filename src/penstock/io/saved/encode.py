"""Elements as the content of an Arrow IPC file."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.block.arrow import to_arrow
from penstock.block.block import Block
from penstock.block.spec import LeafSpec, TensorSpec
from penstock.io.saved.compression import AUTO

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
