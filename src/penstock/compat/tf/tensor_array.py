"""`tf.TensorArray`: a list of tensors that loops write into."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compat.dtypes import as_dtype
from penstock.compat.values import array_of, lowered, raised, whole


class TensorArray:
    """Tensors by index. Write `array = array.write(index, value)`, as in TensorFlow."""

    def __init__(self, dtype: Any, size: Any = 0, *args: Any, **options: Any) -> None:
        self.dtype, self._values = as_dtype(dtype), [None] * int(size)

    def write(self, index: Any, value: Any, name: Any = None) -> TensorArray:
        """Set a value. The array grows if needed."""
        at = int(lowered(index))
        self._values += [None] * (at + 1 - len(self._values))
        self._values[at] = value
        return self

    def read(self, index: Any, name: Any = None) -> Any:
        """Return a value."""
        return raised(array_of(self._values[int(lowered(index))], self.dtype))

    def stack(self, name: Any = None) -> Any:
        """Return all values along a new first axis."""
        return raised(np.stack([whole(value, self.dtype) for value in self._values]))

    def concat(self, name: Any = None) -> Any:
        """Return all values one after the other along their first axis."""
        return raised(np.concatenate([whole(value, self.dtype) for value in self._values]))

    def unstack(self, value: Any, name: Any = None) -> TensorArray:
        """Set the values to the rows of an array."""
        self._values = list(whole(value, self.dtype))
        return self

    def size(self, name: Any = None) -> Any:
        """Return the number of places."""
        return raised(np.int32(len(self._values)))
