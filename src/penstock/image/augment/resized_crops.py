"""Cut out a part of random area and form, and bring it to one size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.block.spec import TensorSpec
from penstock.errors import InvalidArgumentError
from penstock.image import rules
from penstock.image.augment.arguments import check_range, placed, tried
from penstock.image.checks import check_image
from penstock.image.drawn import Keys, each, stateless_key
from penstock.image.resizing.resize import check_resize, resize
from penstock.trace.drawing import element_key
from penstock.trace.lift import tensor
from penstock.trace.nature import of_nature
from penstock.trace.random_op import random_op

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from penstock.block.spec import LeafSpec

SCALE = (0.08, 1.0)
RATIO = (3 / 4, 4 / 3)


def resize_box(
    images: npt.NDArray[Any], box: npt.ArrayLike, size: Sequence[int], method: str, antialias: bool
) -> npt.NDArray[Any]:
    """`resize` of the rectangle `box` = (top, left, height, width), or of one for each image of a batch, (N, 4).

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
    key: Keys, shape: Sequence[int], *, size: Any, scale: Any, ratio: Any, method: str, antialias: bool
) -> dict[str, Any]:
    """Which part of an image of this shape, or of each image of a batch."""
    return _some_box("random_resized_crop", key, shape, size, scale, ratio, method, antialias)


def _some_box(
    op: str, key: Keys, shape: Sequence[int], size: Any, scale: Any, ratio: Any, method: str, antialias: bool
) -> dict[str, Any]:
    areas, forms = _checked(op, scale, ratio)
    wanted = check_resize(size, method, op)
    if 0 in shape[-3:]:
        message = f"{op}: an image needs at least one pixel and one channel, got shape {tuple(shape)}."
        raise InvalidArgumentError(message)
    height, width = shape[-3:-1]
    box = each(key, shape, lambda own: _box(own, height, width, areas, forms))
    return {"box": box, "size": wanted, "method": method, "antialias": antialias}


def _checked(op: str, scale: Any, ratio: Any) -> tuple[tuple[float, float], tuple[float, float]]:
    areas, forms = check_range(op, "scale", scale, 0), check_range(op, "ratio", ratio, 0)
    for name, pair, given in (("scale", areas, scale), ("ratio", forms, ratio)):
        if not pair[0]:
            message = f"{op}: {name} must be (least, most), two numbers above 0; got {given!r}."
            raise InvalidArgumentError(message)
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
@random_op("image.random_resized_crop", _rule, sample=some_box, becomes=resize_box, batches=lambda rank: rank == 3)
def random_resized_crop(
    image: npt.NDArray[Any],
    size: Sequence[int],
    scale: Sequence[float] = SCALE,
    ratio: Sequence[float] = RATIO,
    method: str = "bilinear",
    antialias: bool = False,
    seed: int | None = None,
) -> npt.NDArray[Any]:
    """Cut a part of random area and form out of an image (H, W, C) and resize it; of a batch, from each its own.

    The area is uniform in `scale`, the logarithm of width / height uniform in that of `ratio`, the place uniform. What
    does not fit is drawn again; after ten attempts it is the largest part at the centre with a form in `ratio`. This
    is the crop of "Going deeper with convolutions" (Szegedy et al. 2014), drawn as torchvision's RandomResizedCrop
    does. In a data set it follows from its seed, the epoch and the element's number, see `element_key`.

    >>> image = np.zeros((375, 500, 3), np.uint8)
    >>> random_resized_crop(image, (224, 224)).shape
    (224, 224, 3)

    Args:
        image: any number type; a batch is (N, H, W, C).
        size: (height, width) of the result, in pixels.
        scale: the least and the most of the image's area that is cut out, above 0.
        ratio: the least and the most of width / height, above 0.
        method: as in `resize`.
        antialias: as in `resize`; slower, and better for parts that are much larger than `size`.
        seed: any integer; equal seeds choose alike for the same element.

    Returns:
        float32 in the range of the image; with "nearest" the image's dtype.

    Raises:
        InvalidArgumentError: ranks, sizes, ranges or choices that are not supported.
        InvalidTypeError: not an image of numbers.
    """
    array = check_image("random_resized_crop", image)
    key = element_key(seed)
    how: dict[str, Any] = {"size": size, "scale": scale, "ratio": ratio, "method": method, "antialias": antialias}
    return resize_box(array, **some_box(key, array.shape, **how))


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
    """`random_resized_crop` that follows from `seed` alone, an integer or a pair of integers.

    >>> image = np.arange(100.0).reshape(10, 10, 1)
    >>> first, again = (stateless_random_resized_crop(image, (4, 4), (1, 2)) for _ in range(2))
    >>> np.array_equal(first, again)
    True

    Raises:
        InvalidArgumentError: ranks, sizes, ranges, choices or a seed that are not supported.
        InvalidTypeError: not an image of numbers.
    """
    op = "stateless_random_resized_crop"
    array = check_image(op, image)
    key = stateless_key(op, seed)
    return resize_box(array, **_some_box(op, key, array.shape, size, scale, ratio, method, antialias))
