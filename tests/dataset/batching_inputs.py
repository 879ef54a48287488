"""Data sets of arrays that differ in shape, and elements as lists."""

import numpy as np

import penstock as ps
from penstock.block.structure import map_leaves


def plain(element):
    """Lists in place of arrays and tensors; a sparse tensor is (indices, values, shape)."""

    def leaf(value):
        if isinstance(value, ps.RaggedTensor):
            return value.to_list()
        if isinstance(value, ps.SparseTensor):
            return value.indices.tolist(), value.values.tolist(), value.dense_shape.tolist()
        return value.tolist() if hasattr(value, "tolist") else value

    return map_leaves(leaf, element)


def given(dataset):
    return [plain(element) for element in dataset]


def rows(shape=(None,)):
    """[1], [2, 2], … [5, 5, 5, 5, 5], of known rank."""
    spec = ps.TensorSpec(shape, np.int64)
    return ps.Dataset.from_generator(lambda: (np.full(n, n) for n in range(1, 6)), output_signature=spec)


def untold():
    """The same of unknown spec."""
    return ps.Dataset.range(1, 6).map(lambda n: np.full(n, n))


def squares():
    """Of shapes (1, 3), (2, 2), (3, 1)."""
    return ps.Dataset.from_generator(
        lambda: (np.full((n, 4 - n), n) for n in range(1, 4)), output_signature=ps.TensorSpec((None, None), np.int64)
    )


def words():
    """Dicts of arrays and byte strings, whose keys change their order."""

    def make():
        for n, letter in ((1, "x"), (2, "y"), (3, "z")):
            parts = {"a": np.full(n, n), "b": [letter] * n}
            yield parts if n % 2 else dict(reversed(parts.items()))

    return ps.Dataset.from_generator(make)
