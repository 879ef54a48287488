"""Methods of `Dataset`: windows, groups and buckets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from penstock.dataset.base import Base
from penstock.plan import grouping

if TYPE_CHECKING:
    from penstock.dataset.dataset import Dataset


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
