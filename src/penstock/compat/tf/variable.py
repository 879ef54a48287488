"""Variable: a value that changes in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compat.operands import converted
from penstock.compat.values import Value, array_of, raised
from penstock.errors import InvalidArgumentError


class Variable(Value):
    """A tensor that can be assigned to. In a `map` use `ds.scan(initial_state, scan_func)`.

    >>> count = Variable(0)
    >>> _ = count.assign_add(2)
    >>> count.numpy()
    np.int32(2)
    """

    def __init__(
        self,
        initial_value: Any = None,
        trainable: Any = None,
        validate_shape: Any = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        **other: Any,
    ) -> None:
        value = initial_value() if callable(initial_value) else initial_value
        self._value = np.array(array_of(value, dtype))[()]
        self.name = name or "Variable:0"
        self.trainable = trainable is not False

    def assign(self, value: Any, *args: Any, **kwargs: Any) -> Variable:
        given = converted(value, self._value.dtype)
        if np.shape(given) != np.shape(self._value):
            message = f"Cannot assign a value of shape {np.shape(given)} to {self.name!r} of shape {self.shape}."
            raise InvalidArgumentError(message, hint="A variable keeps its shape: make another one.")
        self._value = np.array(given)[()]
        return self

    def assign_add(self, delta: Any, *args: Any, **kwargs: Any) -> Variable:
        return self.assign(self + delta)

    def assign_sub(self, delta: Any, *args: Any, **kwargs: Any) -> Variable:
        return self.assign(self - delta)

    def value(self) -> Any:
        return raised(self._value)

    read_value = value

    def __repr__(self) -> str:
        return f"<tf.Variable {self.name!r} shape={self.shape} dtype={self.dtype.name}, numpy={self.numpy()!r}>"
