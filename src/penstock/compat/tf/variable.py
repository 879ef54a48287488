"""Variable: a value that is changed in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compat.values import Tensor, array_of, raised, whole
from penstock.errors import InvalidArgumentError


class Variable:
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
        self._value = np.array(array_of(value, dtype))
        self.name = name or "Variable:0"
        self.trainable = trainable is not False

    def assign(self, value: Any, *args: Any, **kwargs: Any) -> Variable:
        given = np.array(array_of(value), self._value.dtype)
        if given.shape != self._value.shape:
            message = f"Cannot assign a value of shape {given.shape} to {self.name!r} of shape {self._value.shape}."
            raise InvalidArgumentError(message, hint="A variable keeps its shape: make another one.")
        self._value = given
        return self

    def assign_add(self, delta: Any, *args: Any, **kwargs: Any) -> Variable:
        return self.assign(self._value + whole(delta))

    def assign_sub(self, delta: Any, *args: Any, **kwargs: Any) -> Variable:
        return self.assign(self._value - whole(delta))

    def numpy(self) -> Any:
        found = self._value.copy()
        return found if found.ndim else found[()]

    def value(self) -> Any:
        return raised(self.numpy())

    read_value = value

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self._value, dtype)

    @property
    def shape(self) -> Any:
        return self.value().shape

    @property
    def dtype(self) -> Any:
        return self._value.dtype

    def get_shape(self) -> Any:
        return self.shape

    def __getitem__(self, key: Any) -> Any:
        return self.value()[key]

    def __int__(self) -> int:
        return int(self._value)

    def __float__(self) -> float:
        return float(self._value)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __index__(self) -> int:
        return self._value.__index__()

    def __format__(self, spec: str) -> str:
        return format(self.value(), spec)

    def __repr__(self) -> str:
        return f"<tf.Variable {self.name!r} shape={self.shape} dtype={self.dtype.name}, numpy={self.numpy()!r}>"


def _operator(name: str) -> Any:
    def apply(self: Variable, *args: Any) -> Any:
        values = [arg.value() if isinstance(arg, Variable) else arg for arg in args]
        return getattr(Tensor, name)(np.asarray(self._value).view(Tensor), *values)

    apply.__name__ = name
    return apply


for _name in [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "radd",
    "rsub",
    "rmul",
    "rtruediv",
    "rfloordiv",
    "rmod",
    "rpow",
    "abs",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "neg",
]:
    setattr(Variable, f"__{_name}__", _operator(f"__{_name}__"))
