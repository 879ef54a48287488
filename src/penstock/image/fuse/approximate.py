"""A chain that may be approximate: a scaled decode where that is enough, the resize, and then the colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.block.column import Column, DenseColumn
from penstock.errors import PenstockError
from penstock.image.fuse.inputs import (
    are_rgb,
    arrays,
    contents,
    memory,
    one_by_one,
    raise_first,
    scratch,
    settings,
    speed,
)
from penstock.image.fuse.program import Program
from penstock.image.fuse.rows import per_image
from penstock.image.jpeg import decode_into
from penstock.image.jpeg_block import FLIPS, JpegBlock
from penstock.image.kernels.bilinear import resize_bilinear_into
from penstock.image.kernels.chain import LEFT_RIGHT, UP_DOWN
from penstock.image.kernels.recolour import recolour_in_place
from penstock.trace.graph import Allocate

RATIOS = (8, 4, 2)  # by which libjpeg decodes smaller pictures
_AXES = (LEFT_RIGHT, UP_DOWN)


def run_approximately(
    operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None
) -> list[Column]:
    """The results of a program with colours; `recolour` tells how they differ."""
    program, column = params["program"], operands[0]
    if program.decode is None and not are_rgb(column):
        return one_by_one(params["steps"], operands, rows)
    numbers = per_image(program, operands[1:], rows)
    flips = numbers.before ^ numbers.after  # on either side of a resize they differ in the last bit only
    out = memory(program, 3, rows, allocate)
    resized = out if out.dtype == np.float32 else np.empty(out.shape, np.float32)
    if program.decode is not None:
        raise_first(decode_scaled(contents(column), resized, flips, program, {}))
    else:
        at = 0
        for batch in arrays(column):
            for image in batch:
                resize_bilinear_into(image, resized[at], **_names(flips[at]))
                at += 1
    last = program.last
    if program.scaling is not None:
        code, number = program.scaling
        last = ((code, (number, number, number)), *last)
    recolour_in_place(resized, [step.code for step in program.colours], numbers.args, last)
    if out is not resized:
        out[...] = resized
    return [DenseColumn(out)]


def decode_scaled(
    files: Sequence[memoryview],
    out: npt.NDArray[Any],
    flips: npt.NDArray[np.int64],
    program: Program,
    scale: Mapping[str, Any],
) -> dict[int, PenstockError]:
    """Write JPEGs into `out`, resized, progressive ones decoded no larger than needed; the rows that failed.

    The kernels take a sequential JPEG at its full size in less time than libjpeg a quarter of it.
    """
    sizes = JpegBlock(files).shapes()[:, :2].tolist()
    largest = [enough(size, out.shape[1:3]) for size in sizes]
    ratios = [1 if is_sequential(file) else ratio for file, ratio in zip(files, largest, strict=True)]
    sides = [np.where(flips & axis, np.int8(FLIPS.index("before")), np.int8(0)) for axis in _AXES]
    scaled = [row for row, ratio in enumerate(ratios) if ratio > 1]
    whole = [slice(0, len(files))] if not scaled else [slice(r, r + 1) for r, ratio in enumerate(ratios) if ratio == 1]
    failed: dict[int, PenstockError] = {}
    for part in whole:
        left_right, up_down = (side[part] for side in sides)
        found = JpegBlock(files[part]).decode_resize(
            out[part], flip_left_right=left_right, flip_up_down=up_down, **scale, **settings(program)
        )
        failed.update({part.start + row: error for row, error in found.items()})
    for row in scaled:
        try:
            image = decode_into(files[row], scratch().of, out.shape[3], ratios[row], **speed(program))
        except PenstockError as error:
            failed[row] = error
        else:
            resize_bilinear_into(image, out[row], **scale, **_names(flips[row]))
    return failed


def is_sequential(file: memoryview) -> bool:
    """Whether a JPEG is coded in one go and not as a progression of refinements.

    >>> [is_sequential(memoryview(bytes.fromhex(f"ffd8 {marker} 0011"))) for marker in ("ffc0", "ffc2")]
    [True, False]
    """
    at = 2
    while at + 4 <= len(file) and file[at] == 0xFF:
        marker = file[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return marker <= 0xC1
        at += 2 + int.from_bytes(file[at + 2 : at + 4], "big")
    return False


def enough(shape: Sequence[int], size: Sequence[int]) -> int:
    """The largest ratio at which a picture decoded smaller is at least as large as `size`; 1 if none is.

    >>> enough((1200, 1600), (224, 224)), enough((375, 500), (224, 224))
    (4, 1)
    """
    fits = (r for r in RATIOS if -(-shape[0] // r) >= size[0] and -(-shape[1] // r) >= size[1])
    return next(fits, 1)


def _names(flip: Any) -> dict[str, Any]:
    return {
        "flip_left_right": "before" if flip & LEFT_RIGHT else "",
        "flip_up_down": "before" if flip & UP_DOWN else "",
    }
