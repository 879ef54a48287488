"""Labels as the shares of classes, which can be mixed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.image.checks import numbers
from penstock.image.geometry.arguments import check_integer

if TYPE_CHECKING:
    import numpy.typing as npt


def weights_of(op: str, labels: Any, count: int, num_classes: int | None) -> npt.NDArray[np.float32]:
    """Labels of `count` images as shares of classes, (count, K): integers become 1 for their class and 0 elsewhere.

    >>> weights_of("mixup", [2, 0], 2, 3).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]

    Raises:
        InvalidArgumentError: another shape, classes that do not fit, or a label that is none of them.
        InvalidTypeError: not numbers.
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
        message = f"{op}: labels of shape {array.shape} must be integers, got {array.dtype}."
        raise InvalidTypeError(message)
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
