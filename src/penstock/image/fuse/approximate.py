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
from penstock.image.kernels.codes import LEFT_RIGHT, UP_DOWN
from penstock.image.kernels.recolour import recolour_in_place
from penstock.trace.graph import Allocate

RATIOS = (8, 4, 2)  # by which pictures are decoded smaller
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
    """Write JPEGs into `out`, resized and decoded no larger than needed; the rows that failed.

    The kernels take sequential ones, libjpeg progressive ones; a damaged file is decoded whole, as it is otherwise.
    """
    block = JpegBlock(files)
    ratios = np.array([enough(size, out.shape[1:3]) for size in block.shapes()[:, :2].tolist()], np.int64)
    mirrored = np.stack([np.where(flips & axis, np.int8(1), np.int8(0)) for axis in _AXES], axis=1)
    chosen = settings(program)
    plain = chosen["fancy_upscaling"] and chosen["dct_method"] != "INTEGER_ACCURATE"
    left = block.decode_approximately(out, ratios if plain else np.zeros_like(ratios), mirrored, **scale)
    failed: dict[int, PenstockError] = {}
    scaled = [row for row in left if ratios[row] > 1 and not is_sequential(files[row])]
    whole = [slice(row, row + 1) for row in left if row not in scaled]
    if len(whole) == len(files):
        whole = [slice(0, len(files))]
    sides = mirrored * np.int8(FLIPS.index("before"))
    for part in whole:
        flip: dict[str, Any] = {"flip_left_right": sides[part, 0], "flip_up_down": sides[part, 1]}
        found = block.part(part.start, part.stop).decode_resize(out[part], **flip, **scale, **chosen)
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
