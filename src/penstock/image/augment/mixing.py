"""Mix the images of a batch, and their labels in equal shares. The shares have a beta distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.image.augment.arguments import check_positive
from penstock.image.checks import check_image, check_integer, numbers
from penstock.keys import draw, fold, uniform
from penstock.permutation import Permutation
from penstock.trace.drawing import element_key

__all__ = ["cutmix", "mixup"]


def beta(key: int, alpha: float) -> float:
    """Return a number from 0 to 1 with the distribution Beta(alpha, alpha): X / (X + Y) of two gamma variates.

    >>> 0.0 < beta(1, 0.2) < 1.0
    True

    Args:
        key: equal keys give equal numbers.
        alpha: above 0; small ones give numbers near 0 and 1, 1 all alike, large ones numbers near one half.
    """
    difference = _log_gamma(fold(key, 1), alpha) - _log_gamma(fold(key, 2), alpha)
    return 1 / (1 + math.exp(difference)) if difference < 700 else 0.0


def _log_gamma(key: int, alpha: float) -> float:
    """Return the logarithm of a number with the distribution Gamma(alpha). The number may be too small for a float.

    Marsaglia and Tsang, "A simple method for generating gamma variables", 2000. Their method needs a larger alpha, so
    it runs with alpha + 1. The power of a uniform number then leads to alpha.
    """
    d = alpha + 1 - 1 / 3
    c = 1 / math.sqrt(9 * d)
    attempt = 0
    while True:
        radius = math.sqrt(-2 * math.log1p(-uniform(key, 0, 1, 3 * attempt)))
        normal = radius * math.cos(2 * math.pi * uniform(key, 0, 1, 3 * attempt + 1))
        v = (1 + c * normal) ** 3
        share = 1 - uniform(key, 0, 1, 3 * attempt + 2)
        if v > 0 and math.log(share) < 0.5 * normal * normal + d - d * v + d * math.log(v):
            return math.log(d * v) + math.log1p(-uniform(fold(key, 1), 0, 1)) / alpha
        attempt += 1


def weights_of(op: str, labels: Any, count: int, num_classes: int | None) -> npt.NDArray[np.float32]:
    """Return labels of `count` images as shares of classes, (count, K).

    An integer becomes 1 for its class and 0 elsewhere.

    >>> weights_of("mixup", [2, 0], 2, 3).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]

    Raises:
        InvalidArgumentError: another shape, classes that do not fit, or a label that is none of them.
        InvalidTypeError: If the values are not numbers.
    """
    array = numbers(labels)
    if array.dtype.kind not in "biuf":
        message = f"{op} needs labels that are numbers, got {array.dtype}."
        raise InvalidTypeError(message, hint="Look the names up in a list of classes first.")
    classes = None if num_classes is None else check_integer(op, "num_classes", num_classes, 1)
    if array.ndim not in (1, 2) or len(array) != count:
        wanted = f"integers ({count},) or shares ({count}, classes)"
        message = f"{op}: labels of {count} images must be {wanted}, got shape {array.shape}."
        raise InvalidArgumentError(message, hint="Mix after .batch(), which stacks the labels.")
    if array.ndim == 2:
        if classes is not None and array.shape[1] != classes:
            message = f"{op}: labels of shape {array.shape} have {array.shape[1]} classes, num_classes={classes}."
            raise InvalidArgumentError(message, hint="Integer labels must have shape (N,): labels[:, 0].")
        return array.astype(np.float32)
    if array.dtype.kind not in "iu":
        raise InvalidTypeError(f"{op}: labels of shape {array.shape} must be integers, got {array.dtype}.")
    if classes is None:
        message = f"{op} needs num_classes for integer labels."
        raise InvalidArgumentError(message, hint="Or make them one-hot: np.eye(classes)[labels].")
    wrong = array[(array < 0) | (array >= classes)]
    if wrong.size:
        message = f"{op}: labels must be from 0 to {classes - 1} for num_classes={classes}, got {wrong[0]}."
        raise InvalidArgumentError(message)
    found = np.zeros((count, classes), np.float32)
    found[np.arange(count), array] = 1
    return found


def mixup(
    images: npt.NDArray[Any],
    labels: npt.ArrayLike,
    alpha: float = 0.2,
    seed: int | None = None,
    num_classes: int | None = None,
    per_image: bool = False,
) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32]]:
    """Blend each image of a batch with another one, and their labels in the same shares.

    Image i becomes `share * images[i] + (1 - share) * images[partner[i]]`, where the partners are a permutation of the
    batch and the share has the distribution Beta(alpha, alpha), one for the batch (Zhang et al., "mixup: Beyond
    empirical risk minimization", 2017). In a data set, after `batch`, both follow from its seed, the epoch and the
    number of the batch, see `element_key`.

    Args:
        images: (N, H, W, C), any number type.
        labels: Integers (N,), or shares of classes (N, K).
        alpha: Above 0; 0.2 mixes most images little, 1.0 makes all shares equally likely.
        seed: An integer. Equal seeds give equal results for the same batch.
        num_classes: Number of classes, needed for integer labels.
        per_image: If True, each image has its own share.

    Returns:
        float32 images (float64 stay), in the range they had; float32 labels (N, K) that add up as they did.

    Raises:
        InvalidArgumentError: If the ranks, the labels, the number of classes or `alpha` are invalid.
        InvalidTypeError: If the labels have another dtype.

    Example:
        >>> images, labels = mixup(np.eye(2, dtype=np.float32).reshape(2, 1, 2, 1), [0, 1], num_classes=2)
        >>> bool(np.allclose(images.reshape(2, 2), labels))
        True
    """
    op = "mixup"
    array, weights, alpha = _checked(op, images, labels, alpha, num_classes)
    key, count = element_key(seed), len(array)
    partners = _partners(key, count)
    shares = [beta(fold(key, 2, i if per_image else 0), alpha) for i in range(count if per_image else min(count, 1))]
    shares = shares if per_image else shares * count
    mixed = np.empty(array.shape, np.float64 if array.dtype == np.float64 else np.float32)
    other = np.empty(array.shape[1:], mixed.dtype)
    for i, (partner, share) in enumerate(zip(partners, shares, strict=True)):
        np.multiply(array[i], mixed.dtype.type(share), out=mixed[i])
        np.multiply(array[partner], mixed.dtype.type(1 - share), out=other)
        mixed[i] += other
    return mixed, _mixed_labels(weights, partners, shares)


def cutmix(
    images: npt.NDArray[Any],
    labels: npt.ArrayLike,
    alpha: float = 1.0,
    seed: int | None = None,
    num_classes: int | None = None,
    per_image: bool = False,
) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32]]:
    """Paste a rectangle of another image into each image of a batch, and mix their labels by area.

    The partners are a permutation of the batch. The rectangle has the form of the image and, for a share with the
    distribution Beta(alpha, alpha), `1 - share` of its area; its centre is any pixel, and the part outside the image is
    cut off. One for the batch (Yun et al., "CutMix", 2019). The labels have the weights of what can be seen. In a data
    set, after `batch`, all follow from its seed, the epoch and the number of the batch, see `element_key`.

    Args:
        images: (N, H, W, C), any number type.
        labels: Integers (N,), or shares of classes (N, K).
        alpha: Above 0; 1.0 makes all shares equally likely.
        seed: An integer. Equal seeds give equal results for the same batch.
        num_classes: Number of classes, needed for integer labels.
        per_image: If True, each image has its own rectangle.

    Returns:
        New images of the same dtype; float32 labels (N, K) that add up as they did.

    Raises:
        InvalidArgumentError: If the ranks, the labels, the number of classes or `alpha` are invalid.
        InvalidTypeError: If the labels have another dtype.

    Example:
        >>> images, labels = cutmix(np.arange(2).repeat(12).reshape(2, 3, 4, 1), [0, 1], num_classes=2, seed=1)
        >>> bool(np.allclose(images.mean((1, 2, 3)), labels[:, 1]))
        True
    """
    op = "cutmix"
    array, weights, alpha = _checked(op, images, labels, alpha, num_classes)
    key, (count, height, width) = element_key(seed), array.shape[:3]
    partners = _partners(key, count)
    boxes = [_box(fold(key, 2, i if per_image else 0), height, width, alpha) for i in range(count if per_image else 1)]
    boxes = boxes if per_image else boxes * count
    mixed = np.array(array, order="C")
    shares = []
    for i, (partner, (top, bottom, left, right)) in enumerate(zip(partners, boxes, strict=True)):
        mixed[i, top:bottom, left:right] = array[partner, top:bottom, left:right]
        shares.append(1 - (bottom - top) * (right - left) / (height * width))
    return mixed, _mixed_labels(weights, partners, shares)


def _checked(
    op: str, images: Any, labels: Any, alpha: Any, num_classes: Any
) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32], float]:
    array = check_image(op, images, ranks=(4,))
    if array.dtype.kind == "b":
        raise InvalidTypeError(f"{op} mixes integers and floats, got bool.")
    if 0 in array.shape[1:3]:
        raise InvalidArgumentError(f"{op}: an image needs at least one pixel, got shape {array.shape}.")
    return array, weights_of(op, labels, len(array), num_classes), check_positive(op, "alpha", alpha)


def _partners(key: int, count: int) -> list[int]:
    return Permutation(fold(key, 1), count).at(np.arange(count)).tolist() if count else []


def _box(key: int, height: int, width: int, alpha: float) -> tuple[int, int, int, int]:
    """Return top, bottom, left and right of the pasted rectangle, rounded as in torchvision's CutMix."""
    half = 0.5 * math.sqrt(1 - beta(key, alpha))
    place = fold(key, 3)
    row, column = draw(place, 0, height), draw(place, 1, width)
    down, across = int(half * height), int(half * width)
    return max(row - down, 0), min(row + down, height), max(column - across, 0), min(column + across, width)


def _mixed_labels(
    weights: npt.NDArray[np.float32], partners: list[int], shares: list[float]
) -> npt.NDArray[np.float32]:
    own = np.array(shares).reshape(-1, 1)
    return (own * weights + (1 - own) * weights[partners]).astype(np.float32)
