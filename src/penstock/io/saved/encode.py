"""Elements as the content of an Arrow IPC file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.block.arrow import to_arrow
from penstock.block.block import Block
from penstock.block.spec import LeafSpec, TensorSpec
from penstock.io.saved.compression import AUTO

_BATCH = 1 << 20  # bytes of a record batch that is decompressed, or taken apart, as a whole
_WORTH = 0.9  # of the size, from which on AUTO does not compress


def decided(block: Block, specs: Sequence[LeafSpec], codec: str | None) -> str | None:
    """The codec, where AUTO becomes lz4 if that saves a tenth of the first megabyte or more, and else None.

    Raises InvalidTypeError for what cannot be stored.
    """
    if codec != AUTO:
        return codec
    rows = _batch_rows(block)
    first = block.slice(0, rows)
    plain, packed = (_size(first, specs, rows, name) for name in (None, "lz4"))
    return "lz4" if packed < _WORTH * plain else None


def batch_rows(block: Block, specs: Sequence[LeafSpec], codec: str | None) -> int:
    """Elements of a record batch.

    Without compression arrays of one shape and byte strings are read where they lie, so that all are in one.
    """
    whole = codec is None and all(isinstance(spec, TensorSpec) and spec.fixed for spec in specs)
    return block.size if whole else _batch_rows(block)


def _batch_rows(block: Block) -> int:
    return min(max(block.size * _BATCH // max(block.nbytes, 1), 1), block.size)


def encode(block: Block, specs: Sequence[LeafSpec], codec: str | None, rows: int, sink: Any) -> None:
    """Write the elements of a Block, which are of `specs`, to `sink`, a file of Python's kind or of pyarrow's.

    Record batches have so many `rows`. Raises InvalidTypeError for what cannot be stored.
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
