"""decode_column: `decode_jpeg` for all files of a Block at once, where they are pictures of one size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from penstock.block.arena import ARENA
from penstock.block.column import BytesColumn, Column, DenseColumn
from penstock.errors import Context, annotate
from penstock.image.jpeg_block import JpegBlock
from penstock.trace.graph import Allocate


def decode_column(
    column: Any, params: Mapping[str, Any], rows: int, allocate: Allocate | None
) -> Sequence[Column] | None:
    """The pictures as one array; None if they differ in size, or if the parameters ask for more than the kernels do.

    Raises:
        PenstockError: what `decode_jpeg` says of the first file that cannot be decoded.
    """
    plain = params["ratio"] == 1 and not params["try_recover_truncated"] and params["acceptable_fraction"] == 1
    if not plain or params["channels"] not in (0, 1, 3) or rows == 0:
        return None
    if not isinstance(column, BytesColumn) or column.starts.ndim != 1:
        return None
    block = JpegBlock.within(column.buffers, column.starts, column.lengths, column.which)
    settings = {"fancy_upscaling": params["fancy_upscaling"], "dct_method": params["dct_method"]}
    shapes = block.shapes()
    if not block.taken(**settings).all() or (shapes != shapes[0]).any():
        return None
    height, width, stored = shapes[0].tolist()
    shape = (height, width, params["channels"] or stored)
    place = None if allocate is None else allocate(shape, np.uint8)
    out = ARENA.empty((rows, *shape), np.uint8) if place is None else place
    for row, error in sorted(block.decode(out, **settings).items()):
        annotate(error, Context(element=row))
        raise error
    return [DenseColumn(out)]
