"""Methods of `Dataset`: padded, ragged and sparse batches, rebatch, and taking the only element."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.dataset.base import Base
from penstock.errors import InvalidArgumentError
from penstock.plan import batching
from penstock.plan.pad_to_cardinality import PadToCardinality

if TYPE_CHECKING:
    from penstock.dataset.dataset import Dataset
    from penstock.runtime.run import Iterator


class Batching(Base):
    """Mixed into `Dataset`."""

    if TYPE_CHECKING:

        def iterator(self) -> Iterator: ...

        @property
        def element_spec(self) -> Any: ...

    def padded_batch(
        self,
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
    ) -> Dataset:
        """`batch_size` elements stacked into one, those of differing shape filled up first; the last may be smaller.

        `padded_shapes` is a nest like the elements with a shape for each component; a dimension of None (or -1) is as
        long as the longest of the batch, which is the default for all. `padding_values` is a scalar for all components
        or a nest of them; None stands for 0, an empty byte string, or NaT for times.

        >>> import penstock as ps
        >>> ds = ps.Dataset.range(1, 4).map(lambda n: np.full(n, n))
        >>> [b.tolist() for b in ds.padded_batch(2)]
        [[[1, 0], [2, 2]], [[3, 3, 3]]]
        >>> [b.tolist() for b in ds.padded_batch(2, padded_shapes=[4], padding_values=-1)]
        [[[1, -1, -1, -1], [2, 2, -1, -1]], [[3, 3, 3, -1]]]

        Python's numbers take the dtype of the component where they fit; numpy's must have it. Raises
        InvalidArgumentError and InvalidTypeError for shapes and values that do not fit the elements, DataLossError,
        when the element comes, for one that is larger than its padded shape.
        """
        return self._then(
            batching.PaddedBatch,
            batch_size=batch_size,
            padded_shapes=padded_shapes,
            padding_values=padding_values,
            drop_remainder=bool(drop_remainder),
        )

    def ragged_batch(self, batch_size: int, drop_remainder: bool = False, row_splits_dtype: Any = np.int64) -> Dataset:
        """`batch_size` elements as one, those of unknown shape as the rows of a `RaggedTensor`.

        A component of known shape, as `element_spec` has it, is stacked as `batch` does. A dimension of unknown extent
        makes itself and those in front of it ragged; if nothing is known before a pass, all are.

        >>> import penstock as ps
        >>> ds = ps.Dataset.range(4).map(lambda n: np.arange(n))
        >>> [b.to_list() for b in ds.ragged_batch(2)]
        [[[], [0]], [[0, 1], [0, 1, 2]]]

        `row_splits_dtype` is int32 or int64. Raises InvalidArgumentError, when the batch comes, for elements that
        differ in another dimension.
        """
        return self._then(
            batching.RaggedBatch,
            batch_size=batch_size,
            drop_remainder=bool(drop_remainder),
            row_splits_dtype=row_splits_dtype,
        )

    def sparse_batch(self, batch_size: int, row_shape: Any) -> Dataset:
        """`batch_size` arrays of differing shape as the rows of a `SparseTensor`, which has all their values, also 0.

        `row_shape` is the shape of a row; None stands for as long as the longest of the batch.

        >>> import penstock as ps
        >>> ds = ps.Dataset.range(1, 4).map(lambda n: np.full(n, n))
        >>> [b.to_list() for b in ds.sparse_batch(2, [3])]
        [[[1, 0, 0], [2, 2, 0]], [[3, 3, 3]]]

        Raises InvalidTypeError for elements of more than one component, InvalidArgumentError for another rank, and
        DataLossError, when the element comes, for one that is larger than `row_shape`.
        """
        return self._then(batching.SparseBatch, batch_size=batch_size, row_shape=row_shape)

    def rebatch(self, batch_size: int | Sequence[int], drop_remainder: bool = False) -> Dataset:
        """Batches of other sizes: as `unbatch().batch(batch_size)`, with at most one copy; sizes of a list take turns.

        >>> import penstock as ps
        >>> [b.tolist() for b in ps.Dataset.range(7).batch(4).rebatch([2, 1])]
        [[0, 1], [2], [3, 4], [5], [6]]

        Where a size divides the batches below, the new ones are views of them. Raises InvalidArgumentError for
        elements that are no batches.
        """
        return self._then(batching.Rebatch, sizes=batch_size, drop_remainder=bool(drop_remainder))

    def pad_to_cardinality(self, cardinality: int, mask_key: str = "valid") -> Dataset:
        """Exactly `cardinality` elements: those there are, with a True added under `mask_key`, then zeros with a False.

        With it every batch of an evaluation is full, and nothing is left out. The elements are dicts of arrays of known
        shape; where only running can tell, one element is made to see, as by `element_spec`.

        >>> import penstock as ps
        >>> ds = ps.Dataset.from_tensor_slices({"x": [5, 6, 7]}).pad_to_cardinality(4).batch(2)
        >>> [(b["x"].tolist(), b["valid"].tolist()) for b in ds]
        [([5, 6], [True, True]), ([7, 0], [True, False])]

        Raises InvalidArgumentError for a data set with more elements, during the pass if their number is not known
        before, and InvalidTypeError for elements that are no dicts.
        """
        spec = self._plan.spec
        element = self.element_spec if spec is None else spec
        return self._then(PadToCardinality, count=cardinality, mask_key=mask_key, element=element)

    def get_single_element(self) -> Any:
        """The only element.

        >>> import penstock as ps
        >>> ps.Dataset.from_tensors([1, 2]).map(lambda x: x * 2).get_single_element()
        array([2, 4])

        Raises InvalidArgumentError for a data set with none, or with more than one.
        """
        with self.iterator() as elements:
            found = list(islice(elements, 2))
        if len(found) != 1:
            count = "more than one element" if found else "no element"
            message = f"get_single_element needs a data set of exactly one element, this one has {count}."
            raise InvalidArgumentError(message, hint="take(1) keeps the first; batch(n) makes one element of many.")
        return found[0]
