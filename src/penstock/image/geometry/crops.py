"""Crop rectangles of images, at a given or random position, and pad images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.block.column import Column, DenseColumn
from penstock.block.spec import LeafSpec, TensorSpec
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.image.checks import check_fill, check_image, check_integer, check_sizes, numbers
from penstock.image.drawn import Keys, integers, stateless_key
from penstock.image.geometry.window import window_batch
from penstock.image.rules import image_op
from penstock.trace.drawing import element_key
from penstock.trace.graph import Allocate
from penstock.trace.lift import random_op, tensor, traceable

__all__ = ["central_crop", "crop_to_bounding_box", "pad", "pad_to_bounding_box", "random_crop"]
__all__ += ["resize_with_crop_or_pad", "stateless_random_crop"]


def _of_size(spec: LeafSpec, *, target_height: Any, target_width: Any, **_: Any) -> TensorSpec:
    known = tensor(spec)
    return TensorSpec((*known.shape[:-3], int(target_height), int(target_width), known.shape[-1]), known.dtype)


@image_op(_of_size)
def crop_to_bounding_box(
    image: npt.NDArray[Any], offset_height: int, offset_width: int, target_height: int, target_width: int
) -> npt.NDArray[Any]:
    """Crop a rectangle of an image (H, W, C), or of each image of a batch (N, H, W, C).

    Args:
        image: Any number type.
        offset_height: The first row, from 0.
        offset_width: The first column, from 0.
        target_height: Number of rows, at least 1.
        target_width: Number of columns, at least 1.

    Returns:
        A view of the image or batch.

    Raises:
        InvalidArgumentError: If the image has another rank, or if the rectangle is not inside the image.

    Example:
        >>> import numpy as np
        >>> crop_to_bounding_box(np.arange(9).reshape(3, 3, 1), 1, 0, 2, 2).ravel().tolist()
        [3, 4, 6, 7]
    """
    op = "crop_to_bounding_box"
    array = check_image(op, image)
    top, left = check_integer(op, "offset_height", offset_height), check_integer(op, "offset_width", offset_width)
    height = check_integer(op, "target_height", target_height, 1)
    width = check_integer(op, "target_width", target_width, 1)
    if top + height > array.shape[-3] or left + width > array.shape[-2]:
        message = (
            f"{op}: rows {top} to {top + height} and columns {left} to {left + width} "
            f"are not inside an image of shape {array.shape}."
        )
        raise InvalidArgumentError(message, hint="resize_with_crop_or_pad takes images of any size.")
    return array[..., top : top + height, left : left + width, :]


def _centre(size: int, fraction: float) -> tuple[int, int]:
    """Return the start and size of the centre, computed in float64 and rounded down, like tf.image."""
    start = int((float(size) - float(size) * fraction) / 2)
    return start, size - 2 * start


def _central(spec: LeafSpec, *, central_fraction: float) -> TensorSpec:
    known = tensor(spec)
    height, width = (None if side is None else _centre(side, float(central_fraction))[1] for side in known.shape[-3:-1])
    return TensorSpec((*known.shape[:-3], height, width, known.shape[-1]), known.dtype)


@image_op(_central)
def central_crop(image: npt.NDArray[Any], central_fraction: float) -> npt.NDArray[Any]:
    """Crop the centre of an image (H, W, C), or of each image of a batch (N, H, W, C).

    Of `size` rows or columns, `int((size - size * central_fraction) / 2)` are cut off on both sides.

    Args:
        image: Any number type.
        central_fraction: The share of each side that stays, above 0 and up to 1.

    Returns:
        A view of the image or batch.

    Raises:
        InvalidArgumentError: If the image has another rank, or if the fraction is out of range.

    Example:
        >>> import numpy as np
        >>> central_crop(np.zeros((10, 7, 3)), 0.5).shape
        (6, 5, 3)
    """
    array = check_image("central_crop", image)
    share = numbers(central_fraction)
    if share.ndim or share.dtype.kind not in "iuf" or not 0 < share <= 1:
        message = f"central_crop: central_fraction must be above 0 and at most 1, got {central_fraction!r}."
        raise InvalidArgumentError(message)
    top, height = _centre(array.shape[-3], float(central_fraction))
    left, width = _centre(array.shape[-2], float(central_fraction))
    return array[..., top : top + height, left : left + width, :]


def crop_at(value: npt.NDArray[Any], offset: npt.ArrayLike, size: Sequence[int]) -> npt.NDArray[Any]:
    """Return the part of an array that begins at `offset` and has `size`, with one number per axis, as a view.

    An array with one more leading axis is a batch. `offset` then has a row for each element, and the result is a new
    array.

    >>> crop_at(np.arange(9).reshape(3, 3), (1, 0), (1, 2)).tolist()
    [[3, 4]]
    >>> crop_at(np.arange(6).reshape(2, 3), [[1], [0]], (2,)).tolist()
    [[1, 2], [3, 4]]
    """
    starts = np.asarray(offset, np.int64)
    if starts.ndim == 1:
        return value[tuple(slice(start, start + extent) for start, extent in zip(starts, size, strict=True))]
    if len(size) == 3 and size[2] == value.shape[3]:
        return window_batch(value, (size[0], size[1]), top=starts[:, 0], left=starts[:, 1])
    found = np.empty((len(value), *size), value.dtype)
    for i, start in enumerate(starts):
        found[i] = crop_at(value[i], start, size)
    return found


def somewhere(op: str, key: Keys, shape: Sequence[int], *, size: Any) -> dict[str, Any]:
    """Return the random start of a part of `size` in an array of this shape. All positions are equally likely."""
    extents = check_sizes(op, "size", size, len(shape), f"one for each axis of shape {tuple(shape)}")
    if any(extent > known for extent, known in zip(extents, shape, strict=True)):
        message = f"{op}: a part of size {list(extents)} does not fit into an array of shape {tuple(shape)}."
        raise InvalidArgumentError(message, hint="Pad or resize it first.")
    return {
        "offset": integers(key, [known - extent + 1 for known, extent in zip(shape, extents, strict=True)]),
        "size": extents,
    }


def _cropped_somewhere(spec: LeafSpec, *, size: Any) -> TensorSpec:
    known = tensor(spec)
    return TensorSpec(check_sizes("random_crop", "size", size, len(known.shape), "one for each axis"), known.dtype)


@random_op(
    "image.random_crop",
    _cropped_somewhere,
    sample=partial(somewhere, "random_crop"),
    becomes=crop_at,
    batches=lambda rank: True,
)
def random_crop(value: npt.NDArray[Any], size: Sequence[int], seed: int | None = None) -> npt.NDArray[Any]:
    """Crop a random part of a given size of an array of any rank.

    The place is one for a whole batch. In a data set it follows from its seed, the epoch and the element's number, see
    `element_key`.

    Args:
        value: Any dtype.
        size: One number for each axis, at most that of the array; an axis that is to stay has its own.
        seed: An integer. Equal seeds give equal results for the same element.

    Returns:
        A view of the array, of shape `size`.

    Raises:
        InvalidArgumentError: If the size has another rank or is larger than the array.

    Example:
        >>> random_crop(np.arange(100).reshape(10, 10, 1), (2, 3, 1), seed=5)[:, :, 0].tolist()
        [[36, 37, 38], [46, 47, 48]]
    """
    array = numbers(value)
    return crop_at(array, **somewhere("random_crop", element_key(seed), array.shape, size=size))


def stateless_random_crop(value: npt.NDArray[Any], size: Sequence[int], seed: Any) -> npt.NDArray[Any]:
    """Do the same as `random_crop`, with random numbers that depend on `seed` only.

    Args:
        value: Any dtype.
        size: One number for each axis, at most that of the array; an axis that is to stay has its own.
        seed: An integer or a pair of integers. The result depends on the seed and the arguments only.

    Returns:
        A view of the array, of shape `size`.

    Raises:
        InvalidArgumentError: If the size has another rank or is larger than the array, or if the seed is invalid.

    Example:
        >>> stateless_random_crop(np.arange(5), [2], seed=(1, 2)).tolist()
        [3, 4]
    """
    op = "stateless_random_crop"
    array = numbers(value)
    return crop_at(array, **somewhere(op, stateless_key(op, seed), array.shape, size=size))


MODES = ("CONSTANT", "REFLECT", "SYMMETRIC")

Pairs = tuple[tuple[int, int], ...]


def _pad_rule(spec: LeafSpec, *, paddings: Any, mode: Any, **_: Any) -> TensorSpec:
    known = tensor(spec)
    pairs, _name = check_paddings(len(known.shape), paddings, mode)
    shape = [None if size is None else size + sum(pair) for size, pair in zip(known.shape, pairs, strict=True)]
    return TensorSpec(shape, known.dtype)


def _pad_block(
    column: Column, params: Mapping[str, Any], rows: int, allocate: Allocate | None
) -> Sequence[Column] | None:
    """Pad all elements at once, into the memory of the batch if it is known. The paddings are those of one element."""
    if not isinstance(column, DenseColumn):
        return None
    array = column.array
    pairs, mode = check_paddings(array.ndim - 1, params["paddings"], params["mode"])
    shape = tuple(size + sum(pair) for size, pair in zip(array.shape[1:], pairs, strict=True))
    place = None if allocate is None else allocate(shape, array.dtype)
    return [DenseColumn(_padded(array, pairs, mode, params["constant_values"], place))]


@traceable("image.pad", _pad_rule, block=_pad_block)
def pad(x: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0) -> npt.NDArray[Any]:
    """Pad an array of any rank, as tf.pad does.

    "CONSTANT" puts `constant_values`; "REFLECT" mirrors at the outermost value, which is not repeated; "SYMMETRIC"
    mirrors beside it, so that it is.

    Args:
        x: Numbers or booleans, any rank.
        paddings: For each axis how many values come before and after, shape (rank, 2).
        mode: "CONSTANT", "REFLECT" or "SYMMETRIC", in capitals or not.
        constant_values: One value, which must fit the dtype.

    Returns:
        A new array of the same dtype.

    Raises:
        InvalidArgumentError: If the paddings have another shape or are negative, if the mode is unknown, if the
            constant does not fit the dtype, or if an axis is too short to be mirrored.
        InvalidTypeError: If the value is not an array of numbers.

    Example:
        >>> row = np.array([1, 2, 3], np.uint8)
        >>> [pad(row, [[2, 1]], mode).tolist() for mode in ("CONSTANT", "REFLECT", "SYMMETRIC")]
        [[0, 0, 1, 2, 3, 0], [3, 2, 1, 2, 3, 2], [2, 1, 1, 2, 3, 3]]
    """
    array = numbers(x)
    return _padded(array, *check_paddings(array.ndim, paddings, mode), constant_values)


def check_paddings(rank: int, paddings: Any, mode: Any) -> tuple[Pairs, str]:
    """Return the paddings of an array of this rank as integers, and the mode in capitals.

    >>> check_paddings(1, [[2, 1]], "reflect")
    (((2, 1),), 'REFLECT')

    Raises:
        InvalidArgumentError: paddings of another shape or below 0, or an unknown mode.
    """
    values = numbers(paddings)
    if not rank and not values.size:
        values = np.zeros((0, 2), np.int64)
    if values.shape != (rank, 2) or values.dtype.kind not in "iu" or (values < 0).any():
        message = f"pad: paddings must be (before, after) for each of {rank} axes, none below 0; got {paddings!r}."
        hint = "Axes that stay as they are have [0, 0]." if values.ndim == 2 and len(values) != rank else None
        raise InvalidArgumentError(message, hint=hint)
    name = mode.upper() if isinstance(mode, str) else mode
    if name not in MODES:
        raise InvalidArgumentError(f"pad: mode must be one of {', '.join(map(repr, MODES))}; got {mode!r}.")
    return tuple((int(before), int(after)) for before, after in values), name


def _padded(
    x: npt.NDArray[Any], pairs: Pairs, mode: str, constant: Any, out: npt.NDArray[Any] | None = None
) -> npt.NDArray[Any]:
    """Return `x` with its last `len(pairs)` axes padded, written into `out` if there is one."""
    if x.dtype.kind not in "biuf":
        raise InvalidTypeError(f"pad needs an array of numbers, got {x.dtype}.")
    first = x.ndim - len(pairs)
    sizes = x.shape[first:]
    check_mirrors(sizes, pairs, mode)
    shape = tuple(before + size + after for size, (before, after) in zip(sizes, pairs, strict=True))
    found = np.empty((*x.shape[:first], *shape), x.dtype) if out is None else out
    value = check_fill("pad", "constant_values", constant, x.dtype) if mode == "CONSTANT" else None
    region = [
        *([slice(None)] * first),
        *(slice(before, before + size) for size, (before, _) in zip(sizes, pairs, strict=True)),
    ]
    found[tuple(region)] = x
    for axis, (size, (before, after)) in enumerate(zip(sizes, pairs, strict=True)):
        end = before + size
        edge = 0 if mode == "SYMMETRIC" else 1
        _put(found, region, first + axis, slice(0, before), slice(before + edge, before + edge + before), value)
        _put(found, region, first + axis, slice(end, end + after), slice(end - edge - after, end - edge), value)
        region[first + axis] = slice(None)  # the next axis also mirrors the padding of this axis
    return found


def check_mirrors(sizes: Sequence[int], pairs: Pairs, mode: str) -> None:
    """Refuse axes that are too short to be mirrored.

    >>> check_mirrors((3,), ((3, 0),), "SYMMETRIC")

    Raises:
        InvalidArgumentError: an axis has fewer values than are to be put beside it.
    """
    for axis, (size, pair) in enumerate(zip(sizes, pairs, strict=True)):
        most = {"REFLECT": size - 1, "SYMMETRIC": size}.get(mode, max(pair))
        if max(pair) > max(most, 0):
            message = f"pad: {mode} gives at most {max(most, 0)} values beside the {size} of axis {axis}, got {pair}."
            raise InvalidArgumentError(message)


def _put(
    found: npt.NDArray[Any], region: Sequence[slice], axis: int, place: slice, mirrored: slice, value: Any
) -> None:
    """Fill `place` on one axis of a region, with a value, or with the reversed values of `mirrored`."""
    if place.start == place.stop:
        return
    to = (*region[:axis], place, *region[axis + 1 :])
    if value is not None:
        found[to] = value
    else:
        of = found[(*region[:axis], mirrored, *region[axis + 1 :])]
        found[to] = np.flip(of, axis)


@image_op(_of_size)
def pad_to_bounding_box(
    image: npt.NDArray[Any], offset_height: int, offset_width: int, target_height: int, target_width: int
) -> npt.NDArray[Any]:
    """Pad an image (H, W, C), or each image of a batch (N, H, W, C), with zeros to a given size.

    Args:
        image: Any number type.
        offset_height: Number of rows of zeros above the image.
        offset_width: Number of columns of zeros left of the image.
        target_height: The height of the result, at least that of image and offset.
        target_width: The width of the result, likewise.

    Returns:
        An image or batch of the same dtype and the given size.

    Raises:
        InvalidArgumentError: If the image has another rank, or does not fit into the box.

    Example:
        >>> pad_to_bounding_box(np.ones((1, 1, 1), np.uint8), 0, 1, 2, 2)[:, :, 0].tolist()
        [[0, 1], [0, 0]]
    """
    op = "pad_to_bounding_box"
    array = check_image(op, image)
    top, left = check_integer(op, "offset_height", offset_height), check_integer(op, "offset_width", offset_width)
    height, width = check_integer(op, "target_height", target_height), check_integer(op, "target_width", target_width)
    below, right = height - top - array.shape[-3], width - left - array.shape[-2]
    if below < 0 or right < 0:
        message = (
            f"{op}: an image of shape {array.shape} at row {top} and column {left} is not inside {height} x {width}."
        )
        raise InvalidArgumentError(message, hint="resize_with_crop_or_pad takes images of any size.")
    return _padded(array, ((top, below), (left, right), (0, 0)), "CONSTANT", 0)


@image_op(_of_size)
def resize_with_crop_or_pad(image: npt.NDArray[Any], target_height: int, target_width: int) -> npt.NDArray[Any]:
    """Crop an image (H, W, C), or each image of a batch (N, H, W, C), or pad it with zeros, to a given size.

    Both at the centre; of an odd difference the larger half is below or right. Where there is nothing to add, the
    result is a view.

    Args:
        image: Any number type.
        target_height: The height of the result, at least 1.
        target_width: The width of the result, at least 1.

    Returns:
        An image or batch of the same dtype and the given size.

    Raises:
        InvalidArgumentError: If the image has another rank, or if the size is invalid.

    Example:
        >>> resize_with_crop_or_pad(np.full((1, 4, 1), 7, np.uint8), 2, 2)[:, :, 0].tolist()
        [[7, 7], [0, 0]]
    """
    op = "resize_with_crop_or_pad"
    array = check_image(op, image)
    height, width = (
        check_integer(op, "target_height", target_height, 1),
        check_integer(op, "target_width", target_width, 1),
    )
    more, wider = height - array.shape[-3], width - array.shape[-2]
    if more < 0 or wider < 0:
        array = array[..., max(-more // 2, 0) :, max(-wider // 2, 0) :, :][..., :height, :width, :]
    if more <= 0 and wider <= 0:
        return array
    top, left = max(more // 2, 0), max(wider // 2, 0)
    return _padded(array, ((top, max(more, 0) - top), (left, max(wider, 0) - left), (0, 0)), "CONSTANT", 0)
