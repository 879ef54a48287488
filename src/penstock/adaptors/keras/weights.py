"""Class weights: a sample weight for every row of a batch, by its class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from penstock.block.spec import TensorSpec
from penstock.errors import InvalidArgumentError, InvalidTypeError


class ClassWeights:
    """Makes `(x, y, weights)` of `(x, y)`. `y` has classes, of shape (batch,) or (batch, 1), or one-hot rows.

    >>> ClassWeights({1: 5.0})(("x", np.array([0, 1, 2])))[2]
    array([1., 5., 1.], dtype=float32)
    """

    def __init__(self, weights: Any) -> None:
        whole = isinstance(weights, Mapping) and all(isinstance(key, (int, np.integer)) for key in weights)
        if not whole or not weights or min(weights) < 0:
            message = f"class_weight must be a dict from class numbers to weights, got {weights!r}."
            raise InvalidTypeError(message, hint="Such as {0: 1.0, 1: 5.0}; classes that are left out weigh 1.")
        self._table = np.ones(int(max(weights)) + 1, np.float32)
        for number, weight in weights.items():
            self._table[int(number)] = weight

    def spec(self, spec: Any) -> Any:
        x, y = _pair(spec)
        return x, y, TensorSpec((y.shape[0] if isinstance(y, TensorSpec) and y.shape else None,), np.float32)

    def __call__(self, element: Any) -> Any:
        x, y = _pair(element)
        return x, y, self._of(np.asarray(y))

    def _of(self, y: np.ndarray) -> np.ndarray:
        if y.ndim == 2 and y.shape[1] > 1:
            classes = y.argmax(axis=1)
        elif y.ndim == 1 or (y.ndim == 2 and y.shape[1] == 1):
            classes = y.reshape(-1).astype(np.int64)
        else:
            message = f"class_weight needs a class for each row of a batch, got labels of shape {y.shape}."
            raise InvalidArgumentError(message, hint="Give sample weights yourself: elements of (x, y, sample_weight).")
        known = (classes >= 0) & (classes < len(self._table))
        return np.where(known, self._table[np.where(known, classes, 0)], np.float32(1))


def _pair(element: Any) -> tuple[Any, Any]:
    if not isinstance(element, tuple) or len(element) != 2:
        got = f"a tuple of {len(element)}" if isinstance(element, tuple) else type(element).__name__
        message = f"class_weight needs elements (x, y), got {got}."
        raise InvalidTypeError(message, hint="Multiply your own sample weights by those of the classes, with map().")
    return element[0], element[1]
