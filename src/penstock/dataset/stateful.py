"""Methods of `Dataset`: steps that pass a state from element to element."""

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
    """Methods with a state."""

    if TYPE_CHECKING:  # defined by other base classes of Dataset

        def _views(self) -> Iterator: ...

    @staticmethod
    def counter(start: Any = 0, step: Any = 1, dtype: Any = np.int64) -> Dataset:
        """Create an infinite data set of numbers with a constant step.

        Args:
            start: The first number. Default: 0.
            step: Difference between two consecutive numbers. Default: 1.
            dtype: Numeric dtype of the numbers, which are scalars. Default: int64. Integers wrap around at the limits
                of their dtype, as in tf.data. Floating-point numbers are computed as `start + n * step`, while tf.data
                adds `step` repeatedly and so accumulates rounding errors.

        Returns:
            A data set of `start`, `start + step`, `start + 2 * step` and so on.

        Raises:
            InvalidTypeError: If `dtype` is not numeric.
            InvalidArgumentError: If `start` does not fit `dtype`.

        Example:
            >>> import penstock as ps
            >>> [int(x) for x in ps.Dataset.counter(10, -2).take(3)]
            [10, 8, 6]
        """
        return of_source(counter_source(start, step, dtype))

    @staticmethod
    def random(seed: int | None = None, rerandomize_each_iteration: bool | None = None) -> Dataset:
        """Create an infinite data set of random numbers.

        Args:
            seed: Seed of the numbers. By default they depend on `Options.seed` only: pass different seeds if a pipeline
                has several of these data sets.
            rerandomize_each_iteration: If True, each epoch has other numbers. Default: False.

        Returns:
            A data set of int64 scalars, uniformly distributed in [0, 2**32).

        Determinism: Number `n` depends on the seed and `n` only, on any machine.

        Example:
            >>> import penstock as ps
            >>> ds = ps.Dataset.random(seed=4).take(2)
            >>> [int(x) for x in ds] == [int(x) for x in ds]
            True
        """
        again = bool(rerandomize_each_iteration)
        return Base._of(stateful.Random(seed=seed, rerandomize=again))

    def scan(self, initial_state: Any, scan_func: Callable[[Any, Any], Any]) -> Dataset:
        """Apply a function of a state and an element, which returns the next state and a new element.

        The elements are processed one after another, in order. If the function fails for an element, the state stays
        the same. The state is part of every checkpoint, so a large state makes large checkpoints.

        Args:
            initial_state: The first state: a nest of numbers, strings and arrays.
            scan_func: A function of the state and an element that returns a pair `(state, element)`. An element that is
                a tuple is one argument, as in tf.data. The state keeps its structure and dtypes. Its arrays are
                read-only. A list as the state or the element is one array.

        Returns:
            A data set of the elements that the function returns.

        Raises:
            InvalidTypeError: If `scan_func` cannot be called, or, during the iteration, if the state has another
                structure or dtype.

        Example:
            >>> import penstock as ps
            >>> sums = ps.Dataset.range(5).scan(0, lambda total, x: (total + x, total + x))
            >>> [int(x) for x in sums]
            [0, 1, 3, 6, 10]
        """
        return self._then(stateful.StatefulMap, initial_state=initial_state, function=scan_func)

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Any], Any]) -> Any:
        """Reduce all elements to one value.

        The call iterates over the data set, and computes `state = reduce_func(state, element)` for each element in
        turn.

        Args:
            initial_state: The first state: a nest of numbers, strings and arrays.
            reduce_func: A function of the state and an element that returns the next state. An element that is a tuple
                is one argument, as in tf.data. The state keeps its structure and dtypes. Its arrays are read-only.

        Returns:
            The last state.

        Raises:
            InvalidArgumentError: If the data set is infinite.
            InvalidTypeError: If `reduce_func` cannot be called, or if the state changes its structure or dtype.

        Example:
            >>> import penstock as ps
            >>> int(ps.Dataset.range(5).reduce(0, lambda total, x: total + x))
            10
            >>> ps.Dataset.range(4).reduce((0, 0), lambda s, x: (s[0] + x, s[1] + 1))
            (np.int64(6), np.int64(4))
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
        """Keep the elements before the first one for which a function returns False.

        Args:
            predicate: A function of an element that returns a bool. The components of a plain tuple are separate
                arguments.

        Returns:
            A data set of these elements. It reads no further elements, except those that were read together with the
            last one.

        Raises:
            InvalidTypeError: If `predicate` cannot be called, or, during the iteration, if it returns no bool.

        Example:
            >>> import penstock as ps
            >>> [int(x) for x in ps.Dataset.counter().take_while(lambda x: x * x < 10)]
            [0, 1, 2, 3]
        """
        return self._then(stateful.TakeWhile, predicate=predicate)

    def unique(self) -> Dataset[T_co]:
        """Drop elements that are equal to an earlier element.

        Elements are equal if their bits are equal: 0.0 and -0.0 differ, and NaN equals NaN. The step stores the
        elements that were yielded: values of up to 64 bytes, or hashes of larger ones. A checkpoint contains none of
        them: a resumed iterator reads the earlier elements again.

        Returns:
            A data set of the different elements, in the order of their first occurrence.

        Raises:
            InvalidArgumentError: If the elements have several components.
            InvalidTypeError: If the elements are sparse or ragged tensors.

        Example:
            >>> import penstock as ps
            >>> [int(x) for x in ps.Dataset.from_tensor_slices([3, 1, 3, 2, 1]).unique()]
            [3, 1, 2]
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
        """Drop elements that fail.

        The number of dropped elements is in `ignored`, and in the log at the end of the iteration. The log is the
        logger "penstock" of Python's `logging`. Programming errors are still raised: NameError, ImportError, calls with
        wrong arguments, and a TypeError or AttributeError of the first element.

        Args:
            log_warning: If True, the log has a line for each dropped element. Default: False.
            max_errors: Largest number of dropped elements. Each further element that fails raises
                FailedPreconditionError.
            max_rate: Largest share of dropped elements, between 0 and 1. Above it, each element that fails raises
                FailedPreconditionError. The share is computed of at least 1000 elements, until the end of the
                iteration.
            quarantine: Path of a local file. For each dropped element, penstock appends a line of JSON with the step,
                the line of code, the number of the element, the file, the offset and the error. A resumed iterator
                appends again the elements that it reads again.

        Returns:
            A data set of the elements that do not fail.

        Raises:
            InvalidArgumentError: If `max_rate` is not between 0 and 1, or if `quarantine` is a URL.

        Example:
            >>> import penstock as ps
            >>> ds = ps.Dataset.range(4).scan(0, lambda state, x: (state, 6 // int(x))).ignore_errors(max_errors=1)
            >>> [int(x) for x in ds]
            [6, 3, 2]
            >>> ds.ignored
            1
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
        """Number of elements that `ignore_errors` steps of this data set have dropped in this process, in all epochs.

        The number includes elements that workers have processed in advance, before the consumer requests them.

        Example:
            >>> import penstock as ps
            >>> ps.Dataset.range(3).ignore_errors().ignored
            0
        """
        found = {id(node): node for node in self._plan.walk() if isinstance(node, stateful.IgnoreErrors)}
        return sum(node.tally.count for node in found.values())

    def assert_cardinality(self, expected_cardinality: int) -> Dataset[T_co]:
        """Declare the number of elements, and check it during the iteration.

        Use it after steps such as `filter`, whose result has an unknown number of elements.

        Args:
            expected_cardinality: The number of elements, or `ps.INFINITE_CARDINALITY`.

        Returns:
            A data set of the same elements. `len` and `cardinality` return the declared number.

        Raises:
            FailedPreconditionError: If, during the iteration, there are more elements or fewer.

        Example:
            >>> import penstock as ps
            >>> len(ps.Dataset.range(9).filter(lambda x: x % 3 == 0).assert_cardinality(3))
            3
        """
        return self._then(stateful.AssertCardinality, expected_cardinality=expected_cardinality)

    def fingerprint(self) -> int:
        """Return a hash of the plan: its steps, their parameters and functions, and the seed.

        The hash is the same in every process. It does not depend on the contents of files and arrays, nor on functions
        that your functions call. Data sets with equal fingerprints have equal elements if these are equal too.

        Returns:
            The hash, an integer below 2**64.

        Example:
            >>> import penstock as ps
            >>> ps.Dataset.range(3).fingerprint() == ps.Dataset.range(3).fingerprint()
            True
            >>> ps.Dataset.range(3).fingerprint() == ps.Dataset.range(4).fingerprint()
            False
        """
        from penstock.plan.fingerprint import fingerprint

        options = self._options
        return int(fingerprint(self._plan, options.seed, options.deterministic)[:16], 16)
