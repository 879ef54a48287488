"""What the backends of Keras without text and ragged tensors take: tensors of torch, and arrays for JAX."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.adaptors.conversion import Conversion
from penstock.adaptors.torch.tensors import Tensors

_OTHERWISE = "train on the backend TensorFlow, which has such tensors and layers for them"


class TorchInputs(Tensors):
    """Tensors of torch."""

    otherwise = _OTHERWISE


class ArrayInputs(Conversion):
    """numpy arrays as they are, once they are known to be numbers."""

    value = "input of this backend of Keras"
    otherwise = _OTHERWISE

    def holds(self, dtype: np.dtype) -> bool:
        return dtype.kind in "biufcV"

    def convert(self, array: np.ndarray, number: int) -> Any:
        return array
