"""Cover a rectangle of each image: with one value (cutout), or a random rectangle also with noise (erasing).

DeVries and Taylor, "Improved regularization with cutout", 2017; Zhong et al., "Random erasing data augmentation", 2017.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.errors import InvalidArgumentError
from penstock.image.augment.arguments import check_probability, check_range, placed, tried
from penstock.image.checks import check_fill, check_fills, check_image, check_sizes, numbers
from penstock.image.drawn import Keys, each, integers, stateless_key
from penstock.image.geometry.projective import one_for_each
from penstock.image.rules import image_op, random_image_op
from penstock.keys import draws, fold, uniform, units
from penstock.trace.drawing import element_key

__all__ = ["cutout", "random_cutout", "random_erasing", "stateless_random_cutout", "stateless_random_erasing"]


@image_op(one_for_each("offset", 1))
def cutout(
    images: npt.NDArray[Any],
    mask_size: int | Sequence[int],
    offset: npt.ArrayLike = (0, 0),
    constant_values: float = 0,
) -> npt.NDArray[Any]:
    """Cover a rectangle of an image (H, W, C), or of each of a batch (N, H, W, C), with one value.

    The rectangle has its centre at `offset`; what of it lies outside the image is cut off. It is TensorFlow Addons'
    cutout, and takes odd sizes too: their middle pixel lies at `offset`.

    Args:
        images: Any number type.
        mask_size: (height, width) of the rectangle, or one number for both, at least 0.
        offset: (row, column) of the centre; for a batch one for all, or one for each, (N, 2).
        constant_values: The value, which must fit the dtype.

    Returns:
        A new array.

    Raises:
        InvalidArgumentError: If the rank, the size, the offset or the value is invalid.

    Example:
        >>> cutout(np.ones((3, 4, 1), np.uint8), 2, (1, 1))[:, :, 0].tolist()
        [[0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 1, 1]]
    """
    array = check_image("cutout", images)
    return _covered("cutout", array, mask_size, offset, constant_values)


def _covered(op: str, images: npt.NDArray[Any], mask_size: Any, offset: Any, constant_values: Any) -> npt.NDArray[Any]:
    boxes = rectangles(op, images.shape, mask_size, offset)
    fill = check_fill(op, "constant_values", constant_values, images.dtype)
    found = np.array(images if images.ndim == 4 else images[None], order="C")
    for image, (top, left, height, width) in zip(found, boxes.tolist(), strict=True):
        image[max(top, 0) : max(top + height, 0), max(left, 0) : max(left + width, 0)] = fill
    return found if images.ndim == 4 else found[0]


def rectangles(op: str, shape: Sequence[int], mask_size: Any, offset: Any) -> npt.NDArray[np.int64]:
    """Return the rectangle to cover in each image of this shape: (top, left, height, width), (N, 4).

    It may lie outside.

    >>> rectangles("cutout", (3, 4, 1), 2, (0, 1)).tolist()
    [[-1, 0, 2, 2]]

    Raises:
        InvalidArgumentError: sizes or offsets that are not supported.
    """
    sizes = mask_size if numbers(mask_size).ndim else (mask_size, mask_size)
    size = check_sizes(op, "mask_size", sizes, 2, "height and width")
    count = shape[0] if len(shape) == 4 else 1
    centres = numbers(offset)
    if centres.dtype.kind not in "iu" or centres.shape not in ((2,), (count, 2)):
        wanted = "2 integers" if len(shape) == 3 else f"2 integers or an array of shape ({count}, 2)"
        raise InvalidArgumentError(f"{op}: offset must be {wanted} for images of shape {tuple(shape)}, got {offset!r}.")
    found = np.empty((count, 4), np.int64)
    found[:, :2] = centres.astype(np.int64) - np.array(size) // 2
    found[:, 2:] = size
    return found


def somewhere(op: str, key: Keys, shape: Sequence[int], **how: Any) -> dict[str, Any]:
    """Return a random centre of the rectangle for an image of this shape, or for each image of a batch."""
    count = 1 if len(shape) == 3 else shape[0]
    if 0 in shape[-3:-1]:
        raise InvalidArgumentError(f"{op}: an image needs at least one pixel, got shape {tuple(shape)}.")
    centres = integers(key, list(shape[-3:-1]) * count)
    return {"offset": centres if len(shape) == 3 else centres.reshape(*centres.shape[:-1], count, 2), **how}


@random_image_op(sample=partial(somewhere, "random_cutout"), becomes=partial(_covered, "random_cutout"))
def random_cutout(
    images: npt.NDArray[Any],
    mask_size: int | Sequence[int],
    constant_values: float = 0,
    seed: int | None = None,
) -> npt.NDArray[Any]:
    """Call `cutout` with a random centre, another one for each image of a batch (N, H, W, C).

    In a data set the result depends on its seed, the epoch and the element's number, see `element_key`.

    Args:
        images: Any number type.
        mask_size: (height, width) of the rectangle, or one number for both, at least 0.
        constant_values: The value, which must fit the dtype.
        seed: An integer. Equal seeds give equal results for the same element.

    Returns:
        A new array.

    Raises:
        InvalidArgumentError: If the rank, the size or the value is invalid.

    Example:
        >>> int(random_cutout(np.ones((32, 32, 3), np.uint8), 8).sum()) >= (32 * 32 - 8 * 8) * 3
        True
    """
    op = "random_cutout"
    array = check_image(op, images)
    how = {"mask_size": mask_size, "constant_values": constant_values}
    return _covered(op, array, **somewhere(op, element_key(seed), array.shape, **how))


def stateless_random_cutout(
    images: npt.NDArray[Any], mask_size: int | Sequence[int], seed: Any, constant_values: float = 0
) -> npt.NDArray[Any]:
    """Do the same as `random_cutout`, with random numbers that depend on `seed` only.

    Args:
        images: Any number type.
        mask_size: (height, width) of the rectangle, or one number for both, at least 0.
        seed: An integer or a pair of integers. The result depends on the seed and the arguments only.
        constant_values: The value, which must fit the dtype.

    Returns:
        A new array of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the rank or an argument is invalid.

    Example:
        >>> stateless_random_cutout(np.ones((1, 6, 1), np.uint8), 2, (1, 2)).ravel().tolist()
        [0, 0, 1, 1, 1, 1]
    """
    op = "stateless_random_cutout"
    array = check_image(op, images)
    how = {"mask_size": mask_size, "constant_values": constant_values}
    return _covered(op, array, **somewhere(op, stateless_key(op, seed), array.shape, **how))


PROBABILITY = 0.5
SCALE = (0.02, 0.33)
RATIO = (0.3, 3.3)
RANDOM = "random"


def erase(
    images: npt.NDArray[Any], box: npt.ArrayLike, value: Any, noise: npt.ArrayLike, op: str = "random_erasing"
) -> npt.NDArray[Any]:
    """Put `value` into the rectangle `box` = (top, left, height, width), or into one for each of a batch, (N, 4).

    The result is a new array. For the value "random" `noise` is the key to draw it from, or one for each of a batch.

    >>> erase(np.ones((2, 3, 1), np.uint8), (0, 1, 2, 1), 7, 0)[:, :, 0].tolist()
    [[1, 7, 1], [1, 7, 1]]
    """
    batch = images if images.ndim == 4 else images[None]
    boxes, keys = np.asarray(box).reshape(-1, 4).tolist(), np.asarray(noise).reshape(-1).tolist()
    fill = None if isinstance(value, str) else check_fills(op, "value", value, images.dtype, images.shape[-1])
    found = np.array(batch, order="C")
    for image, (top, left, height, width), key in zip(found, boxes, keys, strict=True):
        place = image[top : top + height, left : left + width]
        if place.size:
            place[...] = _drawn(key, place.shape, place.dtype) if fill is None else fill
    return found if images.ndim == 4 else found[0]


def _drawn(key: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return noise. Floats have mean 0 and variance 1 (Box and Muller 1958); integers are uniform from 0 on."""
    count = int(np.prod(shape))
    if dtype.kind == "f":
        pairs = units(key, 0, 2 * count)
        normal = np.sqrt(-2 * np.log1p(-pairs[0::2])) * np.cos(2 * np.pi * pairs[1::2])
        return normal.astype(dtype).reshape(shape)
    most = 1 if dtype.kind == "b" else min(int(np.iinfo(dtype).max), (1 << 32) - 2)
    return draws(key, 0, count, most + 1).astype(dtype).reshape(shape)


def some_box(
    op: str, key: Keys, shape: Sequence[int], *, probability: Any, scale: Any, ratio: Any, value: Any
) -> dict[str, Any]:
    """Return the random arguments of `erase` for an image of this shape, or for each image of a batch.

    A rectangle without area erases nothing.
    """
    share = check_probability(op, probability)
    areas, forms = check_range(op, "scale", scale, 0, 1), check_range(op, "ratio", ratio, 0)
    if not forms[0]:
        raise InvalidArgumentError(f"{op}: ratio must be (least, most), two numbers above 0; got {ratio!r}.")
    if isinstance(value, str) and value != RANDOM:
        raise InvalidArgumentError(f"{op}: value must be a number, one for each channel, or 'random'; got {value!r}.")
    height, width = shape[-3:-1]
    box = each(key, shape, lambda own: _box(own, height, width, share, areas, forms))
    noise = each(key, shape, lambda own: np.uint64(fold(own, 3)))
    return {"box": box, "value": value, "noise": noise}


def _box(
    key: int, height: int, width: int, probability: float, scale: tuple[float, float], ratio: tuple[float, float]
) -> list[int]:
    if uniform(fold(key, 2), 0, 1) < probability:
        for down, across in tried(key, height * width, scale, ratio):
            if down < height and across < width:
                return placed(key, (down, across), (height, width))
    return [0, 0, 0, 0]


@random_image_op(sample=partial(some_box, "random_erasing"), becomes=erase)
def random_erasing(
    image: npt.NDArray[Any],
    probability: float = PROBABILITY,
    scale: Sequence[float] = SCALE,
    ratio: Sequence[float] = RATIO,
    value: Any = 0,
    seed: int | None = None,
) -> npt.NDArray[Any]:
    """Erase a random rectangle of an image (H, W, C), or of each image of a batch, with a given probability.

    The area is uniform in `scale`, the logarithm of height / width uniform in that of `ratio`, the place uniform. What
    is not smaller than the image on both sides is chosen again; after ten attempts nothing is erased. Drawn as
    torchvision's RandomErasing does, which decides once for a whole batch. In a data set it follows from its seed, the
    epoch and the element's number, see `element_key`.

    Args:
        image: Any number type; a batch is (N, H, W, C).
        probability: Probability of erasing a rectangle, 0 to 1.
        scale: The least and the most of the image's area that is erased, 0 to 1.
        ratio: The least and the most of height / width, above 0.
        value: A number, one for each channel, or "random": noise from 0 to the largest value of an integer dtype, with
            mean 0 and variance 1 for floats.
        seed: An integer. Equal seeds give equal results for the same element.

    Returns:
        A new array.

    Raises:
        InvalidArgumentError: If the rank or an argument is invalid.
        InvalidTypeError: If the image is not an array of numbers.

    Example:
        >>> erased = random_erasing(np.ones((32, 32, 3), np.uint8), probability=1, scale=(0.25, 0.25), ratio=(1, 1))
        >>> int(erased.sum()) == (32 * 32 - 16 * 16) * 3
        True
    """
    array = check_image("random_erasing", image)
    how = {"probability": probability, "scale": scale, "ratio": ratio, "value": value}
    return erase(array, **some_box("random_erasing", element_key(seed), array.shape, **how))


def stateless_random_erasing(
    image: npt.NDArray[Any],
    seed: Any,
    probability: float = PROBABILITY,
    scale: Sequence[float] = SCALE,
    ratio: Sequence[float] = RATIO,
    value: Any = 0,
) -> npt.NDArray[Any]:
    """Do the same as `random_erasing`, with random numbers that depend on `seed` only.

    Args:
        image: Any number type; a batch is (N, H, W, C).
        seed: An integer or a pair of integers. The result depends on the seed and the arguments only.
        probability: Probability of erasing a rectangle, 0 to 1.
        scale: The least and the most of the image's area that is erased, 0 to 1.
        ratio: The least and the most of height / width, above 0.
        value: A number, one for each channel, or "random": noise from 0 to the largest value of an integer dtype, with
            mean 0 and variance 1 for floats.

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the rank or an argument is invalid.
        InvalidTypeError: If the image is not an array of numbers.

    Example:
        >>> image = np.ones((8, 8, 1), np.uint8)
        >>> np.array_equal(stateless_random_erasing(image, 3), stateless_random_erasing(image, 3))
        True
    """
    op = "stateless_random_erasing"
    array = check_image(op, image)
    how = {"probability": probability, "scale": scale, "ratio": ratio, "value": value}
    return erase(array, **some_box(op, stateless_key(op, seed), array.shape, **how), op=op)
