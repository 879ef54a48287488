"""Helpers of the primitives of chains: inputs as images or files, memory for results, errors by row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.block.arena import ARENA
from penstock.block.column import BytesColumn, Column, DenseColumn
from penstock.errors import Context, PenstockError, annotate
from penstock.image.checks import format_of
from penstock.image.fuse.chain import Images
from penstock.image.fuse.program import Program
from penstock.image.jpeg.block import JpegBlock
from penstock.image.jpeg.libjpeg import Scratch, ThreadScratch
from penstock.image.jpeg.places import Windows
from penstock.trace.graph import Allocate, Equation, Keys, NotTraceable, Ref

AT_ONCE = 1 << 23  # bytes of decoded pixels that a thread stores at a time


def are_rgb(column: Column) -> bool:
    """Return True if the column has uint8 images with three channels, none of them empty."""
    some = [column.array[:1]] if isinstance(column, DenseColumn) else column.values()
    return all(a.dtype == np.uint8 and a.ndim >= 3 and a.shape[-1] == 3 and a.size for a in some)


def arrays(column: Column) -> Iterator[npt.NDArray[np.uint8]]:
    """Yield images as arrays (N, H, W, 3), in order."""
    if isinstance(column, DenseColumn):
        yield column.array
    else:
        for value in column.values():
            yield value[None]


def files(column: Any) -> JpegBlock:
    """Return the files of a column of byte strings."""
    if not isinstance(column, BytesColumn) or column.starts.ndim != 1:
        raise NotTraceable("decode_jpeg reads byte strings")
    return JpegBlock.within(column.buffers, column.starts, column.lengths, column.which)


def decoded(whole: JpegBlock, program: Program, windows: Windows) -> Iterator[Images]:
    """Yield decoded JPEGs, or parts of them, several at a time. Their memory is reused for the next ones."""
    sizes = whole.shapes()[:, :2] if windows is None else windows[:, 2:]
    ends = np.cumsum(sizes.prod(axis=1) * 3)
    start = 0
    while start < len(whole):
        before = ends[start - 1] if start else 0
        stop = max(int(np.searchsorted(ends, before + AT_ONCE, side="right")), start + 1)
        how: dict[str, Any] = {"windows": None if windows is None else windows[start:stop], **settings(program)}
        packed = whole.part(start, stop).decode_packed(3, memory=scratch().of, **how)
        raise_first(packed.failed, start)
        heights, widths = packed.shapes[:, 0].copy(), packed.shapes[:, 1].copy()
        yield Images(packed.pixels, packed.starts, heights, widths)
        start = stop


def settings(program: Program) -> dict[str, Any]:
    """Return the decoding options of a program."""
    assert program.decode is not None
    return {key: program.decode[key] for key in ("fancy_upscaling", "dct_method")}


def raise_first(failed: Mapping[int, PenstockError], start: int = 0) -> None:
    """Raise the error of the first row that failed, with its row number. Rows count from `start`."""
    for row in sorted(failed)[:1]:
        annotate(failed[row], Context(element=start + row))
        raise failed[row]


def memory(
    program: Program, channels: int, rows: int, allocate: Allocate | None, batch: int | None = None
) -> npt.NDArray[Any]:
    """Return memory for the results, from the caller if possible. An element is an image or a batch of images."""
    assert program.size is not None
    of_image = (channels, *program.size) if program.planes else (*program.size, channels)
    shape = of_image if batch is None else (batch, *of_image)
    dtype = np.uint8 if program.to_uint8 else np.float32
    place = None if allocate is None else allocate(shape, dtype)
    return ARENA.empty((rows, *shape), dtype) if place is None else place


def are_jpegs(column: Any) -> bool:
    """Return True if the column has files, and all of them are JPEGs."""
    plain = isinstance(column, BytesColumn) and column.starts.ndim == 1
    return plain and all(format_of(file) == "JPEG" for file in column.views())


def one_by_one(steps: Sequence[Equation], operands: Sequence[Any], rows: int) -> list[Column]:
    """Run the equations of the chain one by one. This is used without the kernel, and for unsupported images."""
    column = operands[0]
    keys = iter(operands[1:])
    for step in steps:
        values = [
            column if isinstance(operand, Ref) else next(keys) if isinstance(operand, Keys) else operand
            for operand in step.operands
        ]
        column = step.primitive.run(values, step.params, rows, None)[0]
    return [column]


def scratch() -> Scratch:
    """Return the thread's memory for decoded images. It is not the decoder's own memory."""
    return _mine.scratch


_mine = ThreadScratch()
