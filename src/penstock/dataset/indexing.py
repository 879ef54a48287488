"""Methods of `Dataset`: random access, global shuffles, provenance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Generic, SupportsIndex, overload

import numpy as np

from penstock.block.handover import handed_over
from penstock.block.spec import T_co
from penstock.dataset.base import Base, Located, inner
from penstock.dataset.epochs import EPOCHS
from penstock.errors import InvalidArgumentError, OutOfRangeError
from penstock.keys import fold
from penstock.options import Options
from penstock.permutation import permutation
from penstock.plan.counted import in_files
from penstock.plan.indexing import GlobalShuffle, Provenance, Split, WithProvenance, globally_shuffled, is_endless
from penstock.plan.node import INFINITE_CARDINALITY, Node, check_int
from penstock.plan.ops import Repeat

if TYPE_CHECKING:
    from penstock.dataset.dataset import Dataset
    from penstock.physical.access import Access
    from penstock.physical.lower import Lowering
    from penstock.runtime.run import Iterator

_ANY = -(2**63)
EPOCH: ContextVar[int | None] = ContextVar("epoch", default=None)  # epoch of the loader that reads the element


class Indexing(Base, Generic[T_co]):
    """Methods for access by index."""

    _last_access: tuple[int, Access] | None = None  # the epoch, and the access to the elements of this epoch

    if TYPE_CHECKING:  # defined by other base classes of Dataset

        def __len__(self) -> int: ...

        def cardinality(self) -> int: ...

        def iterator(self, *, epoch: int | None = None) -> Iterator[T_co]: ...

        def skip(self, count: int) -> Dataset[T_co]: ...

        def take(self, count: int) -> Dataset[T_co]: ...

        def shard(self, num_shards: int, index: int) -> Dataset[T_co]: ...

        def map(self, map_func: Callable[..., Any]) -> Dataset[Any]: ...

        def with_options(self, options: Options) -> Dataset[T_co]: ...

    def set_epoch(self, epoch: int) -> None:
        """Name the epoch of the next iteration, and of elements that are read by index from now on.

        A loader that reads by index, such as `torch.utils.data.DataLoader(ds)`, gives the random numbers of epoch 0
        until this is called. Call it before each iteration over the loader. Worker processes of the loader see it,
        persistent ones too. `penstock.torch.DataLoader` counts epochs itself; an epoch that is named here has priority.

        Args:
            epoch: Number of the epoch, from 0.

        Raises:
            InvalidArgumentError: If `epoch` is negative.

        Example:
            >>> import numpy as np, penstock as ps
            >>> ds = ps.Dataset.range(3).map(lambda x: np.random.default_rng(ps.element_key()).integers(100))
            >>> epochs = [[int(x) for x in ds.iterator(epoch=epoch)] for epoch in (0, 1)]
            >>> ds.set_epoch(1)
            >>> [int(ds[i]) for i in range(3)] == epochs[1]
            True
        """
        self._next_epoch = self._read_epoch = check_int("epoch", epoch, least=0, hint="Epochs are counted from 0.")
        EPOCHS.set(self._number, self._read_epoch)

    def at(self, index: int, epoch: int | None = None) -> T_co:
        """Return the element with a given index, without computing the elements before it.

        Elements have an index if the source has one and every step keeps it. These steps do: `map`, `batch`,
        `padded_batch`, `enumerate`, `take`, `skip`, `shard`, `split`, `zip`, `concatenate`, `repeat`, `prefetch`,
        `cache`, `assert_cardinality`, `shuffle(ps.ALL)`, `unbatch` after batches of the same size, and `flat_map` to
        data sets with an index. After a complete `snapshot`, all elements have an index. A cache before other steps is
        filled first, by an iteration. Functions are called in the calling thread.

        Args:
            index: Index of the element. A negative index counts from the end.
            epoch: Epoch of the random numbers and shuffles. Default: the epoch of the last `set_epoch` call, or 0.

        Returns:
            The element.

        Raises:
            OutOfRangeError: If there is no element with this index.
            UnimplementedError: If the elements have no index. `batch_at` computes all elements up to the index instead.

        Example:
            >>> import penstock as ps
            >>> ds = ps.Dataset.range(10).map(lambda x: x * x).batch(4)
            >>> ds.at(1), ds[-1]
            (array([16, 25, 36, 49]), array([64, 81]))
        """
        number = check_int("index", index, least=_ANY, hint="Slices give a data set: ds[2:5].")
        if epoch is None:
            epoch = self._named_epoch()
        found = self._access(self._read_epoch if epoch is None else epoch)
        size = found.size
        if size == INFINITE_CARDINALITY:
            if number < 0:
                raise _out_of_range(index, "the data set has no end to count from")
        elif not -size <= number < size:
            raise _out_of_range(index, f"the data set has {size} element{'' if size == 1 else 's'}, numbered from 0")
        elif number < 0:
            number += size
        if epoch is None and EPOCHS.repeats(self._number, number, size):
            from penstock.profiler.lint.unkeyed import warn_of_repeats

            warn_of_repeats(self._plan)
        made = found.rows(np.array([number]))
        if made.error is not None:
            raise made.error
        assert made.block is not None
        return handed_over(made.block, zero_copy=self._options.zero_copy)[0]

    @overload
    def __getitem__(self, key: slice) -> Dataset[T_co]: ...

    @overload
    def __getitem__(self, key: SupportsIndex) -> T_co: ...

    def __getitem__(self, key: Any) -> Any:
        """Return an element, or a data set of a slice of the elements.

        Args:
            key: An index, as in `at`; or a slice. A slice consists of the steps `skip`, `take` and `shard`, and also
                works for elements without an index.

        Returns:
            The element, or the data set.

        Example:
            >>> import penstock as ps
            >>> ds = ps.Dataset.range(10)
            >>> ds[3], [int(x) for x in ds[2:9:3]], [int(x) for x in ds[-2:]]
            (np.int64(3), [2, 5, 8], [8, 9])
        """
        return self._slice(key) if isinstance(key, slice) else self.at(key)

    def _slice(self, key: slice) -> Dataset[T_co]:
        """Return a slice as a data set. Bounds that count from the end need the length of the data set."""
        hint = "A data set is read forwards: ds[start:stop:step], the step at least 1."
        step = 1 if key.step is None else check_int("step", key.step, least=1, hint=hint)
        start = 0 if key.start is None else check_int("start", key.start, least=_ANY, hint=hint)
        stop = None if key.stop is None else check_int("stop", key.stop, least=_ANY, hint=hint)
        if start < 0:
            start = max(start + len(self), 0)
        if stop is not None and stop < 0:
            stop = max(stop + len(self), 0)
        found = self.skip(start)
        if stop is not None:
            found = found.take(max(stop - start, 0))
        return found if step == 1 else found.shard(step, 0)

    def _named_epoch(self) -> int | None:
        """Return the epoch set by `set_epoch` or by the reading loader, or None."""
        named = EPOCHS.get(self._number)
        return EPOCH.get() if named is None else named

    def _access(self, epoch: int) -> Access:
        from penstock.physical.access import access, require_access

        epoch = check_int("epoch", epoch, least=0, hint="Epochs are counted from 0.")
        if self._last_access is None or self._last_access[0] != epoch:
            hint = "batch_at(step) runs the data set up to the element instead."
            require_access(self._in_files(), "at(index)", hint=hint)
            self._last_access = epoch, access(self._plan, _beside(self._options, epoch))
        return self._last_access[1]

    def _in_files(self) -> Node:
        """Return the plan in which complete snapshots replace steps that prevent access by index."""
        from penstock.physical.access import obstacle

        if obstacle(self._plan) is None:
            return self._plan
        return in_files(self._plan, self._options.seed, self._options.deterministic)

    def batch_at(self, step: int, epoch: int | None = None) -> T_co:
        """Return the batch or element that a given step of a given epoch yields, such as to inspect a batch again.

        The call is fast if the elements have an index, see `at`. Otherwise penstock computes all elements up to this
        step. With `deterministic=False`, the steps of an iteration have no fixed elements.

        Args:
            step: Number of the step, from 0.
            epoch: Number of the epoch, from 0. Default: the epoch of the last `set_epoch` call, or 0.

        Returns:
            The element of that step, exactly as the iteration yields it.

        Raises:
            OutOfRangeError: If the epoch has fewer steps.

        Example:
            >>> import penstock as ps
            >>> ds = ps.Dataset.range(100).shuffle(ps.ALL).batch(10)
            >>> bool((ds.batch_at(3, epoch=2) == list(ds.iterator(epoch=2))[3]).all())
            True
        """
        from penstock.physical.access import obstacle

        number = check_int("step", step, least=0, hint="Batches are counted from 0.")
        if obstacle(self._in_files(), fill=False) is None:
            return self.at(number, epoch)
        if epoch is None:
            named = self._named_epoch()
            epoch = self._read_epoch if named is None else named
        epoch = check_int("epoch", epoch, least=0, hint="Epochs are counted from 0.")
        with self.skip(number).take(1).iterator(epoch=epoch) as elements:
            for element in elements:
                return element
        raise _out_of_range(number, "the epoch ended before it")

    def _shuffled_globally(self, seed: int | None, *, again: bool) -> Dataset[T_co]:
        """Implement `shuffle(ALL)`."""
        from penstock.physical.access import require_access

        with Located(GlobalShuffle.name):
            hint = "Shuffle before that step, or with a buffer: shuffle(10_000)."
            require_access(self._in_files(), "shuffle(ALL)", hint=hint)
            if is_endless(self._plan):
                message = "shuffle(ALL) needs a finite data set, and this one is infinite."
                raise InvalidArgumentError(
                    message, hint="Shuffle before repeat(): every repetition then has its own order."
                )
            plan = globally_shuffled(self._plan, seed=seed, reshuffle_each_iteration=again)
        return self._with(plan)

    def split(
        self, fractions: Sequence[float], seed: int = 0, stratify: Callable[..., Any] | None = None
    ) -> tuple[Dataset[T_co], ...]:
        """Split the elements at random into data sets that have none in common, such as for training and validation.

        The parts follow from the seed alone: they are the same in each epoch and program. Shuffle, augment and repeat
        after the split. Elements are read by their numbers, as by `shuffle(ps.ALL)`.

        Args:
            fractions: Share of each part. They sum to 1.
            seed: Seed of the random numbers.
            stratify: Function that is called as by `map` and returns the label of an element. Each part then has its
                share of each label. The labels are read at once: split before steps that take long.

        Returns:
            A data set for each fraction. Their sizes are exact, but for rounding.

        Raises:
            InvalidArgumentError: If the fractions do not sum to 1, or if the data set repeats or changes its order in
                each epoch.
            UnimplementedError: If the elements have no index. See `Dataset.at`.

        Example:
            >>> import numpy as np
            >>> import penstock as ps
            >>> ds = ps.Dataset.from_tensor_slices({"x": np.arange(10), "label": np.arange(10) // 5})
            >>> train, test = ds.split((0.8, 0.2), stratify=lambda element: element["label"])
            >>> len(train), sorted(int(element["label"]) for element in test)
            (8, [0, 1])
        """
        from penstock.physical.access import require_access

        shares = np.asarray(fractions, np.float64)
        if shares.ndim != 1 or not (shares > 0).all() or abs(shares.sum() - 1) > 1e-6:
            message = f"fractions must be positive and sum to 1, got {fractions!r}."
            raise InvalidArgumentError(message, hint="Write train, validation = ds.split((0.9, 0.1)).")
        for node in self._plan.walk():
            if isinstance(node, Repeat) or (isinstance(node, GlobalShuffle) and node.reshuffle_each_iteration):
                message = f"After {node.label}, the parts of a split would have elements in common."
                raise InvalidArgumentError(message, hint="Split first: shuffle and repeat the part for training.")
        require_access(self._in_files(), "split", hint="Split before that step.")
        count = len(self)
        numbers = permutation(fold(seed, 0), count).at(np.arange(count))
        places = np.arange(count)
        if stratify is not None:
            labels = np.array(list(self.map(stratify).with_options(Options(deterministic=True))))
            _, kinds, sizes = np.unique(labels[numbers], return_inverse=True, return_counts=True)
            # positions within the elements of the same label
            within = places - np.repeat(sizes.cumsum() - sizes, sizes)
            in_turn = np.argsort((within + 0.5) / np.repeat(sizes, sizes), kind="stable")
            places = np.argsort(kinds, kind="stable")[in_turn]
        parts = np.split(places, np.rint(shares.cumsum()[:-1] * count).astype(int))
        chosen = (numbers[np.sort(part)].tobytes() for part in parts)
        return tuple(self._then(Split, seed=seed, reshuffle_each_iteration=False, numbers=part) for part in chosen)

    def with_provenance(self) -> Dataset[tuple[T_co, Provenance]]:
        """Add to each element the file, the byte offset and the index it was read from.

        A cache that was filled without this step contains no provenance. Data sets without this step pay nothing for
        it.

        Returns:
            A data set of pairs `(element, Provenance)`. After a batch, the fields of `Provenance` are arrays with one
            value for each element of the batch.

        Example:
            >>> import penstock as ps
            >>> ds = ps.Dataset.range(0, 100, 10).shuffle(ps.ALL, seed=1).batch(3).with_provenance()
            >>> batch, provenance = next(iter(ds))
            >>> bool((provenance.position * 10 == batch).all()), provenance.file[0], provenance.offset
            (True, b'range(0, 100, 10)', array([-1, -1, -1]))
        """
        return self._then(WithProvenance)


def _beside(options: Options, epoch: int) -> Lowering:
    """Return the settings for access to elements outside of an iteration."""
    from penstock.physical.lower import Lowering
    from penstock.rewrite.driver import optimise_inner
    from penstock.runtime.executors import InlineExecutor

    return Lowering(options, InlineExecutor(options), epoch, optimise=optimise_inner, dataset=inner)


def _out_of_range(index: int, reason: str) -> OutOfRangeError:
    return OutOfRangeError(f"There is no element number {index}: {reason}.")
