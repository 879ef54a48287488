"""Methods of `Dataset` that transform elements. Each method returns a new data set."""

from __future__ import annotations

import os
from collections.abc import Callable
from numbers import Integral
from typing import TYPE_CHECKING, Any, Generic, TypeVar, TypeVarTuple, cast, overload

import numpy as np

from penstock.block.spec import T_co
from penstock.dataset.base import Base
from penstock.errors import InvalidTypeError
from penstock.options import Options
from penstock.plan import ops
from penstock.plan.batching import BatchOfSlices
from penstock.plan.counted import Unbatch, holds_ragged_slices
from penstock.plan.indexing import All, autotuned_buffer, unwieldy
from penstock.plan.inputs import Concatenate
from penstock.plan.node import AUTOTUNE, UNKNOWN_CARDINALITY, UnaryNode
from penstock.plan.storing import Cache, DiskCache

if TYPE_CHECKING:
    from penstock.dataset.dataset import Dataset

_UNBOUNDED = (1 << 32) - 1  # elements of an unbounded shuffle buffer: its random numbers have 32 bits
DEFAULT_CYCLE_LENGTH = 16  # fixed, because an order that depends on the number of cores would differ between machines


U = TypeVar("U")
Parts = TypeVarTuple("Parts")  # of a tuple


class Transform(Base, Generic[T_co]):
    """The transformations of `Dataset`."""

    def _cut(self, kind: type[UnaryNode], count: int) -> Dataset:
        from penstock.profiler.lint.splits import warn_of_split

        made = self._then(kind, count=count)
        warn_of_split(made._plan)
        return made

    @overload  # the components of a tuple are arguments
    def map(
        self: Transform[tuple[*Parts]],
        map_func: Callable[[*Parts], U],
        num_parallel_calls: int | None = ...,
        deterministic: bool | None = ...,
        *,
        executor: str = ...,
    ) -> Dataset[U]: ...

    @overload
    def map(
        self,
        map_func: Callable[[T_co], U],
        num_parallel_calls: int | None = ...,
        deterministic: bool | None = ...,
        *,
        executor: str = ...,
    ) -> Dataset[U]: ...

    @overload  # elements of any type
    def map(
        self: Transform[tuple[Any, ...]],
        map_func: Callable[..., U],
        num_parallel_calls: int | None = ...,
        deterministic: bool | None = ...,
        *,
        executor: str = ...,
    ) -> Dataset[U]: ...

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        *,
        executor: str = "auto",
    ) -> Dataset:
        """Apply a function to every element.

        The function is ordinary Python on numpy values. Scalars are numpy scalars, byte strings are `bytes`, and arrays
        are in C order. If the function consists of numpy arithmetic and operations of penstock, penstock may run it on
        many elements at once; the results are the same bits, and `explain()` reports it. Kernels run the transforms of
        torchvision that the function calls with images of Pillow. An exception of the function reaches the consumer
        with its own traceback, and with a note that names the step, the line of this call, and the file and offset of
        the data.

        Args:
            map_func: The function. The components of a plain tuple are separate arguments. It returns a nest of
                numbers, strings, byte strings, arrays and `None`. As in tf.data, a returned list is a tuple of
                components. A list inside a nest is one array.
            num_parallel_calls: Largest number of calls that run at the same time. `ps.AUTOTUNE` lets penstock choose.
                Adjacent maps with the same value run as one step and share the number, unless one of their functions
                waits for another machine. Default: one call at a time.
            deterministic: If False, elements may be yielded in another order. Default: `Options.deterministic`.
            executor: Threads or processes that call the function. Elements and order do not depend on it.

                - `"auto"`: threads, or worker processes if they are measured to be faster and the function can be
                  pickled.
                - `"thread"`: threads of this process.
                - `"process"`: worker processes. Side effects of the function, such as `print` or a counter, happen
                  there.
                - `"inline"`: the thread that requests the element, with one call at a time.

        Returns:
            A data set of the results.

        Raises:
            InvalidTypeError: If `map_func` cannot be called.
            InvalidArgumentError: If `num_parallel_calls` is smaller than 1, if `executor` is another string, or if the
                function cannot be pickled for `"process"`.

        Example:
            >>> import penstock as ps
            >>> ds = ps.Dataset.range(3).map(lambda x: (x, x * 2))
            >>> ds = ds.map(lambda a, b: a + b, num_parallel_calls=ps.AUTOTUNE)
            >>> [int(x) for x in ds]
            [0, 3, 6]
        """
        return self._then(
            ops.Map,
            function=map_func,
            num_parallel_calls=num_parallel_calls,
            deterministic=deterministic,
            executor=executor,
        )

    def filter(self, predicate: Callable[..., Any]) -> Dataset[T_co]:
        """Keep the elements for which a function returns True.

        Args:
            predicate: A function of an element that returns a bool. The components of a plain tuple are separate
                arguments.

        Returns:
            A data set of the elements for which `predicate` returned True, in the same order.

        Raises:
            InvalidTypeError: If `predicate` cannot be called, or, during the iteration, if it returns no bool.

        Example:
            >>> import penstock as ps
            >>> [int(x) for x in ps.Dataset.range(10).filter(lambda x: x % 3 == 0)]
            [0, 3, 6, 9]
        """
        return self._then(ops.Filter, predicate=predicate)

    def flat_map(self, map_func: Callable[..., Dataset[U]]) -> Dataset[U]:
        """Map each element to a data set, and concatenate these data sets.

        Args:
            map_func: A function of an element that returns a Dataset. The components of a plain tuple are separate
                arguments.

        Returns:
            A data set of the elements of all returned data sets, one data set after another.

        Raises:
            InvalidTypeError: If `map_func` cannot be called, or, during the iteration, if it returns no Dataset.

        Example:
            >>> import penstock as ps
            >>> ds = ps.Dataset.range(1, 4).flat_map(lambda n: ps.Dataset.range(n))
            >>> [int(x) for x in ds]
            [0, 0, 1, 0, 1, 2]
        """
        return self._then(ops.FlatMap, function=map_func)

    def interleave(
        self,
        map_func: Callable[..., Dataset[U]],
        cycle_length: int | None = None,
        block_length: int | None = None,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
    ) -> Dataset[U]:
        """Map each element to a data set, and take elements from several of these data sets in turn.

        When one of the data sets ends, the data set of the next input element replaces it.

        Args:
            map_func: A function of an element that returns a Dataset, such as `ps.TFRecordDataset` for a file name.
            cycle_length: Number of data sets that are open at the same time. Default, also for `ps.AUTOTUNE`: 16. In
                tf.data the default depends on the number of cores, and so does the order of the elements.
            block_length: Number of consecutive elements from each data set. Default: 1.
            num_parallel_calls: Largest number of data sets that are opened and read in advance at the same time.
                `ps.AUTOTUNE` lets penstock choose. Default: no data set is read in advance.
            deterministic: Accepted for tf.data's sake. The order is always the same.

        Returns:
            A data set of the elements of all returned data sets.

        Raises:
            InvalidTypeError: If `map_func` cannot be called, or, during the iteration, if it returns no Dataset.
            InvalidArgumentError: If `cycle_length`, `block_length` or `num_parallel_calls` is smaller than 1.

        Example:
            >>> import penstock as ps
            >>> ds = ps.Dataset.range(3).interleave(lambda i: ps.Dataset.from_tensors(i).repeat(2), cycle_length=2)
            >>> [int(x) for x in ds]
            [0, 1, 0, 1, 2, 2]
        """
        return self._then(
            ops.Interleave,
            function=map_func,
            cycle_length=DEFAULT_CYCLE_LENGTH if cycle_length in (None, AUTOTUNE) else cycle_length,
            block_length=1 if block_length is None else block_length,
            num_parallel_calls=num_parallel_calls,
            deterministic=deterministic,
        )

    def batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
    ) -> Dataset:
        """Stack consecutive elements along a new first axis.

        After a parallel map, the workers build the batches. The memory of a batch is reused when no reference to the
        batch is left. Slices of a ragged tensor, as `unbatch` returns them, become a ragged tensor again.

        Args:
            batch_size: Number of elements in a batch, at least 1.
            drop_remainder: If True, a smaller last batch is dropped. Default: False.
            num_parallel_calls: Largest number of batches that are built at the same time. `ps.AUTOTUNE` lets penstock
                choose.
            deterministic: If False, batches may be yielded in another order. Default: `Options.deterministic`.

        Returns:
            A data set of batches. Byte strings become an object array of `bytes`.

        Raises:
            InvalidArgumentError: If `batch_size` is smaller than 1, or, during the iteration, if the elements of a
                batch differ in shape. Use `padded_batch` or `ragged_batch` for such elements.

        Example:
            >>> import penstock as ps
            >>> [b.tolist() for b in ps.Dataset.range(5).batch(2)]
            [[0, 1], [2, 3], [4]]
        """
        if holds_ragged_slices(self._plan):
            return self._then(BatchOfSlices, batch_size=batch_size, drop_remainder=bool(drop_remainder))
        return self._then(
            ops.Batch,
            batch_size=batch_size,
            drop_remainder=bool(drop_remainder),
            num_parallel_calls=num_parallel_calls,
            deterministic=deterministic,
        )

    def unbatch(self) -> Dataset:
        """Split each element into its slices along the first axis.

        Returns:
            A data set of the slices.

        Raises:
            InvalidArgumentError: If an element is a scalar, or if the first axes of its components differ in length.

        Example:
            >>> import penstock as ps
            >>> [int(x) for x in ps.Dataset.from_tensors([1, 2, 3]).unbatch()]
            [1, 2, 3]
        """
        return self._then(Unbatch)

    if TYPE_CHECKING:  # defined by another base class of Dataset

        def _shuffled_globally(self, seed: int | None, *, again: bool) -> Dataset[T_co]: ...

    def shuffle(
        self, buffer_size: int | All, seed: int | None = None, reshuffle_each_iteration: bool | None = None
    ) -> Dataset[T_co]:
        """Shuffle the elements of this data set.

        With a number, the shuffle fills a buffer with the first `buffer_size` elements, then repeatedly yields a random
        element of the buffer and replaces it with the next input element. A checkpoint does not contain the elements of
        the buffer: a resumed iterator reads them again.

        With `ps.ALL`, penstock shuffles the indices of the elements. The shuffle is perfect, needs no buffer, and
        yields its first element at once. It needs elements with an index, see `Dataset.at`. A cache before this step is
        filled first. Up to 65536 elements, all orders are equally likely; a larger data set uses a keyed permutation.

        With `ps.AUTOTUNE`, penstock chooses `ps.ALL` if the data set is finite and has an index, unless each row would
        decode a whole Parquet row group. Otherwise, it chooses a buffer of 16 to 65536 elements that holds at most 256
        MiB. Elements of unknown size count as 128 KiB. The choice depends on the plan only, not on the machine;
        `explain()` reports it.

        Args:
            buffer_size: Number of elements in the buffer, at least 1; or `ps.ALL`, or `ps.AUTOTUNE`.
                `ps.UNKNOWN_CARDINALITY` means a buffer for all elements.
            seed: Seed of the order. By default the order depends on `Options.seed` and the position of the step in the
                plan.
            reshuffle_each_iteration: If True, each epoch and each repetition of `repeat` has another order. Default:
                True.

        Returns:
            A data set with the same elements in another order.

        Raises:
            InvalidArgumentError: If `buffer_size` is smaller than 1, or if it is `ps.ALL` and the data set is infinite.
            UnimplementedError: If `buffer_size` is `ps.ALL` and the elements have no index.

        Determinism: The order depends on the seed, the epoch and the input only, not on the machine.

        Example:
            >>> import penstock as ps
            >>> ds = ps.Dataset.range(5).shuffle(5, seed=1, reshuffle_each_iteration=False)
            >>> [int(x) for x in ds] == [int(x) for x in ds]
            True
            >>> ds = ps.Dataset.range(10**9).map(lambda x: x * 2).shuffle(ps.ALL, seed=1)
            >>> [int(x) for x in ds.take(2)] == [int(ds.at(0)), int(ds.at(1))]
            True
            >>> ps.Dataset.range(10).filter(lambda x: x > 3).shuffle(ps.AUTOTUNE)
            <Dataset shuffle(AUTOTUNE: 65536): TensorSpec(shape=(), dtype=int64), unknown elements>
        """
        again = True if reshuffle_each_iteration is None else bool(reshuffle_each_iteration)
        if isinstance(buffer_size, All):
            return self._shuffled_globally(seed, again=again)
        if isinstance(buffer_size, Integral) and buffer_size == AUTOTUNE:
            from penstock.physical.access import obstacle

            found = obstacle(self._plan, fill=False) or unwieldy(self._plan)
            if found is None:
                return self._shuffled_globally(seed, again=again)
            node, reason = found
            buffer_size = autotuned_buffer(self._plan, f"{node.label} {reason}")
        elif buffer_size == UNKNOWN_CARDINALITY:
            buffer_size = _UNBOUNDED
        return self._then(ops.Shuffle, buffer_size=buffer_size, seed=seed, reshuffle_each_iteration=again)

    def repeat(self, count: int | None = None) -> Dataset[T_co]:
        """Repeat this data set.

        Args:
            count: Number of repetitions. None or a negative number repeats the data set without end.

        Returns:
            A data set of all elements, `count` times.

        Example:
            >>> import penstock as ps
            >>> [int(x) for x in ps.Dataset.range(2).repeat(2)]
            [0, 1, 0, 1]
        """
        return self._then(ops.Repeat, count=-1 if count is None else count)

    def take(self, count: int) -> Dataset[T_co]:
        """Keep the first elements.

        Args:
            count: Number of elements to keep. A negative number keeps all elements.

        Returns:
            A data set of at most `count` elements.

        Example:
            >>> import penstock as ps
            >>> [int(x) for x in ps.Dataset.range(10).take(2)]
            [0, 1]
        """
        return self._cut(ops.Take, count)

    def skip(self, count: int) -> Dataset[T_co]:
        """Drop the first elements.

        Args:
            count: Number of elements to drop. A negative number drops all elements.

        Returns:
            A data set of the other elements.

        Example:
            >>> import penstock as ps
            >>> [int(x) for x in ps.Dataset.range(5).skip(3)]
            [3, 4]
        """
        return self._cut(ops.Skip, count)

    def shard(self, num_shards: int, index: int) -> Dataset[T_co]:
        """Keep one of every `num_shards` elements, such as for one of several processes.

        Args:
            num_shards: Number of shards, at least 1.
            index: Index of the shard to keep, from 0.

        Returns:
            A data set of the elements `index`, `index + num_shards`, `index + 2 * num_shards` and so on.

        Raises:
            InvalidArgumentError: If `num_shards` is smaller than 1, or if `index` is negative or not smaller than
                `num_shards`.

        Example:
            >>> import penstock as ps
            >>> [int(x) for x in ps.Dataset.range(7).shard(3, 1)]
            [1, 4]
        """
        return self._then(ops.Shard, num_shards=num_shards, index=index)

    def concatenate(self, dataset: Dataset[U]) -> Dataset[T_co | U]:
        """Append another data set.

        Args:
            dataset: The other data set. Its elements have the same structure and dtypes.

        Returns:
            A data set of all elements of this data set, then all elements of `dataset`.

        Raises:
            InvalidTypeError: If `dataset` is not a Dataset, or if the structures or dtypes differ.

        Example:
            >>> import penstock as ps
            >>> [int(x) for x in ps.Dataset.range(2).concatenate(ps.Dataset.range(5, 7))]
            [0, 1, 5, 6]
        """
        if not isinstance(dataset, Base):
            raise InvalidTypeError(f"concatenate takes a Dataset, got {type(dataset).__name__}.")
        merged = self._options._merged(dataset.options())
        return self._of(Concatenate(parts=(self._plan, dataset._plan)), merged)

    def enumerate(self, start: int = 0) -> Dataset[tuple[np.int64, T_co]]:
        """Number the elements.

        Args:
            start: Number of the first element.

        Returns:
            A data set of pairs `(number, element)`. The numbers are int64.

        Example:
            >>> import penstock as ps
            >>> [(int(i), x) for i, x in ps.Dataset.from_tensor_slices(["a", "b"]).enumerate(5)]
            [(5, b'a'), (6, b'b')]
        """
        return self._then(ops.Enumerate, start=start)

    def prefetch(self, buffer_size: int | None) -> Dataset[T_co]:
        """Compute elements in advance while the consumer works.

        The elements count in the memory budget, which may allow fewer than `buffer_size`. A parallel map or batch
        computes elements in advance without this step; after such a step, `buffer_size` is the smallest number.

        Args:
            buffer_size: Largest number of elements that are ready at the same time, or more if all of them together
                take a millisecond and have up to 2 MB. With `ps.AUTOTUNE` or None, only the memory budget limits the
                number.

        Returns:
            A data set of the same elements in the same order.

        Raises:
            InvalidArgumentError: If `buffer_size` is negative and not `ps.AUTOTUNE`.

        Example:
            >>> import penstock as ps
            >>> [int(x) for x in ps.Dataset.range(3).prefetch(ps.AUTOTUNE)]
            [0, 1, 2]
        """
        return self._then(ops.Prefetch, buffer_size=buffer_size)

    def cache(self, filename: str | os.PathLike[str] = "") -> Dataset[T_co]:
        """Store the elements of the first epoch, in memory or in files, and read them in all later epochs.

        In memory, the cache is filled by the first complete iteration; an iteration that stops early stores nothing. In
        files, an iteration that stops early stores its elements, and the next iteration continues after them. Other
        processes use the same files. penstock detects files that belong to another pipeline, as described for
        `snapshot`, and computes damaged files again with a warning. Every epoch yields the same elements: put `shuffle`
        and random augmentation after this step.

        Args:
            filename: Folder of the cache files. By default, the cache is in memory.

        Returns:
            A data set of the same elements. The consumer receives copies of cached arrays. Functions receive read-only
            views.

        Raises:
            InvalidArgumentError: If a file name is passed and the data set is infinite.
            InvalidTypeError: If, during the iteration, a file cannot store the elements.

        Example:
            >>> import tempfile, penstock as ps
            >>> calls = []
            >>> ds = ps.Dataset.range(3).map(lambda x: calls.append(x) or x).cache()
            >>> [len(list(ds)) for epoch in range(3)], len(calls)
            ([3, 3, 3], 3)
            >>> ds = ps.Dataset.range(3).map(lambda x: calls.append(x) or x).cache(tempfile.mkdtemp())
            >>> [len(list(ds)) for epoch in range(3)], len(calls)
            ([3, 3, 3], 6)
        """
        if filename == "":
            return self._then(Cache)
        return self._then(DiskCache, path=filename)

    def with_options(self, options: Options) -> Dataset[T_co]:
        """Set options of this data set.

        Args:
            options: The options. A setting replaces the same setting of an earlier `with_options` call.

        Returns:
            A data set of the same elements with these options.

        Raises:
            InvalidTypeError: If `options` is not a `ps.Options` object.

        Example:
            >>> import penstock as ps
            >>> ps.Dataset.range(3).with_options(ps.Options(seed=7)).options()
            Options(seed=7)
        """
        if not isinstance(options, Options):
            raise InvalidTypeError(f"with_options takes penstock.Options, got {type(options).__name__}.")
        return self._of(self._plan, self._options._merged(options))

    def apply(self, transformation_func: Callable[[Dataset[T_co]], Dataset[U]]) -> Dataset[U]:
        """Apply a function to this data set, to chain steps of your own with the built-in ones.

        Args:
            transformation_func: A function of a data set that returns a Dataset.

        Returns:
            The data set that `transformation_func(self)` returns.

        Raises:
            InvalidTypeError: If the function returns no Dataset.

        Example:
            >>> import penstock as ps
            >>> def every_other(ds):
            ...     return ds.shard(2, 0)
            >>> [int(x) for x in ps.Dataset.range(5).apply(every_other)]
            [0, 2, 4]
        """
        found = transformation_func(cast("Dataset[T_co]", self))
        if not isinstance(found, Base):
            raise InvalidTypeError(f"The function given to apply must return a Dataset, got {type(found).__name__}.")
        return found
