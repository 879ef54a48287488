"""Dataset: a plan and the options for running it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Collection
from collections.abc import Iterator as AbstractIterator
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

import numpy as np

from penstock.block.spec import LeafSpec, T_co, TensorSpec, any_extent, spec_of
from penstock.block.structure import flatten, leaves_rank_open, map_leaves
from penstock.dataset.base import Base, inner, reduced
from penstock.dataset.batching import Batching, Grouping
from penstock.dataset.converting import Converting
from penstock.dataset.create import Create, Sequences
from penstock.dataset.distributing import Distributing
from penstock.dataset.explaining import Explaining, Showing
from penstock.dataset.frameworks import Frameworks
from penstock.dataset.indexing import Indexing
from penstock.dataset.mixing import Mixing
from penstock.dataset.packing import Packing
from penstock.dataset.stateful import Stateful
from penstock.dataset.storing import Storing
from penstock.dataset.transform import Transform
from penstock.errors import InvalidTypeError
from penstock.habits.tables import METHODS
from penstock.habits.teach import Taught, teach, unknown
from penstock.options import Options
from penstock.plan.batching import PaddedBatch, RaggedBatch, Rebatch, SparseBatch
from penstock.plan.counted import Seen, Unbatch, count_text, counted, known_cardinality
from penstock.plan.grouping import BucketBySequenceLength, GroupByWindow
from penstock.plan.inputs import Scan
from penstock.plan.node import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Node
from penstock.plan.ops import FlatMap, Interleave, Skip, Take
from penstock.plan.packing import BatchByTokens, Pack

if TYPE_CHECKING:
    from penstock.profiler.lint.advice import Report
    from penstock.profiler.memory import MemoryReport
    from penstock.profiler.placement.placing import Placing
    from penstock.runtime.observers import Instrument
    from penstock.runtime.run import Iterator, RunSettings


class Dataset(
    Create,
    Converting,
    Sequences,
    Transform[T_co],
    Batching,
    Grouping,
    Mixing,
    Stateful[T_co],
    Indexing[T_co],
    Packing,
    Distributing[T_co],
    Storing,
    Explaining,
    Frameworks,
    Showing,
    Generic[T_co],
    metaclass=Taught,
):
    """A sequence of elements: nests (tuples, dicts, named tuples, dataclasses) of numpy values.

    A data set is lazy: reading and computing start with an iteration. It can be iterated any number of times. Each
    iteration is an epoch, and shuffles have another order in each epoch. Methods return new data sets and never change
    this one.

    For type checkers, `Dataset` is generic in the type of an element: `Dataset.range(3)` is a `Dataset[np.int64]`, and
    `map` returns a `Dataset` of the results of its function.

    Example:
        >>> import penstock as ps
        >>> ds = ps.Dataset.range(10).map(lambda x: x * x).batch(4)
        >>> for batch in ds:
        ...     print(batch)
        [0 1 4 9]
        [16 25 36 49]
        [64 81]
    """

    @property
    def __penstock_dataset__(self) -> Node:
        """The plan, for code that does not import this class. A data set may be an element of another one."""
        return self._plan

    def __iter__(self) -> Iterator[T_co]:
        return self.iterator()

    def iterator(
        self, *, epoch: int | None = None, executor: str = "auto", instrument: Instrument | None = None
    ) -> Iterator[T_co]:
        """Start an iteration, as `iter(ds)` does, with arguments.

        Args:
            epoch: Number of the epoch, from 0, which shuffles and random numbers depend on. By default, this object
                counts its iterations.
            executor: `"auto"` runs the steps as they were declared. `"thread"` or `"process"` runs all parallel maps
                there. `"inline"` runs everything in the calling thread, for debugging.
            instrument: An observer of the workers, such as `ps.Recorder`.

        Returns:
            An iterator with `state_dict`, `load_state_dict` and `close`.

        Raises:
            InvalidArgumentError: If `executor` is another string, or if `epoch` is negative.

        Example:
            >>> import penstock as ps
            >>> ds = ps.Dataset.range(4).shuffle(4)
            >>> list(ds.iterator(epoch=3)) == list(ds.iterator(epoch=3, executor="inline"))
            True
        """
        from penstock.runtime.observers import Silent
        from penstock.runtime.run import RunSettings

        return self._pass(epoch, RunSettings(executor, instrument or Silent(), dataset=inner))

    def _pass(self, epoch: int | None, settings: RunSettings) -> Iterator[T_co]:
        from penstock.runtime import profiled  # here and below: the engine comes with the first pass, not with the name

        if not self._looked_at:
            from penstock.profiler.first_iteration import begin_first_iteration

            self._looked_at = True
            begin_first_iteration(self._plan, self._options)
        if epoch is None:
            epoch = self._next_epoch
            self._next_epoch += 1
        if self._options.autocache is not None:
            settings = replace(settings, placing=self._placed())
        return profiled.iterator(self._plan, self._options, epoch, settings, self._continued)

    def _placed(self) -> Placing:
        """Position of the cache that `Options.autocache` has added, chosen from measurements of earlier iterations."""
        if self._placing is None:
            from penstock.profiler.placement.placing import Placing

            self._placing = Placing(self._plan, self._options)
        return self._placing

    def _continued(self, epoch: int) -> None:
        """Record that a resumed iteration runs in `epoch`, so that the next iteration is the epoch after it."""
        self._next_epoch = epoch + 1

    def as_numpy_iterator(self) -> Iterator[T_co]:
        """Start an iteration over read-only numpy values, as tf.data's method of this name.

        The arrays do not share memory with arrays of yours.

        Returns:
            An iterator.

        Example:
            >>> import penstock as ps
            >>> next(ps.Dataset.range(3).batch(2).as_numpy_iterator()).flags.writeable
            False
        """
        from penstock.runtime.run import RunSettings

        return self._pass(None, RunSettings(read_only=True, dataset=inner))

    def _views(self) -> Iterator:
        """Start an iteration for a user's function, which receives read-only arrays as inside a plan."""
        from penstock.runtime.run import RunSettings

        return self._pass(None, RunSettings(read_only=True, views=True, dataset=inner))

    @property
    def element_spec(self) -> Any:
        """Spec of an element: a nest of `TensorSpec`.

        Every element has this structure, these dtypes and these shapes. A dimension that may differ is None. penstock
        derives the spec from the plan. If a function does not reveal the shape of its results, penstock computes one
        element, in this thread, and uses its dtypes and ranks. For `flat_map`, `interleave` and `group_by_window`, it
        computes the data sets of the first two elements.

        Raises:
            InvalidTypeError: If the spec is unknown and the data set has no elements.

        Example:
            >>> import penstock as ps
            >>> ps.Dataset.range(3).map(lambda x: (x, x / 2)).batch(2).element_spec
            (TensorSpec(shape=(None,), dtype=int64), TensorSpec(shape=(None,), dtype=float64))
        """
        return self._known.certain

    @property
    def _known(self) -> Any:
        """Return the known facts about the elements."""
        if self._found_spec is None:
            spec = self._plan.spec
            self._found_spec = self._seen_spec(self._plan) if spec is None else _Told(spec, spec)
        return self._found_spec

    def _seen_spec(self, plan: Node) -> _Told:
        """Return the facts about a plan without a spec: inferred from its inputs, or else from one element."""
        found: dict[int, _Told] = {}
        waiting = [plan]
        while waiting:  # a loop, because recursion would be as deep as the plan
            node = waiting[-1]
            unknown = [below for below in node.inputs if id(below) not in found and below.spec is None]
            if unknown:
                waiting += unknown
                continue
            waiting.pop()
            seen = {id(below): found[id(below)] for below in node.inputs if id(below) in found}
            found[id(node)] = self._seen_above(node, seen)
        return found[id(plan)]

    def _seen_above(self, plan: Node, seen: dict[int, _Told]) -> _Told:
        """Return the spec of a plan whose inputs of unknown spec are in `seen`."""
        if not seen:
            return self._seen_here(plan)
        open_rank = any(leaves_rank_open(told.spec) for told in seen.values())
        if open_rank and isinstance(plan, (*_RANKED, Unbatch, Rebatch)):
            loose = any_extent if isinstance(plan, _RANKED) else _of_any_rank
            return _of_one(map_leaves(loose, self._seen_here(plan).spec))
        if isinstance(plan, RaggedBatch):  # unknown extents count as open dimensions
            seen = {number: _opened(told.certain, plan.ragged_dims()) for number, told in seen.items()}
        certain = _above(plan, {number: told.certain for number, told in seen.items()})
        if certain is not None and isinstance(plan, (PaddedBatch, RaggedBatch, BucketBySequenceLength)):
            # the padding depends on the extents of other elements, which one element does not show
            return _Told(certain, certain)
        spec = _above(plan, {number: told.spec for number, told in seen.items()})
        if spec is not None:
            return _of_one(spec) if certain is None else _Told(spec, certain)
        told = self._seen_here(plan)
        return _of_one(map_leaves(_of_any_rank, told.spec)) if open_rank else told

    def _seen_here(self, plan: Node) -> _Told:
        told = plan.source.spec if isinstance(plan, Scan) else getattr(plan, "element_spec", None)
        if told is not None:  # the spec leaves a rank open
            return _Told(told, told)
        if isinstance(plan, (FlatMap, Interleave, GroupByWindow)):
            made, other = self._made_by(plan, 0), None
            with contextlib.suppress(Exception):  # the second element may be missing or fail
                other = self._made_by(plan, 1)
            if made is not None:
                return made if other is None else _Told(made.spec, _both(made.certain, other.certain))
        for element in self._first_of(plan):
            return _of_one(map_leaves(spec_of, element))
        raise InvalidTypeError("The spec of a data set without elements is not known.")

    def _made_by(self, plan: FlatMap | Interleave | GroupByWindow, number: int) -> _Told | None:
        """Return the facts about the data set of element `number`, or None if there is no such element."""
        for element in self._first_of(Skip(input=plan.input, count=number)):
            given = element if type(element) is tuple else (element,)
            if isinstance(plan, GroupByWindow):
                window = Dataset._of(Take(input=plan.input, count=1), self._options)
                made = plan.reduce_func(np.int64(plan.key_func(*given)), window)
            else:
                made = plan.function(*given)
            return made._known if isinstance(made, Dataset) else None
        return None

    def _first_of(self, plan: Node) -> AbstractIterator[Any]:
        """Yield one element of a part of the plan, or nothing if it is empty. Its caches stay unchanged.

        Elements that fail are skipped, up to a limit. If no element can be computed, the first error is raised.
        """
        from penstock.profiler.analysis.alone import isolated
        from penstock.runtime.run import Iterator, RunSettings

        settings = RunSettings("inline", dataset=inner)
        first: Exception | None = None
        with isolated(plan, self._options) as alone, Iterator(alone, self._options, 0, settings) as elements:
            for _ in range(_MOST_FAILURES):
                try:
                    element = next(elements)
                except StopIteration:
                    break
                except Exception as failed:
                    first = failed if first is None else first
                else:
                    yield element
                    return
        if first is not None:
            raise first

    def cardinality(self) -> int:
        """Return the number of elements, if it is known without an iteration.

        The number is known after a complete snapshot and after a cache in memory that is filled. If a file is missing
        or damaged, the number is unknown, and `len()` raises the error of this file.

        Returns:
            The number of elements, `ps.INFINITE_CARDINALITY` (-1), or `ps.UNKNOWN_CARDINALITY` (-2).

        Example:
            >>> import penstock as ps
            >>> ps.Dataset.range(10).batch(3).cardinality(), ps.Dataset.range(3).repeat().cardinality()
            (4, -1)
            >>> ds = ps.Dataset.range(10).filter(lambda x: x % 3 == 0).cache()
            >>> ds.cardinality(), len([*ds.batch(2)]), len(ds), len(ds.batch(3))
            (-2, 2, 4, 2)
        """
        return known_cardinality(self._plan, self._options.seed, self._options.deterministic)

    def __len__(self) -> int:
        count = self.cardinality()
        if count == UNKNOWN_CARDINALITY:
            count = counted(self._plan)
        if count == INFINITE_CARDINALITY:
            raise InvalidTypeError("The data set is infinite.", hint="Bound it with take().")
        if count == UNKNOWN_CARDINALITY:
            message = "The length of this data set is unknown before an iteration."
            raise InvalidTypeError(message, hint="Count with sum(1 for _ in ds).")
        return count

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """Pickle the plan, the options and the number of the next epoch.

        Functions that cannot be imported elsewhere, such as lambdas, are pickled by value (cloudpickle). In the copy, a
        `cache()` in memory is empty, the counts of `ignore_errors` start at 0, and a `MixWeights` is a copy with the
        changes so far. To move a running iteration, also send the `state_dict()` of its iterator.

        >>> import pickle, penstock as ps
        >>> ds = ps.Dataset.range(4).map(lambda x: x * x).cache()
        >>> [int(x) for x in pickle.loads(pickle.dumps(ds))]
        [0, 1, 4, 9]

        Raise an InvalidArgumentError if a function references an object of this process, such as an open file.
        """
        return reduced(self, int(protocol))

    def __copy__(self) -> Dataset[T_co]:
        """Return a data set with the same plan and caches, which counts its own epochs."""
        found = Dataset._of(self._plan, self._options)
        found._next_epoch, found._read_epoch = self._next_epoch, self._read_epoch
        return found

    def __bool__(self) -> bool:
        return True

    def options(self) -> Options:
        """Return the options of this data set, which are frozen.

        Returns:
            The options.

        Example:
            >>> import penstock as ps
            >>> ps.Dataset.range(3).options()
            Options()
        """
        return self._options

    def memory(self) -> MemoryReport:
        """Report the memory that the buffers of running iterations use, and its limit.

        All buffers share one budget: `Options.autotune.ram_budget` for each iteration, or by default half of the memory
        that was free when the process started its first iteration, for all data sets together. Shuffles, caches and
        batches use their part of it. The rest is for elements that are computed in advance.

        Returns:
            A report with `rows`, one for each buffer, and `to_dict()` for JSON. Its numbers change during an iteration,
            and are approximate.

        Example:
            >>> import penstock as ps
            >>> ds = ps.Dataset.range(10).shuffle(4).with_options(ps.Options(autotune={"ram_budget": 1 << 28}))
            >>> ds.memory()
            no iteration runs: 0 bytes held, 268 MB is autotune.ram_budget
            >>> with iter(ds) as elements:
            ...     first = next(elements)
            ...     report = ds.memory()
            >>> [(row.kind, row.stage, row.nbytes) for row in report.rows if row.kind == "shuffle"]
            [('shuffle', 'shuffle(4)', 32)]
        """
        from penstock.profiler.memory import memory_report

        return memory_report(self._plan, self._options)

    def lint(self) -> Report:
        """Check the plan for mistakes and slow steps.

        The check computes no element. It calls functions of plain numpy with placeholder values, to find out whether
        they work on whole batches. It does not check the steps of data sets that the functions of `interleave` and
        `flat_map` return.

        Returns:
            A tuple of `Advice`, each with a code, the line of the step, the reason and the better call.

        Example:
            >>> import penstock as ps
            >>> ds = ps.Dataset.range(1000).repeat(3).shuffle(1000).batch(10)
            >>> advice, = ds.lint()
            >>> advice.code, advice.concern, advice.mended
            ('shuffle-epochs', 'data', '.shuffle(1000).repeat(3)')
            >>> ps.Dataset.range(1000).shuffle(1000).repeat(3).batch(10).lint()
            nothing to advise
        """
        from penstock.profiler.lint.driver import lint

        return lint(self._plan, self._options)

    if not TYPE_CHECKING:  # a type checker derives the attributes from the class

        def __getattr__(self, name: str) -> Any:
            if name == "nbytes":  # buffers ask every element for this attribute
                raise AttributeError(name)
            if isinstance(getattr(Dataset, name, None), property):
                return object.__getattribute__(self, name)  # raises the AttributeError that the property has raised
            raise unknown(Dataset.__name__, name, METHODS, dir(Dataset))

    def __repr__(self) -> str:
        spec = self._plan.spec
        known = "decided by its functions" if spec is None else repr(spec)
        name = self._options.dataset_name
        label = self._plan.label if name is None else f"{name}: {self._plan.label}"
        count = count_text(self._plan, self._options.seed, self._options.deterministic)
        return f"<Dataset {label}: {known}, {count} elements>"

    def __format__(self, spec: str) -> str:
        text = format(repr(self), spec)
        # in an error of `fit`, which prints its arguments
        if str(sys._getframe(1).f_globals.get("__name__")).startswith("keras."):
            return f"{text} — give Keras ds.to_keras(), in place of the data set itself —"
        return text


def _folded(error: BaseException) -> TracebackType | None:
    from penstock.runtime.tracebacks import folded  # the engine comes when it is first used

    return folded(error)


teach(Dataset, _folded)
Base._whole = Dataset

_MOST_FAILURES = 32  # elements to try when looking for one that shows its spec

# Elements of the inputs of these steps have one rank.
_RANKED = (PaddedBatch, RaggedBatch, BucketBySequenceLength, SparseBatch, Pack, BatchByTokens)


def _of_any_rank(leaf: LeafSpec) -> LeafSpec:
    return TensorSpec(None, leaf.dtype) if isinstance(leaf, TensorSpec) else leaf


class _Told(NamedTuple):
    """Spec of a step's elements, found by computing one of them."""

    spec: Any
    certain: Any  # the spec without the extents that only this element shows


def _opened(spec: Any, known: Collection[str]) -> _Told:
    """Return the facts about elements in which only the components at these paths have known extents."""
    leaves, structure = flatten(spec)
    parts = zip(structure.paths(), leaves, strict=True)
    found = structure.build([leaf if path in known else any_extent(leaf) for path, leaf in parts])
    return _Told(found, found)


def _of_one(spec: Any) -> _Told:
    return _Told(spec, map_leaves(any_extent, spec))


def _both(one: Any, other: Any) -> Any:
    """Return the common part of two specs, or the first spec if their kinds differ."""
    leaves, structure = flatten(one)
    return structure.build([a.relax(b, any_rank=True) or a for a, b in zip(leaves, flatten(other)[0], strict=True)])


def _above(plan: Node, specs: dict[int, Any]) -> Any:
    """Return the spec of a plan, given the specs of some inputs by their `id`, or None if it is unknown."""
    inputs = tuple(Seen(element=specs.get(id(below), below.spec), count=below.cardinality) for below in plan.inputs)
    return plan.with_inputs(inputs).spec
