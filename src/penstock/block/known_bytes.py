"""How many bytes an element has, as far as its spec says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from penstock.block.spec import TensorSpec
from penstock.block.structure import flatten


def known_bytes(spec: Any) -> tuple[int, bool]:
    """Bytes of an element's parts of known size, and whether these are all.

    >>> known_bytes((TensorSpec((2, 3), np.float32), TensorSpec((None,), np.int64)))
    (24, False)
    """
    found = [None] if spec is None else [_leaf_bytes(leaf) for leaf in flatten(spec)[0]]
    return sum(size for size in found if size is not None), None not in found


def _leaf_bytes(leaf: Any) -> int | None:
    if not isinstance(leaf, TensorSpec) or leaf.open_rank or leaf.dtype is bytes:
        return None
    extents = [extent for extent in leaf.shape if extent is not None]
    return math.prod(extents) * np.dtype(leaf.dtype).itemsize if len(extents) == len(leaf.shape) else None
