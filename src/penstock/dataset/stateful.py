"""Methods of `Dataset`: steps that carry a state from element to element."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from penstock.block.scan_state import InitialState
from penstock.block.spec import T_co
from penstock.dataset.base import Base, of_source
from penstock.errors import Context, PenstockError, annotate, as_failure, user_location
from penstock.plan import stateful
from penstock.plan.node import check_ends, check_function, function_name
from penstock.sources.arrays import counter_source

if TYPE_CHECKING:
    from penstock.dataset.dataset import Dataset
    from penstock.runtime.run import Iterator


class Stateful(Base, Generic[T_co]):
    """Mixed into `Dataset`."""

    if TYPE_CHECKING:  # of the classes beside this one

        def _views(self) -> Iterator: ...

    @staticmethod
    def counter(start: Any = 0, step: Any = 1, dtype: Any = np.int64) -> Dataset:
        """`start`, `start + step`, `start + 2 * step`, … without end, as scalars of `dtype`.

        >>> import penstock as ps
        >>> [int(x) for x in ps.Dataset.counter(10, -2).take(3)]
        [10, 8, 6]

        Integers wrap around at the ends of their dtype, as in tf.data. Floating-point numbers are computed from their
        place, where tf.data adds up steps and their rounding. Raises InvalidTypeError for a dtype that does not count,
        and InvalidArgumentError for a start that does not fit it.
        """
        return of_source(counter_source(start, step, dtype))

    @staticmethod
    def random(seed: int | None = None, rerandomize_each_iteration: bool | None = None) -> Dataset:
        """Uniform int64 in [0, 2**32) without end: number n follows from the seed and n alone, on any machine.

        Without a seed it is `Options.seed` (0) that counts, so give two of one pipeline different seeds. Every pass
        gives the same numbers, unless `rerandomize_each_iteration` makes them follow from the epoch too.

        >>> import penstock as ps
        >>> ds = ps.Dataset.random(seed=4).take(2)
        >>> [int(x) for x in ds] == [int(x) for x in ds]
        True
        """
        again = bool(rerandomize_each_iteration)
        return Base._of(stateful.Random(seed=seed, rerandomize=again))

    def scan(self, initial_state: Any, scan_func: Callable[[Any, Any], Any]) -> Dataset:
        """A map with a memory: `scan_func(state, element)` returns the next state and an element of the result.

        An element that is a tuple comes as one argument, as in tf.data. The state is a nest of numbers, text and
        arrays; it keeps its structure and dtypes, and its arrays cannot be written to. A list in its place, or as the
        element, is one array; for a state that began as a tuple it is that tuple.

        >>> import penstock as ps
        >>> sums = ps.Dataset.range(5).scan(0, lambda total, x: (total + x, total + x))
        >>> [int(x) for x in sums]
        [0, 1, 3, 6, 10]

        Elements come one after the other, in order. The state is part of every checkpoint, which is best kept in mind
        for large ones. An element for which the function fails leaves the state as it was, and so does a state of
        another structure or dtype, which is an InvalidTypeError in the place of that element.
        """
        return self._then(stateful.StatefulMap, initial_state=initial_state, function=scan_func)

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Any], Any]) -> Any:
        """The last state of a whole pass: `state = reduce_func(state, element)` for every element in turn.

        An element that is a tuple comes as one argument, as in tf.data. The state is as that of `scan`.

        >>> import penstock as ps
        >>> int(ps.Dataset.range(5).reduce(0, lambda total, x: total + x))
        10
        >>> ps.Dataset.range(4).reduce((0, 0), lambda s, x: (s[0] + x, s[1] + 1))
        (np.int64(6), np.int64(4))

        Runs a pass and ends its workers. An element that fails, in the pipeline or in `reduce_func`, ends it with that
        error. Raises InvalidTypeError for a state that changes its structure or dtype, and InvalidArgumentError for a
        data set without end.
        """
        label, where, number = "reduce", user_location(), 0
        try:
            label = f"reduce({function_name(check_function('reduce_func', reduce_func, 'reduce'))})"
            carried = InitialState.of(initial_state).carried()
            check_ends("reduce", self._plan.cardinality)
        except PenstockError as error:
            annotate(error, Context(label, where))
            raise
        with self._views() as elements:
            for element in elements:
                try:
                    if not number:
                        from penstock.trace.kinds.reader import warn_of_text_in

                        warn_of_text_in(reduce_func, carried.nest(), element)
                    carried.replace([reduce_func(carried.nest(), element)])
                except Exception as raised:
                    failed = as_failure(raised, Context(label, where, number))
                    if failed is raised:
                        raise
                    raise failed from raised
                number += 1
        return carried.copied()

    def statistics(self) -> Any:
        """Compute the mean, variance, smallest and largest value of each component, for normalisation.

        The statistics are per index of the last axis: of images for each channel, of vectors for each feature. They
        are of all values together for numbers, and if the last axis differs between elements, as in sounds. Call it
        before `batch()`.

        Returns:
            The nest of an element. In place of each component stands an object with `count`, `mean`, `variance`,
            `std`, `min` and `max`, or None for byte strings and complex numbers. `mean`, `variance` and `std` are
            float64, and divide by `count`.

        Raises:
            InvalidArgumentError: If the data set is infinite, or has no real numbers.
            InvalidTypeError: If a component is a sparse tensor.

        Determinism: The data set is iterated once, with the random numbers of the first epoch. The result does not
        depend on the machine or on the parallelism.

        Example:
            >>> import penstock as ps
            >>> ds = ps.Dataset.from_tensor_slices({"x": [[1.0, 5.0], [3.0, 5.0]], "label": [0, 1]})
            >>> found = ds.statistics()
            >>> found["x"].mean.tolist(), found["x"].std.tolist(), found["label"].max
            ([2.0, 5.0], [1.0, 0.0], np.int64(1))
        """
        from penstock.dataset.statistics import statistics

        return statistics(self._with(self._plan))

    def take_while(self, predicate: Callable[..., Any]) -> Dataset[T_co]:
        """The elements in front of the first one for which `predicate(element)` is false.

        >>> import penstock as ps
        >>> [int(x) for x in ps.Dataset.counter().take_while(lambda x: x * x < 10)]
        [0, 1, 2, 3]

        The parts of a plain tuple are separate arguments. Nothing behind that element is asked for, beyond what was
        read together with it. Raises InvalidTypeError, when the element comes, for a predicate that returns no bool.
        """
        return self._then(stateful.TakeWhile, predicate=predicate)

    def unique(self) -> Dataset[T_co]:
        """Every value once, in the order in which they come first.

        >>> import penstock as ps
        >>> [int(x) for x in ps.Dataset.from_tensor_slices([3, 1, 3, 2, 1]).unique()]
        [3, 1, 2]

        Elements have one component, of any dtype and shape; equal are those of equal bits, so that 0.0 and -0.0
        differ and a NaN equals itself. What has come is kept in memory: a number or a short text as it is, of more than
        64 bytes a digest. A checkpoint holds none of it: to continue, the elements before it are read again.

        Raises InvalidArgumentError for several components, InvalidTypeError for sparse and ragged tensors.
        """
        return self._then(stateful.Unique)

    def ignore_errors(
        self,
        log_warning: bool = False,
        *,
        max_errors: int | None = None,
        max_rate: float | None = None,
        quarantine: str | os.PathLike[str] | None = None,
    ) -> Dataset[T_co]:
        """The elements that do not fail. How many did is in `ignored`, and in the log when the pass ends.

        Mistakes in the program are raised, as other data would not avoid them: NameError, ImportError, a function that
        does not take the arguments it is called with, and a TypeError or AttributeError of the first element.

        The log is that of Python's `logging`, named "penstock"; with `log_warning` it has a line for each of them too.
        `quarantine` names a file to which each adds a line of JSON: stage, line of code, element, file, offset, error.
        A pass that goes on from a checkpoint adds again those that come again.

        Above `max_errors` failed elements, or a part of `max_rate` of all, each further one raises
        FailedPreconditionError in its place. The part is taken of at least 1000 elements before the end of the pass,
        and of what has come at the end.

        >>> import penstock as ps
        >>> ds = ps.Dataset.range(4).scan(0, lambda state, x: (state, 6 // int(x))).ignore_errors(max_errors=1)
        >>> [int(x) for x in ds]
        [6, 3, 2]
        >>> ds.ignored
        1

        Raises InvalidArgumentError for a rate that is not between 0 and 1 and for a quarantine that is a URL.
        """
        return self._then(
            stateful.IgnoreErrors,
            log_warning=bool(log_warning),
            max_errors=max_errors,
            max_rate=max_rate,
            quarantine=quarantine,
        )

    @property
    def ignored(self) -> int:
        """Elements that the `ignore_errors` of this data set have left out, in all its passes in this process.

        >>> import penstock as ps
        >>> ps.Dataset.range(3).ignore_errors().ignored
        0

        It counts what the workers have met, which may be ahead of what was given.
        """
        found = {id(node): node for node in self._plan.walk() if isinstance(node, stateful.IgnoreErrors)}
        return sum(node.tally.count for node in found.values())

    def assert_cardinality(self, expected_cardinality: int) -> Dataset[T_co]:
        """The same elements, known to be so many: `len` and `cardinality` say so, and a pass makes sure.

        >>> import penstock as ps
        >>> len(ps.Dataset.range(9).filter(lambda x: x % 3 == 0).assert_cardinality(3))
        3

        Raises FailedPreconditionError in the place of an element too many, or behind the last where there are too few.
        """
        return self._then(stateful.AssertCardinality, expected_cardinality=expected_cardinality)

    def fingerprint(self) -> int:
        """A uint64 that two data sets share only if they are built by the same steps, parameters, functions and seed.

        The same in every process. The contents of files and arrays do not count, nor do functions that a function
        calls: equal fingerprints mean equal elements only where those are equal.

        >>> import penstock as ps
        >>> ps.Dataset.range(3).fingerprint() == ps.Dataset.range(3).fingerprint()
        True
        >>> ps.Dataset.range(3).fingerprint() == ps.Dataset.range(4).fingerprint()
        False
        """
        from penstock.plan.fingerprint import fingerprint

        options = self._options
        return int(fingerprint(self._plan, options.seed, options.deterministic)[:16], 16)
