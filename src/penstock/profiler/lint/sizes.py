"""How many bytes an element holds, as far as its spec says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from penstock.block.spec import TensorSpec
from penstock.block.structure import flatten


def element_bytes(spec: Any) -> int | None:
    """Bytes of an element's arrays; None where the spec leaves them open. A byte string of unknown length counts 0."""
    if spec is None:
        return None
    total = 0
    for leaf in flatten(spec)[0]:
        if not isinstance(leaf, TensorSpec) or not leaf.fixed:
            return None
        if leaf.dtype is not bytes:
            total += math.prod(leaf.shape) * np.dtype(leaf.dtype).itemsize  # type: ignore[arg-type]
    return total


def has_bytes(spec: Any) -> bool:
    """Whether an element holds byte strings, whose length no spec tells."""
    return any(isinstance(leaf, TensorSpec) and leaf.dtype is bytes for leaf in flatten(spec)[0])
