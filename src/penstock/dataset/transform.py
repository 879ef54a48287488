"""What can be done with a data set: every method returns a new one."""

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

_UNBOUNDED = (1 << 32) - 1  # elements of a shuffle's buffer: as many as its draws can tell apart
DEFAULT_CYCLE_LENGTH = 16  # fixed: an order that followed the number of cores would differ between machines


U = TypeVar("U")
Parts = TypeVarTuple("Parts")  # of a tuple


class Transform(Base, Generic[T_co]):
    """The transformations of `Dataset`."""

    def _cut(self, kind: type[UnaryNode], count: int) -> Dataset:
        from penstock.profiler.lint.splits import warn_of_split

        made = self._then(kind, count=count)
        warn_of_split(made._plan)
        return made

    @overload  # the parts of a tuple are arguments
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
        """`map_func(element)` for every element; the parts of a plain tuple are separate arguments.

        The function is ordinary Python on numpy values: scalars come as numpy scalars, byte strings as `bytes`, arrays
        in C order. Its result is a nest of numbers, text, bytes, arrays and `None`; a list is a tuple of components, as
        in tf.data, and a list inside it one array. With `num_parallel_calls` up to that many calls run at once;
        `AUTOTUNE` lets the engine choose. Order is kept unless `deterministic=False`. Neighbouring maps of one number
        share it, as they run as one step, unless a function is seen to wait for another machine or to sleep: then each
        has its own.

        >>> import penstock as ps
        >>> ds = ps.Dataset.range(3).map(lambda x: (x, x * 2)).map(lambda a, b: a + b)
        >>> [int(x) for x in ds]
        [0, 3, 6]

        A function of numpy arithmetic and penstock's own operations runs on a Block of elements at a time where that
        gives the same bits; `explain()` says whether. Whatever the function raises arrives at the consumer with its own
        traceback and a note naming the stage, the line of this call, and for data the file and offset.

        `executor` says who calls the function. "auto": threads, and worker processes where measuring shows that they
        are faster and the function may go there, which `explain()` tells. "thread", "process": always those; a
        function that keeps what it has seen, prints or draws random numbers does so in its own process, where the
        others do not see it. Without `num_parallel_calls` "process" is one call at a time in a worker process, and
        "thread" the thread that asks for the element. "inline": always that thread, one call at a time whatever
        `num_parallel_calls` says, for what must stay there. Elements and order do not depend on it, and a state goes on
        under another one, as long as the same steps run together.

        >>> ds = ps.Dataset.range(3).map(lambda x: x + 1, num_parallel_calls=ps.AUTOTUNE, executor="thread")
        >>> [int(x) for x in ds]
        [1, 2, 3]

        Raises InvalidArgumentError for another `executor`, and for "process" a function that cannot be pickled.
        """
        return self._then(
            ops.Map,
            function=map_func,
            num_parallel_calls=num_parallel_calls,
            deterministic=deterministic,
            executor=executor,
        )

    def filter(self, predicate: Callable[..., Any]) -> Dataset[T_co]:
        """The elements for which `predicate(element)` is true.

        >>> import penstock as ps
        >>> [int(x) for x in ps.Dataset.range(10).filter(lambda x: x % 3 == 0)]
        [0, 3, 6, 9]

        Raises InvalidTypeError, when the element comes, for a predicate that returns no bool.
        """
        return self._then(ops.Filter, predicate=predicate)

    def flat_map(self, map_func: Callable[..., Dataset[U]]) -> Dataset[U]:
        """The elements of the data set `map_func(element)` returns, one data set after the other.

        >>> import penstock as ps
        >>> ds = ps.Dataset.range(1, 4).flat_map(lambda n: ps.Dataset.range(n))
        >>> [int(x) for x in ds]
        [0, 0, 1, 0, 1, 2]

        Raises InvalidTypeError, when the element comes, for a function that returns no Dataset.
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
        """`block_length` elements from each of `cycle_length` data sets in turn, made by `map_func(element)`.

        An input that ends passes its turn on; the next input takes its place when the turn comes round. With
        `num_parallel_calls` inputs are opened and read ahead, that many at once (AUTOTUNE: as many as help), and the
        order stays as it is, also where `deterministic` would allow another. Unlike tf.data's, the default
        `cycle_length` is fixed (16) and not the number of cores, so that the order is the same on every machine;
        AUTOTUNE means the same 16.

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
        """`batch_size` elements stacked into one, along a new first axis; the last may be smaller.

        >>> import penstock as ps
        >>> [b.tolist() for b in ps.Dataset.range(5).batch(2)]
        [[0, 1], [2, 3], [4]]

        Byte strings become an object array of `bytes`. Behind a parallel map the workers make the batches, and their
        memory is used again once nobody holds them. Raises InvalidArgumentError for elements of differing shape.
        Slices of a ragged tensor, as `unbatch` makes them, become a ragged tensor again.
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
        """The slices of every element along its first axis.

        >>> import penstock as ps
        >>> [int(x) for x in ps.Dataset.from_tensors([1, 2, 3]).unbatch()]
        [1, 2, 3]

        Raises InvalidArgumentError for scalars and for components of differing extent.
        """
        return self._then(Unbatch)

    if TYPE_CHECKING:  # of a class beside this one

        def _shuffled_globally(self, seed: int | None, *, again: bool) -> Dataset[T_co]: ...

    def shuffle(
        self, buffer_size: int | All, seed: int | None = None, reshuffle_each_iteration: bool | None = None
    ) -> Dataset[T_co]:
        """Elements in random order: each is a uniform pick from a buffer of `buffer_size`, refilled by the next.

        The order follows from the seed and the epoch alone, on any machine; without a seed from `Options.seed` (0) and
        the place in the plan. By default every pass and every turn of `repeat` has another order.

        >>> import penstock as ps
        >>> ds = ps.Dataset.range(5).shuffle(5, seed=1, reshuffle_each_iteration=False)
        >>> [int(x) for x in ds] == [int(x) for x in ds]
        True

        A checkpoint holds no elements of the buffer: they are read again. UNKNOWN_CARDINALITY is a buffer for all
        elements, however many come. Raises InvalidArgumentError for other numbers below 1, but -1, which is AUTOTUNE.

        `shuffle(ps.ALL)` draws from all orders of all elements, without a buffer and without a wait: it shuffles their
        numbers, and maps run behind it. It works for what can be read by number, as `at` says, else it raises
        UnimplementedError. A cache below it is filled first. Up to 65536 elements every order is equally likely; above
        that the order is a network of keyed draws, `penstock.permutation`.

        >>> ds = ps.Dataset.range(10**9).map(lambda x: x * 2).shuffle(ps.ALL, seed=1)
        >>> [int(x) for x in ds.take(2)] == [int(ds.at(0)), int(ds.at(1))]
        True

        `shuffle(ps.AUTOTUNE)` is `shuffle(ps.ALL)` where that works, the data set ends, and no Parquet file decodes a
        row group for each row. Else it has a buffer of a size that follows from the plan alone, so that the order is
        the same on every machine: as many elements as 256 MiB hold by their spec, at least 16, at most 65536 and not
        more than there are. What has no fixed size counts 128 KiB for all of it together, in a batch for each of its
        elements; so does what a function has made. That gives up to 2048. `explain()` says what was chosen, and why.

        >>> ps.Dataset.range(10).shuffle(ps.AUTOTUNE)
        <Dataset shuffle(ALL): TensorSpec(shape=(), dtype=int64), 10 elements>
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
        """The data set `count` times over; for ever with None or any negative number.

        >>> import penstock as ps
        >>> [int(x) for x in ps.Dataset.range(2).repeat(2)]
        [0, 1, 0, 1]
        """
        return self._then(ops.Repeat, count=-1 if count is None else count)

    def take(self, count: int) -> Dataset[T_co]:
        """The first `count` elements; all with any negative number.

        >>> import penstock as ps
        >>> [int(x) for x in ps.Dataset.range(10).take(2)]
        [0, 1]
        """
        return self._cut(ops.Take, count)

    def skip(self, count: int) -> Dataset[T_co]:
        """All but the first `count` elements; none with any negative number.

        >>> import penstock as ps
        >>> [int(x) for x in ps.Dataset.range(5).skip(3)]
        [3, 4]
        """
        return self._cut(ops.Skip, count)

    def shard(self, num_shards: int, index: int) -> Dataset[T_co]:
        """Every `num_shards`-th element, beginning with number `index`: one consumer's part of several.

        >>> import penstock as ps
        >>> [int(x) for x in ps.Dataset.range(7).shard(3, 1)]
        [1, 4]

        Raises InvalidArgumentError for an index that is not below num_shards.
        """
        return self._then(ops.Shard, num_shards=num_shards, index=index)

    def concatenate(self, dataset: Dataset[U]) -> Dataset[T_co | U]:
        """All elements of this data set, then all of the other.

        >>> import penstock as ps
        >>> [int(x) for x in ps.Dataset.range(2).concatenate(ps.Dataset.range(5, 7))]
        [0, 1, 5, 6]

        Raises InvalidTypeError for differing structures or dtypes.
        """
        if not isinstance(dataset, Base):
            message = f"concatenate takes a Dataset, got {type(dataset).__name__}."
            raise InvalidTypeError(message)
        merged = self._options._merged(dataset.options())
        return self._of(Concatenate(parts=(self._plan, dataset._plan)), merged)

    def enumerate(self, start: int = 0) -> Dataset[tuple[np.int64, T_co]]:
        """`(number, element)`, counted from `start` as int64.

        >>> import penstock as ps
        >>> [(int(i), x) for i, x in ps.Dataset.from_tensor_slices(["a", "b"]).enumerate(5)]
        [(5, b'a'), (6, b'b')]
        """
        return self._then(ops.Enumerate, start=start)

    def prefetch(self, buffer_size: int | None) -> Dataset[T_co]:
        """Up to `buffer_size` elements made ahead while the consumer works; with AUTOTUNE or None bounded by bytes.

        They count in the byte budget, which may leave room for fewer. A parallel map or batch is ahead by itself:
        behind one, a number says how far at least.

        >>> import penstock as ps
        >>> [int(x) for x in ps.Dataset.range(3).prefetch(ps.AUTOTUNE)]
        [0, 1, 2]
        """
        return self._then(ops.Prefetch, buffer_size=buffer_size)

    def cache(self, filename: str | os.PathLike[str] = "") -> Dataset[T_co]:
        """A pass is kept, in memory or in files, and serves all later ones, also of data sets built on this one.

        In memory that is the first complete pass; one that stops early keeps nothing. In files, below the folder
        `filename`, it serves other processes too, and a part of a pass is used: the next one goes on behind it. Files
        belong to what they were made of, as those of `snapshot`, whose rules hold for them. A file that is damaged is
        made once more, with a warning. A loop gets copies of what is kept, and functions views that they can only read.

        >>> import tempfile, penstock as ps
        >>> calls = []
        >>> ds = ps.Dataset.range(3).map(lambda x: calls.append(x) or x).cache()
        >>> [len(list(ds)) for epoch in range(3)], len(calls)
        ([3, 3, 3], 3)
        >>> ds = ps.Dataset.range(3).map(lambda x: calls.append(x) or x).cache(tempfile.mkdtemp())
        >>> [len(list(ds)) for epoch in range(3)], len(calls)
        ([3, 3, 3], 6)

        Every pass is that of epoch 0: shuffle behind it. Raises, with a `filename`, InvalidArgumentError for a data set
        without end, and InvalidTypeError, in the place of the first element, for elements that no file holds.
        """
        if filename == "":
            return self._then(Cache)
        return self._then(DiskCache, path=filename)

    def with_options(self, options: Options) -> Dataset[T_co]:
        """The same data set with settings changed; where both set one, the later call wins.

        >>> import penstock as ps
        >>> ps.Dataset.range(3).with_options(ps.Options(seed=7)).options()
        Options(seed=7)
        """
        if not isinstance(options, Options):
            message = f"with_options takes penstock.Options, got {type(options).__name__}."
            raise InvalidTypeError(message)
        return self._of(self._plan, self._options._merged(options))

    def apply(self, transformation_func: Callable[[Dataset[T_co]], Dataset[U]]) -> Dataset[U]:
        """`transformation_func(self)`: chains steps of your own with the built-in ones.

        >>> import penstock as ps
        >>> def every_other(ds):
        ...     return ds.shard(2, 0)
        >>> [int(x) for x in ps.Dataset.range(5).apply(every_other)]
        [0, 2, 4]

        Raises InvalidTypeError for a function that returns no Dataset.
        """
        found = transformation_func(cast("Dataset[T_co]", self))
        if not isinstance(found, Base):
            message = f"The function given to apply must return a Dataset, got {type(found).__name__}."
            raise InvalidTypeError(message)
        return found
