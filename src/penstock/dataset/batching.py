"""Methods of `Dataset`: padded, ragged and sparse batches, rebatch, windows, groups and buckets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.dataset.base import Base
from penstock.errors import InvalidArgumentError
from penstock.plan import batching, grouping
from penstock.plan.batching import PadToCardinality

if TYPE_CHECKING:
    from penstock.dataset.dataset import Dataset
    from penstock.runtime.run import Iterator


class Batching(Base):
    """Mixed into `Dataset`."""

    if TYPE_CHECKING:

        def iterator(self) -> Iterator: ...

        @property
        def _known(self) -> Any: ...

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
        shape; if only running can tell the shape, the first element is computed for it.

        >>> import penstock as ps
        >>> ds = ps.Dataset.from_tensor_slices({"x": [5, 6, 7]}).pad_to_cardinality(4).batch(2)
        >>> [(b["x"].tolist(), b["valid"].tolist()) for b in ds]
        [([5, 6], [True, True]), ([7, 0], [True, False])]

        Raises InvalidArgumentError for a data set with more elements, during the pass if their number is not known
        before, and InvalidTypeError for elements that are no dicts.
        """
        return self._then(PadToCardinality, count=cardinality, mask_key=mask_key, element=self._known.spec)

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


class Grouping(Base):
    """Mixed into `Dataset`."""

    def window(self, size: int, shift: int | None = None, stride: int = 1, drop_remainder: bool = False) -> Dataset:
        """Windows of `size` elements as data sets; the next window begins `shift` (by default `size`) elements on.

        Within a window the elements are `stride` apart. An element that is a nest becomes a nest of data sets: a
        window over pairs is a pair of windows. The windows at the end are smaller, unless `drop_remainder`.

        >>> import penstock as ps
        >>> [[int(x) for x in window] for window in ps.Dataset.range(5).window(3)]
        [[0, 1, 2], [3, 4]]
        >>> ds = ps.Dataset.range(6).window(3, shift=2, stride=2, drop_remainder=True)
        >>> [int(batch.sum()) for batch in ds.flat_map(lambda window: window.batch(3))]
        [6]

        A window in which an element failed is one failure. The arrays of a window are shared with other windows and
        cannot be written to. Raises InvalidArgumentError for a size, shift or stride below 1.
        """
        return self._then(grouping.Window, size=size, shift=shift, stride=stride, drop_remainder=bool(drop_remainder))

    def group_by_window(
        self,
        key_func: Callable[..., Any],
        reduce_func: Callable[[Any, Any], Any],
        window_size: int | None = None,
        window_size_func: Callable[[Any], Any] | None = None,
    ) -> Dataset:
        """The elements of `reduce_func(key, window)`, where a window holds neighbours of equal `key_func(element)`.

        `window` is a data set of `window_size` elements, or as many as `window_size_func(key)` says when its first
        element comes; `reduce_func` returns a data set. A window is given as soon as it is full; when the input has
        ended the smaller ones that are left follow, in ascending order of their keys. Keys are integers, as int64.

        >>> import penstock as ps
        >>> ds = ps.Dataset.range(7).group_by_window(lambda x: x % 2, lambda key, window: window.batch(3), 3)
        >>> [batch.tolist() for batch in ds]
        [[0, 2, 4], [1, 3, 5], [6]]

        An element for which `key_func` or `window_size_func` fails is one failure and in no window; where
        `reduce_func` fails, the window is one failure. A checkpoint holds no elements: those of open windows are read
        again, from the oldest on. Raises InvalidArgumentError unless exactly one of the two sizes is given.
        """
        return self._then(
            grouping.GroupByWindow,
            key_func=key_func,
            reduce_func=reduce_func,
            window_size=window_size,
            window_size_func=window_size_func,
        )

    def bucket_by_sequence_length(
        self,
        element_length_func: Callable[..., Any],
        bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int],
        padded_shapes: Any = None,
        padding_values: Any = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
    ) -> Dataset:
        """Batches of elements of like length, so that little of a batch is padding.

        Bucket i takes the elements whose `element_length_func(element)` is below `bucket_boundaries[i]` and not below
        the boundary before; the last bucket takes the rest, so there is one more batch size than there are boundaries.
        A batch is given when its bucket is full; the smaller ones that are left come at the end, bucket by bucket,
        unless `drop_remainder`.

        >>> import penstock as ps
        >>> ds = ps.Dataset.from_generator(lambda: [[1], [2, 3, 4], [5, 6], [7, 8, 9, 9]])
        >>> for batch in ds.bucket_by_sequence_length(len, bucket_boundaries=[3], bucket_batch_sizes=[2, 2]):
        ...     print(batch.tolist())
        [[1, 0], [5, 6]]
        [[2, 3, 4, 0], [7, 8, 9, 9]]

        `padded_shapes` and `padding_values` are those of `padded_batch`. With `pad_to_bucket_boundary` open dimensions
        are padded to the bucket's boundary less one, so that batches of a bucket have one shape; a batch of the last
        bucket, which has no boundary, then fails. With `no_padding` elements are stacked as they are. A checkpoint
        holds no elements: those that wait are read again. Raises InvalidArgumentError for boundaries that do not
        ascend, and for a number of batch sizes that does not fit.
        """
        return self._then(
            grouping.BucketBySequenceLength,
            element_length_func=element_length_func,
            bucket_boundaries=bucket_boundaries,
            bucket_batch_sizes=bucket_batch_sizes,
            padded_shapes=padded_shapes,
            padding_values=padding_values,
            pad_to_bucket_boundary=bool(pad_to_bucket_boundary),
            no_padding=bool(no_padding),
            drop_remainder=bool(drop_remainder),
        )
