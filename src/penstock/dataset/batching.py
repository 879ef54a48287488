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
    """Methods for batches."""

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
        """Stack consecutive elements of different shapes, and pad them to the same shape.

        Args:
            batch_size: Number of elements in a batch, at least 1.
            padded_shapes: A nest of shapes, one for each component. A dimension of None or -1 is padded to the longest
                element of the batch. Default: None for all dimensions.
            padding_values: A scalar for all components, or a nest of scalars. A Python number is converted to the dtype
                of the component; a numpy value must have this dtype. Default: 0, an empty byte string, or NaT for
                times.
            drop_remainder: If True, a smaller last batch is dropped. Default: False.

        Returns:
            A data set of batches.

        Raises:
            InvalidArgumentError: If `batch_size` is smaller than 1, or if the shapes or values do not fit the elements.
            InvalidTypeError: If a padding value has another dtype.
            DataLossError: If, during the iteration, an element is larger than its padded shape.

        Example:
            >>> import numpy as np, penstock as ps
            >>> ds = ps.Dataset.range(1, 4).map(lambda n: np.full(n, n))
            >>> [b.tolist() for b in ds.padded_batch(2)]
            [[[1, 0], [2, 2]], [[3, 3, 3]]]
            >>> [b.tolist() for b in ds.padded_batch(2, padded_shapes=[4], padding_values=-1)]
            [[[1, -1, -1, -1], [2, 2, -1, -1]], [[3, 3, 3, -1]]]
        """
        return self._then(
            batching.PaddedBatch,
            batch_size=batch_size,
            padded_shapes=padded_shapes,
            padding_values=padding_values,
            drop_remainder=bool(drop_remainder),
        )

    def ragged_batch(self, batch_size: int, drop_remainder: bool = False, row_splits_dtype: Any = np.int64) -> Dataset:
        """Combine consecutive elements of different shapes into ragged tensors.

        A component whose shape is known from `element_spec` is stacked as by `batch`. A dimension of unknown length is
        ragged, and so are the dimensions before it. If no shape is known, all dimensions are ragged.

        Args:
            batch_size: Number of elements in a batch, at least 1.
            drop_remainder: If True, a smaller last batch is dropped. Default: False.
            row_splits_dtype: Dtype of the row splits: int32 or int64. Default: int64.

        Returns:
            A data set of batches. A component of unknown shape is a `RaggedTensor`, whose rows are the elements.

        Raises:
            InvalidArgumentError: If `batch_size` is smaller than 1, or, during the iteration, if the elements of a
                batch differ in a dimension that is not ragged.

        Example:
            >>> import numpy as np, penstock as ps
            >>> ds = ps.Dataset.range(4).map(lambda n: np.arange(n))
            >>> [b.to_list() for b in ds.ragged_batch(2)]
            [[[], [0]], [[0, 1], [0, 1, 2]]]
        """
        return self._then(
            batching.RaggedBatch,
            batch_size=batch_size,
            drop_remainder=bool(drop_remainder),
            row_splits_dtype=row_splits_dtype,
        )

    def sparse_batch(self, batch_size: int, row_shape: Any) -> Dataset:
        """Combine consecutive arrays of different shapes into a sparse tensor.

        The sparse tensor contains all values, zeros too.

        Args:
            batch_size: Number of elements in a batch, at least 1.
            row_shape: Shape of a row. None in place of a dimension means the longest element of the batch.

        Returns:
            A data set of `SparseTensor` batches, whose rows are the elements.

        Raises:
            InvalidTypeError: If the elements have several components.
            InvalidArgumentError: If `batch_size` is smaller than 1, or if the elements have another rank than
                `row_shape`.
            DataLossError: If, during the iteration, an element is larger than `row_shape`.

        Example:
            >>> import numpy as np, penstock as ps
            >>> ds = ps.Dataset.range(1, 4).map(lambda n: np.full(n, n))
            >>> [b.to_list() for b in ds.sparse_batch(2, [3])]
            [[[1, 0, 0], [2, 2, 0]], [[3, 3, 3]]]
        """
        return self._then(batching.SparseBatch, batch_size=batch_size, row_shape=row_shape)

    def rebatch(self, batch_size: int | Sequence[int], drop_remainder: bool = False) -> Dataset:
        """Change the size of the batches.

        The result is that of `unbatch().batch(batch_size)`, with at most one copy. If a size divides the size of the
        input batches, the new batches are views of them.

        Args:
            batch_size: Number of elements in a batch, at least 1; or a list of sizes, which are used in turn.
            drop_remainder: If True, a smaller last batch is dropped. Default: False.

        Returns:
            A data set of batches of the new size.

        Raises:
            InvalidArgumentError: If a size is smaller than 1, or if the elements are not batches.

        Example:
            >>> import penstock as ps
            >>> [b.tolist() for b in ps.Dataset.range(7).batch(4).rebatch([2, 1])]
            [[0, 1], [2], [3, 4], [5], [6]]
        """
        return self._then(batching.Rebatch, sizes=batch_size, drop_remainder=bool(drop_remainder))

    def pad_to_cardinality(self, cardinality: int, mask_key: str = "valid") -> Dataset:
        """Append elements of zeros until the data set has a given number of elements.

        Use it before `batch` to evaluate on full batches without dropping an element. If the shape of the elements
        cannot be derived from the plan, penstock computes the first element when this method is called.

        Args:
            cardinality: Number of elements of the result.
            mask_key: Key of the mask, which is added to each element: True for an element of this data set, False for
                zeros.

        Returns:
            A data set of exactly `cardinality` dicts.

        Raises:
            InvalidArgumentError: If the data set has more elements. If their number is unknown, the error is raised
                during the iteration.
            InvalidTypeError: If the elements are not dicts of arrays.

        Example:
            >>> import penstock as ps
            >>> ds = ps.Dataset.from_tensor_slices({"x": [5, 6, 7]}).pad_to_cardinality(4).batch(2)
            >>> [(b["x"].tolist(), b["valid"].tolist()) for b in ds]
            [([5, 6], [True, True]), ([7, 0], [True, False])]
        """
        return self._then(PadToCardinality, count=cardinality, mask_key=mask_key, element=self._known.spec)

    def get_single_element(self) -> Any:
        """Return the only element of this data set.

        Returns:
            The element.

        Raises:
            InvalidArgumentError: If the data set has no element, or more than one.

        Example:
            >>> import penstock as ps
            >>> ps.Dataset.from_tensors([1, 2]).map(lambda x: x * 2).get_single_element()
            array([2, 4])
        """
        with self.iterator() as elements:
            found = list(islice(elements, 2))
        if len(found) != 1:
            count = "more than one element" if found else "no element"
            message = f"get_single_element needs a data set of exactly one element, this one has {count}."
            raise InvalidArgumentError(message, hint="take(1) keeps the first; batch(n) makes one element of many.")
        return found[0]


class Grouping(Base):
    """Methods for windows and groups."""

    def window(self, size: int, shift: int | None = None, stride: int = 1, drop_remainder: bool = False) -> Dataset:
        """Group consecutive elements into windows, each of which is a data set.

        An element that is a nest becomes a nest of data sets: a window over pairs is a pair of data sets. If an element
        of a window fails, the whole window fails. Windows share arrays, which are read-only.

        Args:
            size: Number of elements in a window.
            shift: Number of elements from the start of a window to the start of the next one. Default: `size`.
            stride: Distance between the elements of a window. Default: 1.
            drop_remainder: If True, windows at the end that have fewer elements are dropped. Default: False.

        Returns:
            A data set of windows.

        Raises:
            InvalidArgumentError: If `size`, `shift` or `stride` is smaller than 1.

        Example:
            >>> import penstock as ps
            >>> [[int(x) for x in window] for window in ps.Dataset.range(5).window(3)]
            [[0, 1, 2], [3, 4]]
            >>> ds = ps.Dataset.range(6).window(3, shift=2, stride=2, drop_remainder=True)
            >>> [batch.tolist() for batch in ds.flat_map(lambda window: window.batch(3))]
            [[0, 2, 4]]
        """
        return self._then(grouping.Window, size=size, shift=shift, stride=stride, drop_remainder=bool(drop_remainder))

    def group_by_window(
        self,
        key_func: Callable[..., Any],
        reduce_func: Callable[[Any, Any], Any],
        window_size: int | None = None,
        window_size_func: Callable[[Any], Any] | None = None,
    ) -> Dataset:
        """Group elements by key into windows, and reduce each window to a data set.

        A window is reduced as soon as it is full. After the input has ended, the smaller windows follow in ascending
        order of their keys. If `key_func` or `window_size_func` fails for an element, the element fails and is in no
        window. If `reduce_func` fails, the window is one failure. A checkpoint contains no elements: a resumed iterator
        reads the elements of open windows again.

        Args:
            key_func: A function of an element that returns its key, an integer.
            reduce_func: A function of the key (int64) and the window (a Dataset) that returns a Dataset.
            window_size: Number of elements in a window.
            window_size_func: A function of the key that returns the number of elements in its windows. Pass either this
                or `window_size`.

        Returns:
            A data set of the elements of all reduced windows.

        Raises:
            InvalidArgumentError: If not exactly one of `window_size` and `window_size_func` is passed.

        Example:
            >>> import penstock as ps
            >>> ds = ps.Dataset.range(7).group_by_window(lambda x: x % 2, lambda key, window: window.batch(3), 3)
            >>> [batch.tolist() for batch in ds]
            [[0, 2, 4], [1, 3, 5], [6]]
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
        """Batch elements of similar length, so that batches contain little padding.

        A batch is yielded when its bucket is full. At the end of the input, the smaller batches follow in the order of
        the buckets. A checkpoint contains no elements: a resumed iterator reads the elements of open buckets again.

        Args:
            element_length_func: A function of an element that returns its length.
            bucket_boundaries: Lengths at which a new bucket begins, in ascending order. An element whose length is
                smaller than `bucket_boundaries[i]`, and not smaller than the boundary before, goes to bucket `i`. The
                last bucket takes all longer elements.
            bucket_batch_sizes: Batch size of each bucket. There is one more size than there are boundaries.
            padded_shapes: As in `padded_batch`.
            padding_values: As in `padded_batch`.
            pad_to_bucket_boundary: If True, dimensions of unknown length are padded to the boundary of the bucket minus
                1, so that all batches of a bucket have the same shape. An element of the last bucket then fails.
            no_padding: If True, the elements of a batch are stacked without padding.
            drop_remainder: If True, the smaller batches at the end are dropped. Default: False.

        Returns:
            A data set of batches.

        Raises:
            InvalidArgumentError: If the boundaries do not ascend, or if the number of batch sizes does not fit them.

        Example:
            >>> import penstock as ps
            >>> ds = ps.Dataset.from_generator(lambda: [[1], [2, 3, 4], [5, 6], [7, 8, 9, 9]])
            >>> for batch in ds.bucket_by_sequence_length(len, bucket_boundaries=[3], bucket_batch_sizes=[2, 2]):
            ...     print(batch.tolist())
            [[1, 0], [5, 6]]
            [[2, 3, 4, 0], [7, 8, 9, 9]]
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
