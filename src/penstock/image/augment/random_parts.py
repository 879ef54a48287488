"""Random parts of images, with random area and aspect ratio.

random_resized_crop resizes a part to a given size. sample_distorted_bounding_box finds a part that shows enough of an
object.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.block.spec import LeafSpec, TensorSpec
from penstock.errors import InvalidArgumentError
from penstock.image import rules
from penstock.image.augment.arguments import check_range, placed, tried
from penstock.image.checks import check_image, check_integer, check_sizes, numbers
from penstock.image.colour.arguments import check_number
from penstock.image.drawn import Keys, each, stateless_key
from penstock.image.resizing.resize import check_resize, resize
from penstock.image.rules import random_image_op
from penstock.keys import draw, fold, uniform
from penstock.trace.drawing import element_key
from penstock.trace.lift import of_nature, tensor

__all__ = ["random_resized_crop", "sample_distorted_bounding_box", "stateless_random_resized_crop"]
__all__ += ["stateless_sample_distorted_bounding_box"]

SCALE = (0.08, 1.0)
RATIO = (3 / 4, 4 / 3)


def resize_box(
    images: npt.NDArray[Any], box: npt.ArrayLike, size: Sequence[int], method: str, antialias: bool
) -> npt.NDArray[Any]:
    """Resize the rectangle `box` = (top, left, height, width), or a rectangle for each image of a batch, (N, 4).

    >>> resize_box(np.arange(9.0).reshape(3, 3, 1), (1, 0, 2, 2), (1, 1), "bilinear", False).ravel().tolist()
    [5.0]
    """
    boxes = np.asarray(box)
    if images.ndim == 3:
        top, left, height, width = boxes.tolist()
        return resize(images[top : top + height, left : left + width], size, method, antialias=antialias)
    dtype = images.dtype if method == "nearest" else np.float32
    found = np.empty((len(images), *size, images.shape[-1]), dtype)
    for i, image in enumerate(images):
        found[i] = resize_box(image, boxes[i], size, method, antialias)
    return found


def some_box(
    op: str, key: Keys, shape: Sequence[int], *, size: Any, scale: Any, ratio: Any, method: str, antialias: bool
) -> dict[str, Any]:
    """Return the random part of an image of this shape, or of each image of a batch."""
    areas, forms = _checked_ranges(op, scale, ratio)
    wanted = check_resize(size, method, op)
    if 0 in shape[-3:]:
        message = f"{op}: an image needs at least one pixel and one channel, got shape {tuple(shape)}."
        raise InvalidArgumentError(message)
    height, width = shape[-3:-1]
    box = each(key, shape, lambda own: _box(own, height, width, areas, forms))
    return {"box": box, "size": wanted, "method": method, "antialias": antialias}


def _checked_ranges(op: str, scale: Any, ratio: Any) -> tuple[tuple[float, float], tuple[float, float]]:
    areas, forms = check_range(op, "scale", scale, 0), check_range(op, "ratio", ratio, 0)
    for name, pair, given in (("scale", areas, scale), ("ratio", forms, ratio)):
        if not pair[0]:
            raise InvalidArgumentError(f"{op}: {name} must be (least, most), two numbers above 0; got {given!r}.")
    return areas, forms


def _box(key: int, height: int, width: int, scale: tuple[float, float], ratio: tuple[float, float]) -> list[int]:
    for across, down in tried(key, height * width, scale, ratio):
        if 0 < across <= width and 0 < down <= height:
            return placed(key, (down, across), (height, width))
    down, across = height, width
    if width / height < ratio[0]:
        down = min(max(round(width / ratio[0]), 1), height)
    elif width / height > ratio[1]:
        across = min(max(round(height * ratio[1]), 1), width)
    return [(height - down) // 2, (width - across) // 2, down, across]


def _rule(spec: LeafSpec, *, size: Any, scale: Any, ratio: Any, method: str, antialias: bool) -> TensorSpec:
    known = tensor(spec)
    height, width = check_resize(size, method, "random_resized_crop")
    dtype = known.dtype if method == "nearest" else np.float32
    return TensorSpec((*known.shape[:-3], height, width, known.shape[-1]), dtype)


@of_nature(rules.COSTLY)
@random_image_op(rule=_rule, sample=partial(some_box, "random_resized_crop"), becomes=resize_box, fresh=True)
def random_resized_crop(
    image: npt.NDArray[Any],
    size: Sequence[int],
    scale: Sequence[float] = SCALE,
    ratio: Sequence[float] = RATIO,
    method: str = "bilinear",
    antialias: bool = False,
    seed: int | None = None,
) -> npt.NDArray[Any]:
    """Crop a random part of an image (H, W, C), or of each image of a batch, and resize it.

    The area is uniform in `scale`, the logarithm of width / height uniform in that of `ratio`, the place uniform. What
    does not fit is chosen again; after ten attempts it is the largest part at the centre with a form in `ratio`. This
    is the crop of "Going deeper with convolutions" (Szegedy et al. 2014), drawn as torchvision's RandomResizedCrop
    does. In a data set the result depends on its seed, the epoch and the element's number, see `element_key`.

    Args:
        image: Any number type; a batch is (N, H, W, C).
        size: (height, width) of the result, in pixels.
        scale: The least and the most of the image's area that is cut out, above 0.
        ratio: The least and the most of width / height, above 0.
        method: As in `resize`.
        antialias: As in `resize`; slower, and better for parts that are much larger than `size`.
        seed: An integer. Equal seeds give equal results for the same element.

    Returns:
        float32 in the range of the image; with "nearest" the image's dtype.

    Raises:
        InvalidArgumentError: If the rank or an argument is invalid.
        InvalidTypeError: If the image is not an array of numbers.

    Example:
        >>> image = np.zeros((375, 500, 3), np.uint8)
        >>> random_resized_crop(image, (224, 224)).shape
        (224, 224, 3)
    """
    op = "random_resized_crop"
    array = check_image(op, image)
    how: dict[str, Any] = {"size": size, "scale": scale, "ratio": ratio, "method": method, "antialias": antialias}
    return resize_box(array, **some_box(op, element_key(seed), array.shape, **how))


@of_nature(rules.COSTLY)
def stateless_random_resized_crop(
    image: npt.NDArray[Any],
    size: Sequence[int],
    seed: Any,
    scale: Sequence[float] = SCALE,
    ratio: Sequence[float] = RATIO,
    method: str = "bilinear",
    antialias: bool = False,
) -> npt.NDArray[Any]:
    """Do the same as `random_resized_crop`, with random numbers that depend on `seed` only.

    Args:
        image: Any number type; a batch is (N, H, W, C).
        size: (height, width) of the result, in pixels.
        seed: An integer or a pair of integers. The result depends on the seed and the arguments only.
        scale: The least and the most of the image's area that is cut out, above 0.
        ratio: The least and the most of width / height, above 0.
        method: As in `resize`.
        antialias: As in `resize`; slower, and better for parts that are much larger than `size`.

    Returns:
        As `random_resized_crop`.

    Raises:
        InvalidArgumentError: If the rank or an argument is invalid.
        InvalidTypeError: If the image is not an array of numbers.

    Example:
        >>> image = np.arange(100.0).reshape(10, 10, 1)
        >>> first, again = (stateless_random_resized_crop(image, (4, 4), (1, 2)) for _ in range(2))
        >>> np.array_equal(first, again)
        True
    """
    op = "stateless_random_resized_crop"
    array = check_image(op, image)
    how: dict[str, Any] = {"size": size, "scale": scale, "ratio": ratio, "method": method, "antialias": antialias}
    return resize_box(array, **some_box(op, stateless_key(op, seed), array.shape, **how))


Corners = npt.NDArray[np.int64]

ASPECT_RATIO_RANGE = (0.75, 1.33)
AREA_RANGE = (0.05, 1.0)
MAX_ATTEMPTS = 100

Part = tuple["npt.NDArray[Any]", "npt.NDArray[Any]", "npt.NDArray[np.float32]"]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The requirements for a part."""

    covered: float
    forms: tuple[float, float]
    areas: tuple[float, float]
    attempts: int


def sample_distorted_bounding_box(
    image_size: npt.ArrayLike,
    bounding_boxes: npt.ArrayLike,
    seed: int | None = None,
    min_object_covered: float = 0.1,
    aspect_ratio_range: Sequence[float] | None = None,
    area_range: Sequence[float] | None = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
) -> Part:
    """Choose a random part of an image that shows enough of one of its objects, as tf.image's function does.

    The form is uniform in `aspect_ratio_range`, the height uniform in what `area_range` leaves, every place as likely,
    also those at the lower and the right edge, which TensorFlow leaves out. A part that does not show enough is random
    again, and after `max_attempts` it is the whole image. In a data set it follows from its seed, the epoch and the
    element's number, see `element_key`.

    Args:
        image_size: (height, width, channels).
        bounding_boxes: (1, boxes, 4) or (boxes, 4): (y_min, x_min, y_max, x_max) of each object, from 0 to 1.
        seed: An integer. Equal seeds give equal results for the same element. (TensorFlow's 0 is None here.).
        min_object_covered: The least share of an object's area, at least 0; one object that shows enough suffices.
        aspect_ratio_range: The least and the most of width / height, above 0; (0.75, 1.33) by default.
        area_range: The least and the most of the image's area, above 0 and at most 1; (0.05, 1) by default.
        max_attempts: At least 1; 100 by default.
        use_image_if_no_bounding_boxes: Take the whole image for the object where there are no boxes.

    Returns:
        `begin`, (top, left, 0), and `size`, (height, width, -1), both of the dtype of `image_size`; and the same as a
        float32 box (1, 1, 4) for `draw_bounding_boxes`.

    Raises:
        InvalidArgumentError: If an argument is invalid, or if there are no boxes.
        InvalidTypeError: If `min_object_covered` is not a number.

    Example:
        >>> image = np.zeros((40, 60, 3), np.uint8)
        >>> boxes = [[[0.25, 0.5, 0.75, 1.0]]]
        >>> begin, size, box = sample_distorted_bounding_box(image.shape, boxes, min_object_covered=1)
        >>> (top, left, _), (height, width, _) = begin, size
        >>> part = image[top : top + height, left : left + width]
        >>> bool(top <= 10 and top + height >= 30 and left <= 30 and left + width == 60)
        True
    """
    op = "sample_distorted_bounding_box"
    wanted = _wanted(op, min_object_covered, aspect_ratio_range, area_range, max_attempts)
    size, corners = _checked_boxes(op, image_size, bounding_boxes, use_image_if_no_bounding_boxes)
    return _described(size, _drawn(element_key(seed), size, corners, wanted))


def stateless_sample_distorted_bounding_box(
    image_size: npt.ArrayLike,
    bounding_boxes: npt.ArrayLike,
    seed: Any,
    min_object_covered: float = 0.1,
    aspect_ratio_range: Sequence[float] | None = None,
    area_range: Sequence[float] | None = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
) -> Part:
    """Do the same as `sample_distorted_bounding_box`, with random numbers that depend on `seed` only.

    Args:
        image_size: (height, width, channels).
        bounding_boxes: (1, boxes, 4) or (boxes, 4): (y_min, x_min, y_max, x_max) of each object, from 0 to 1.
        seed: An integer or a pair of integers. The result depends on the seed and the arguments only.
        min_object_covered: The least share of an object's area, at least 0; one object that shows enough suffices.
        aspect_ratio_range: The least and the most of width / height, above 0; (0.75, 1.33) by default.
        area_range: The least and the most of the image's area, above 0 and at most 1; (0.05, 1) by default.
        max_attempts: At least 1; 100 by default.
        use_image_if_no_bounding_boxes: Take the whole image for the object where there are no boxes.

    Returns:
        As `sample_distorted_bounding_box`.

    Raises:
        InvalidArgumentError: If an argument is invalid, or if there are no boxes.
        InvalidTypeError: If `min_object_covered` is not a number.

    Example:
        >>> size, box = (40, 60, 3), [[[0.25, 0.5, 0.75, 1.0]]]
        >>> first, again = (stateless_sample_distorted_bounding_box(size, box, (1, 2)) for _ in range(2))
        >>> [np.array_equal(a, b) for a, b in zip(first, again)]
        [True, True, True]
    """
    op = "stateless_sample_distorted_bounding_box"
    wanted = _wanted(op, min_object_covered, aspect_ratio_range, area_range, max_attempts)
    size, corners = _checked_boxes(op, image_size, bounding_boxes, use_image_if_no_bounding_boxes)
    return _described(size, _drawn(stateless_key(op, seed), size, corners, wanted))


def _wanted(op: str, covered: Any, forms: Any, areas: Any, attempts: Any) -> _Wanted:
    found = _Wanted(
        check_number(op, "min_object_covered", covered, 0),
        check_range(op, "aspect_ratio_range", ASPECT_RATIO_RANGE if forms is None else forms, 0),
        check_range(op, "area_range", AREA_RANGE if areas is None else areas, 0, 1),
        MAX_ATTEMPTS if attempts is None else check_integer(op, "max_attempts", attempts, 1),
    )
    for name, pair, given in (("aspect_ratio_range", found.forms, forms), ("area_range", found.areas, areas)):
        if not pair[0]:
            raise InvalidArgumentError(f"{op}: {name} must be (least, most), two numbers above 0; got {given!r}.")
    return found


def _checked_boxes(op: str, image_size: Any, boxes: Any, whole: bool | None) -> tuple[npt.NDArray[Any], Corners]:
    """Return the size as an array, and (top, left, bottom, right) of each object in whole pixels."""
    height, width, _ = check_sizes(op, "image_size", image_size, 3, "height, width and channels", 1)
    corners = numbers(boxes)
    if corners.ndim not in (2, 3) or corners.shape[-1] != 4:
        message = f"{op}: bounding_boxes must have shape (1, boxes, 4) or (boxes, 4), got {corners.shape}."
        raise InvalidArgumentError(message)
    if corners.dtype.kind not in "iuf" or not ((corners >= 0) & (corners <= 1)).all():
        message = f"{op}: bounding_boxes must be shares of height and width from 0 to 1, got {boxes!r:.200}."
        raise InvalidArgumentError(message, hint="Divide pixels by the height and width of the image.")
    if not corners.size:
        if not whole:
            message = f"{op}: there are no bounding_boxes, their shape is {corners.shape}."
            hint = "Take the whole image for the object with use_image_if_no_bounding_boxes=True."
            raise InvalidArgumentError(message, hint=hint)
        corners = np.array([[0, 0, 1, 1]])
    sides = np.array([height, width, height, width], np.float32)
    return np.asarray(image_size), (corners.reshape(-1, 4).astype(np.float32) * sides).astype(np.int64)


def _drawn(key: int, size: npt.NDArray[Any], corners: Corners, wanted: _Wanted) -> list[int]:
    """Return (top, left, height, width) of the part."""
    height, width = (int(side) for side in size[:2])
    for attempt in range(wanted.attempts):
        own = fold(key, attempt)
        sides = _sides(own, height, width, uniform(own, *wanted.forms, 0), wanted.areas)
        if sides is not None:
            box = placed(own, sides, (height, width))
            if _shows_enough(box, corners, wanted.covered):
                return box
    return [0, 0, height, width]


def _sides(key: int, height: int, width: int, form: float, areas: tuple[float, float]) -> tuple[int, int] | None:
    """Return height and width with aspect ratio `form` and an area in `areas` of the image's, or None.

    >>> _sides(1, 10, 20, 2.0, (0.49, 0.49))
    (7, 14)
    """
    least, most = (share * height * width for share in areas)
    low, high = round((least / form) ** 0.5), min(round((most / form) ** 0.5), height)
    if round(high * form) > width:
        high = int((width + 0.5 - 1e-7) / form)
        high -= round(high * form) > width
    down = min(low, high)
    down += draw(key, 2, high - down + 1)
    down += down * round(down * form) < least  # rounding may have missed the range by one
    down -= down * round(down * form) > most
    across = round(down * form)
    fits = least <= down * across <= most and 0 < down <= height and 0 < across <= width
    return (down, across) if fits else None


def _shows_enough(box: list[int], corners: Corners, share: float) -> bool:
    """Return True if the part shows `share` of one of the objects. An object without a pixel does not count.

    >>> _shows_enough([0, 0, 2, 2], np.array([[1, 1, 3, 3]]), 0.25)
    True
    """
    top, left, height, width = box
    areas = (corners[:, 2] - corners[:, 0]).clip(0) * (corners[:, 3] - corners[:, 1]).clip(0)
    rows = (corners[:, 2].clip(max=top + height) - corners[:, 0].clip(min=top)).clip(0)
    columns = (corners[:, 3].clip(max=left + width) - corners[:, 1].clip(min=left)).clip(0)
    return bool(((areas > 0) & (rows * columns >= share * areas)).any())


def _described(size: npt.NDArray[Any], box: list[int]) -> Part:
    top, left, height, width = box
    sides = np.array([size[0], size[1]] * 2, np.float32)
    corners = np.array([top, left, top + height, left + width], np.float32) / sides
    begin, extent = np.array([top, left, 0], size.dtype), np.array([height, width, -1], size.dtype)
    return begin, extent, corners.reshape(1, 1, 4)
