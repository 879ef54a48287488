"""Functions that tf.data and tf.random have in `experimental`: elements and shuffled numbers by index."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.dataset.dataset import Dataset
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.keys import fold
from penstock.permutation import MOST, permutation
from penstock.plan.node import check_int

_INDEX = 0x696E646578  # "index": keeps its numbers apart from those of other users of a seed


def at(dataset: Dataset, index: int) -> Any:
    """`dataset.at(index)`: element number `index`, without those before it.

    >>> import penstock as ps
    >>> ps.experimental.at(ps.Dataset.range(5).map(lambda x: x + 1), 3)
    np.int64(4)
    """
    if not isinstance(dataset, Dataset):
        message = f"at needs a Dataset, got {type(dataset).__name__}."
        raise InvalidTypeError(message)
    return dataset.at(index)


def index_shuffle(index: Any, seed: Any, max_index: int) -> Any:
    """The number that stands at `index` in a random order of 0 … `max_index`; an array gives one for each.

    >>> import numpy as np
    >>> import penstock as ps
    >>> order = ps.experimental.index_shuffle(np.arange(5), seed=(1, 2), max_index=4)
    >>> sorted(order.tolist()), bool(ps.experimental.index_shuffle(3, (1, 2), 4) == order[3])
    ([0, 1, 2, 3, 4], True)

    Takes constant memory and no time to begin, for any `max_index`; the dtype of the index is kept. `seed` is an
    integer, or up to three as in `tf.random.experimental.index_shuffle`, whose orders are others. The method and its
    sources are those of `shuffle(ALL)`: see `penstock.permutation`.

    Raises InvalidArgumentError for an index outside of 0 … `max_index`, InvalidTypeError for one that is no integer.
    """
    most = check_int("max_index", max_index, least=0, hint="The largest index: one less than the number of elements.")
    if most >= MOST:
        message = f"max_index must be below 2**63, got max_index={most}."
        raise InvalidArgumentError(message)
    found = np.asarray(index)
    if found.dtype.kind not in "iu":
        message = f"index must be an integer or an array of integers, got {type(index).__name__} of {found.dtype}."
        raise InvalidTypeError(message)
    outside = (found < 0) | (found > most)
    if outside.any():
        message = f"index must be in [0, max_index], got index={found[outside].flat[0]}, max_index={most}."
        raise InvalidArgumentError(message)
    numbers = permutation(_key(seed), most + 1).at(found.reshape(-1).astype(np.int64))
    return numbers.reshape(found.shape).astype(found.dtype)[()]


def _key(seed: Any) -> int:
    parts = np.atleast_1d(np.asarray(seed))
    if parts.dtype.kind not in "iu" or parts.ndim > 1 or not 1 <= len(parts) <= 3:
        message = f"seed must be an integer or a list of up to three, got seed={seed!r:.60}."
        raise InvalidTypeError(message)
    return fold(_INDEX, *parts.tolist())
