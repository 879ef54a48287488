"""rand_augment and trivial_augment: random operations from a list, without tuning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.block.spec import LeafSpec, TensorSpec
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.image import rules
from penstock.image.augment.operations import OPERATIONS, RAND, TRIVIAL_WIDE, Amount, Look
from penstock.image.checks import check_choice, check_fills, check_image, check_integer
from penstock.image.drawn import Keys
from penstock.image.geometry.projective import INTERPOLATIONS
from penstock.image.rules import random_image_op
from penstock.keys import draw, fold
from penstock.trace.drawing import element_key
from penstock.trace.graph import NotTraceable
from penstock.trace.lift import of_nature

__all__ = ["rand_augment", "trivial_augment"]

Steps = tuple[tuple[str, float], ...]
NAMES = tuple(OPERATIONS)


def apply_operations(
    images: npt.NDArray[np.uint8], steps: Sequence[Any], interpolation: str, fill_value: int | tuple[int, ...]
) -> npt.NDArray[np.uint8]:
    """Apply the `steps`, (name, amount) each, to an image in order. In a batch, each image has its own steps.

    >>> apply_operations(np.array([[[10], [20]]], np.uint8), [("brightness", 0.5)], "nearest", 0).ravel().tolist()
    [15, 30]
    """
    look = Look(interpolation, fill_value)
    if images.ndim == 3:
        return _applied(images, tuple(steps), look)
    found = np.empty(images.shape, np.uint8)
    for image, own, place in zip(images, steps, found, strict=True):
        place[...] = _applied(image, own, look)
    return found


def _applied(image: npt.NDArray[np.uint8], steps: Steps, look: Look) -> npt.NDArray[np.uint8]:
    for name, amount in steps:
        image = OPERATIONS[name].apply(image, amount, look)
    return image


def some_operations(
    key: Keys,
    shape: Sequence[int],
    *,
    num_ops: Any,
    magnitude: Any,
    num_magnitude_bins: Any,
    interpolation: str,
    fill_value: Any,
) -> dict[str, Any]:
    """Return the random steps of `rand_augment` for an image of this shape, or for each image of a batch."""
    op = "rand_augment"
    count = check_integer(op, "num_ops", num_ops)
    bins = check_integer(op, "num_magnitude_bins", num_magnitude_bins, 2)
    level = check_integer(op, "magnitude", magnitude)
    if level >= bins:
        raise InvalidArgumentError(f"{op}: magnitude must be below num_magnitude_bins={bins}, got {magnitude!r}.")
    share = level / (bins - 1)

    def steps(own: int) -> Steps:
        return tuple(_step(RAND, fold(own, number), share, shape) for number in range(count))

    return {"steps": _each(key, shape, steps), **_look(op, interpolation, fill_value, shape[-1])}


def some_operation(
    key: Keys, shape: Sequence[int], *, num_magnitude_bins: Any, interpolation: str, fill_value: Any
) -> dict[str, Any]:
    """Return the random steps of `trivial_augment` for an image of this shape, or for each image of a batch."""
    op = "trivial_augment"
    bins = check_integer(op, "num_magnitude_bins", num_magnitude_bins, 2)

    def steps(own: int) -> Steps:
        return (_step(TRIVIAL_WIDE, own, draw(own, 2, bins) / (bins - 1), shape),)

    return {"steps": _each(key, shape, steps), **_look(op, interpolation, fill_value, shape[-1])}


def _each(key: Keys, shape: Sequence[int], steps: Callable[[int], Steps]) -> Any:
    """Return the steps for an image. For a batch, or for the keys of many elements, return the steps of each."""
    if isinstance(key, np.ndarray):
        return tuple(_each(int(one), shape, steps) for one in key)
    return steps(key) if len(shape) == 3 else tuple(steps(fold(key, number)) for number in range(shape[0]))


def _step(amounts: dict[str, Amount], key: int, share: float, shape: Sequence[int]) -> tuple[str, float]:
    name = NAMES[draw(key, 0, len(NAMES))]
    amount = amounts[name](share, shape[-3], shape[-2])
    return name, -amount if OPERATIONS[name].signed and draw(key, 1, 2) else amount


def _look(op: str, interpolation: str, fill_value: Any, channels: int) -> dict[str, Any]:
    check_choice(op, "interpolation", interpolation, INTERPOLATIONS)
    fill = check_fills(op, "fill_value", 0 if fill_value is None else fill_value, np.dtype(np.uint8), channels)
    return {"interpolation": interpolation, "fill_value": tuple(fill.tolist()) if fill.ndim else int(fill)}


def _checked(op: str, image: Any) -> npt.NDArray[np.uint8]:
    array = check_image(op, image)
    if array.dtype != np.uint8:
        message = f"{op} needs uint8 images, got {array.dtype}."
        raise InvalidTypeError(message, hint="Augment before .batch() and / 255; convert_image_dtype makes uint8.")
    if array.shape[-1] not in (1, 3) or 0 in array.shape[-3:-1]:
        raise InvalidArgumentError(f"{op} needs 1 or 3 channels and at least one pixel, got shape {array.shape}.")
    return array


def _rule(spec: LeafSpec, **_: Any) -> TensorSpec:
    known = rules.same_shape(spec)
    if known.dtype != np.uint8 or known.shape[-1] not in (1, 3):
        raise NotTraceable("an augmentation of what are no uint8 images of 1 or 3 channels")
    return known


@of_nature(rules.COSTLY)
@random_image_op(rule=_rule, sample=some_operations, becomes=apply_operations)
def rand_augment(
    image: npt.NDArray[np.uint8],
    num_ops: int = 2,
    magnitude: int = 9,
    num_magnitude_bins: int = 31,
    interpolation: str = "nearest",
    fill_value: int | Sequence[int] | None = None,
    seed: int | None = None,
) -> npt.NDArray[np.uint8]:
    """Apply `num_ops` random operations of a list of 14, all of one magnitude, to a uint8 image (H, W, 1 or 3).

    RandAugment (Cubuk et al. 2019) with the list and ranges of torchvision. Each image of a batch (N, H, W, C) draws
    its own. An operation may come twice. A signed amount is negative with probability one half. In a data set the
    operations follow from its seed, the epoch and the element's number, see `element_key`.

    | operation | amount at magnitude 0 … `num_magnitude_bins - 1`, in equal steps |
    |---|---|
    | identity, autocontrast, equalize | none |
    | shear_x, shear_y | ± 0 … 0.3 pixels per pixel |
    | translate_x, translate_y | ± 0 … 150/331 of the width or height, in whole pixels |
    | rotate | ± 0 … 30 degrees |
    | brightness, color, contrast, sharpness | factor 1 ± 0 … 0.9 of PIL's ImageEnhance |
    | posterize | 8 … 4 bits |
    | solarize | levels from 255 … 0 on are inverted |

    Args:
        image: uint8.
        num_ops: Number of operations, at least 0.
        magnitude: From 0 to `num_magnitude_bins - 1`.
        num_magnitude_bins: Number of magnitudes, at least 2.
        interpolation: "nearest" or "bilinear", for operations that move pixels.
        fill_value: Value of pixels outside of the image, 0 to 255, or one for each channel. Default: 0.
        seed: An integer. Equal seeds give equal results for the same element.

    Returns:
        uint8 of the same shape, or the image itself if no operation changes it.

    Raises:
        InvalidArgumentError: If the rank, the number of channels or an argument is invalid.
        InvalidTypeError: If the image is not uint8.

    Example:
        >>> image = np.zeros((32, 32, 3), np.uint8)
        >>> rand_augment(image).shape
        (32, 32, 3)
    """
    array = _checked("rand_augment", image)
    how: dict[str, Any] = {
        "num_ops": num_ops,
        "magnitude": magnitude,
        "num_magnitude_bins": num_magnitude_bins,
        "interpolation": interpolation,
        "fill_value": fill_value,
    }
    return apply_operations(array, **some_operations(element_key(seed), array.shape, **how))


@of_nature(rules.COSTLY)
@random_image_op(rule=_rule, sample=some_operation, becomes=apply_operations)
def trivial_augment(
    image: npt.NDArray[np.uint8],
    num_magnitude_bins: int = 31,
    interpolation: str = "nearest",
    fill_value: int | Sequence[int] | None = None,
    seed: int | None = None,
) -> npt.NDArray[np.uint8]:
    """Apply one random operation of a list of 14, of a random magnitude, to a uint8 image (H, W, 1 or 3).

    TrivialAugment Wide (Müller and Hutter 2021) with the list and ranges of torchvision. Each image of a batch (N, H,
    W, C) has its own random numbers. A signed amount is negative with probability one half. In a data set they follow
    from its seed, the epoch and the element's number, see `element_key`.

    | operation | amount at magnitude 0 … `num_magnitude_bins - 1`, in equal steps |
    |---|---|
    | identity, autocontrast, equalize | none |
    | shear_x, shear_y | ± 0 … 0.99 pixels per pixel |
    | translate_x, translate_y | ± 0 … 32 pixels, whole ones |
    | rotate | ± 0 … 135 degrees |
    | brightness, color, contrast, sharpness | factor 1 ± 0 … 0.99 of PIL's ImageEnhance |
    | posterize | 8 … 2 bits |
    | solarize | levels from 255 … 0 on are inverted |

    Args:
        image: uint8.
        num_magnitude_bins: Number of magnitudes, at least 2.
        interpolation: "nearest" or "bilinear", for operations that move pixels.
        fill_value: Value of pixels outside of the image, 0 to 255, or one for each channel. Default: 0.
        seed: An integer. Equal seeds give equal results for the same element.

    Returns:
        uint8 of the same shape, or the image itself if no operation changes it.

    Raises:
        InvalidArgumentError: If the rank, the number of channels or an argument is invalid.
        InvalidTypeError: If the image is not uint8.

    Example:
        >>> image = np.zeros((32, 32, 3), np.uint8)
        >>> trivial_augment(image).shape
        (32, 32, 3)
    """
    array = _checked("trivial_augment", image)
    how: dict[str, Any] = {
        "num_magnitude_bins": num_magnitude_bins,
        "interpolation": interpolation,
        "fill_value": fill_value,
    }
    return apply_operations(array, **some_operation(element_key(seed), array.shape, **how))
