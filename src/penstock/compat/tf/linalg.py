"""`tf.linalg`: products, norms and parts of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compat.op import op
from penstock.compat.teaching import missing_in
from penstock.compat.tf.arrays import eye
from penstock.compat.tf.math import einsum, l2_normalize, matmul, norm, tensordot
from penstock.compat.values import lowered, whole

__all__ = ["einsum", "eye", "l2_normalize", "matmul", "norm", "tensordot"]


@op("linalg.matvec")
def matvec(a: Any, b: Any, transpose_a: bool = False) -> Any:
    matrix, vector = whole(a), whole(b)
    return np.matmul(matrix.swapaxes(-1, -2) if transpose_a else matrix, vector[..., None])[..., 0]


@op("linalg.matrix_transpose")
def matrix_transpose(a: Any) -> Any:
    return whole(a).swapaxes(-1, -2)


@op("linalg.diag")
def diag(diagonal: Any) -> Any:
    """Return matrices with these values on their diagonals, and zeros elsewhere."""
    values = whole(diagonal)
    return values[..., None] * np.eye(values.shape[-1], dtype=values.dtype)


@op("linalg.diag_part")
def diag_part(input: Any) -> Any:
    return np.diagonal(whole(input), axis1=-2, axis2=-1).copy()


@op("linalg.set_diag")
def set_diag(input: Any, diagonal: Any) -> Any:
    found = whole(input).copy()
    places = np.arange(min(found.shape[-2:]))
    found[..., places, places] = whole(diagonal)
    return found


@op("linalg.trace")
def trace(x: Any) -> Any:
    array = whole(x)
    return np.trace(array, axis1=-2, axis2=-1, dtype=array.dtype)


@op("linalg.band_part")
def band_part(input: Any, num_lower: Any, num_upper: Any) -> Any:
    """Keep only diagonals near the main diagonal. A negative number keeps all on its side."""
    array, lower, upper = whole(input), int(num_lower), int(num_upper)
    behind = np.arange(array.shape[-1]) - np.arange(array.shape[-2])[:, None]
    kept = ((lower < 0) | (behind >= -lower)) & ((upper < 0) | (behind <= upper))
    return np.where(kept, array, np.zeros((), array.dtype))


@op("linalg.inv")
def inv(input: Any) -> Any:
    return np.linalg.inv(whole(input))


@op("linalg.det")
def det(input: Any) -> Any:
    return np.linalg.det(whole(input))


@op("linalg.cross")
def cross(a: Any, b: Any) -> Any:
    one, other = whole(a), whole(b)
    return np.cross(one, other)


@op("linalg.normalize")
def normalize(tensor: Any, ord: Any = "euclidean", axis: Any = None) -> Any:
    """Return a tensor divided by its norm, and the norm."""
    array = whole(tensor)
    length = lowered(norm(array, ord, axis, keepdims=True))
    return array / length, length


__getattr__ = missing_in("tf.linalg", globals(), dict.fromkeys(("svd", "eigh", "qr", "solve"), "np.linalg has it."))
