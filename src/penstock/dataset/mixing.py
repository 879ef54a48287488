"""Methods of `Dataset`: several data sets mixed into one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from penstock.dataset.base import Base, Located
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.options import Options
from penstock.plan.mix_weights import MixWeights, check_weights
from penstock.plan.mixing import ChooseFrom, SampleFrom
from penstock.plan.node import Node

if TYPE_CHECKING:
    from penstock.dataset.dataset import Dataset

A = TypeVar("A")


class Mixing(Base):
    """Methods that mix data sets."""

    @staticmethod
    def sample_from_datasets(
        datasets: Sequence[Dataset[A]],
        weights: Any = None,
        seed: int | None = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
        *,
        on_empty: str | None = None,
    ) -> Dataset[A]:
        """Mix data sets at random: take each element from one of them, chosen by weight.

        For element `n`, penstock takes a uniform random number in [0, 1) from the seed and `n`, multiplies it by the
        sum of the weights, and chooses the first data set whose cumulative weight is larger. If that data set has
        ended, the choice is repeated without it, with another random number.

        Args:
            datasets: List of data sets whose elements have the same structure and dtypes.
            weights: One weight for each data set, not negative. A data set of weight 0 is never read. The weights may
                change from element to element: pass a data set of weight vectors, a pure function of the number of the
                element (see `ps.mixing.linear` and `ps.mixing.piecewise`), or a `ps.MixWeights` object, which your
                training loop sets. Default: equal weights.
            seed: Seed of the random numbers. By default they depend on `Options.seed` and the position of the step in
                the plan.
            stop_on_empty_dataset: If True, the mixture ends when a data set that has ended is chosen:
                `on_empty="stop"`.
            rerandomize_each_iteration: If True, each epoch makes other choices. Default: False, as in tf.data.
            on_empty: Behaviour when a data set that has ended is chosen. Default: `"continue"`, as in tf.data.

                - `"continue"`: choose among the other data sets. The shares then differ from the weights.
                - `"stop"`: end the mixture.
                - `"repeat"`: start that data set again, with its next epoch. The shares stay the same.
                - `"error"`: raise OutOfRangeError, and end the mixture.

        Returns:
            A data set of the elements of all data sets. It also ends if all data sets of positive weight have ended.

        Raises:
            InvalidTypeError: If `datasets` is not a list of data sets, or if their structures or dtypes differ.
            InvalidArgumentError: If a weight is negative or not finite, if all weights are 0, or if the number of
                weights is wrong. Weights of a function or data set are checked during the iteration.

        Determinism: The choices depend on the seed and the number of the element only.

        Example:
            >>> import penstock as ps
            >>> small, large = ps.Dataset.range(3), ps.Dataset.range(100, 200)
            >>> ds = ps.Dataset.sample_from_datasets([small, large], [0.5, 0.5], seed=1, on_empty="repeat")
            >>> [int(x) for x in ds.take(8)]
            [0, 100, 1, 2, 0, 101, 1, 102]
        """
        with Located(SampleFrom.name):
            parts, options = _plans("datasets", datasets)
            found: Any = weights
            if weights is None:
                found = (1.0,) * len(parts)
            elif hasattr(weights, "_plan"):
                parts, options, found = (*parts, weights._plan), options._merged(weights.options()), None
            elif callable(weights) and not isinstance(weights, MixWeights):
                check_weights("weights(0)", weights(0), len(parts))
            node = SampleFrom(
                parts=parts,
                weights=found,
                seed=seed,
                on_empty=_rule(on_empty, stop=bool(stop_on_empty_dataset)),
                rerandomize_each_iteration=bool(rerandomize_each_iteration),
            )
        return Base._of(node, options)

    @staticmethod
    def choose_from_datasets(
        datasets: Sequence[Dataset[A]], choice_dataset: Dataset, stop_on_empty_dataset: bool = True
    ) -> Dataset[A]:
        """Mix data sets in the order that another data set gives.

        Args:
            datasets: List of data sets whose elements have the same structure and dtypes.
            choice_dataset: Data set of integers. Each is the index of the data set that the next element comes from.
            stop_on_empty_dataset: If True, the mixture ends when a data set that has ended is chosen. If False, such
                choices are skipped, until all data sets have ended. Default: True.

        Returns:
            A data set of the chosen elements. It ends with the choices at the latest.

        Raises:
            InvalidTypeError: If `datasets` is not a list of data sets, if `choice_dataset` is not a data set of
                integers, or if the structures or dtypes differ.
            InvalidArgumentError: If, during the iteration, a choice is not an index of a data set.

        Example:
            >>> import penstock as ps
            >>> words = [ps.Dataset.from_tensors(word).repeat() for word in ("a", "b")]
            >>> list(ps.Dataset.choose_from_datasets(words, ps.Dataset.from_tensor_slices([0, 1, 1, 0])))
            [b'a', b'b', b'b', b'a']
        """
        with Located(ChooseFrom.name):
            parts, options = _plans("datasets", datasets)
            if not hasattr(choice_dataset, "_plan"):
                message = f"choice_dataset must be a Dataset, got {type(choice_dataset).__name__}."
                raise InvalidTypeError(message, hint="Dataset.from_tensor_slices makes one of a list.")
            parts, options = (choice_dataset._plan, *parts), options._merged(choice_dataset.options())
            node = ChooseFrom(parts=parts, stop_on_empty_dataset=bool(stop_on_empty_dataset))
        return Base._of(node, options)

    def rejection_resample(
        self,
        class_func: Callable[..., Any],
        target_dist: Any,
        initial_dist: Any = None,
        seed: int | None = None,
    ) -> Dataset:
        """Resample the elements so that their classes have a target distribution.

        Elements are dropped or repeated. The method is tf.data's: with `r = target_dist / initial_dist`, the share
        `min(r)` of the result is this data set as it is. The other elements come from a second iteration over it, in
        which an element of class `i` is accepted with probability `(r[i] - min(r)) / (max(r) - min(r))`. The result
        ends when one of the iterations ends.

        This data set and `class_func` run once for each of the two iterations, and a third time without `initial_dist`.
        Add `cache()` before this step if they are expensive.

        Args:
            class_func: A function of an element that returns its class: an integer from 0.
            target_dist: Distribution of the classes in the result: one number for each class, not negative.
            initial_dist: Distribution of the classes in this data set. By default, it is estimated from the elements,
                and updated every 32 elements.
            seed: Seed of the random numbers. By default they depend on `Options.seed` and the position of the step in
                the plan.

        Returns:
            A data set of pairs `(class, element)`. The class is int64.

        Raises:
            InvalidArgumentError: If a distribution is invalid, if `initial_dist` is 0 for a class that `target_dist`
                needs, or, during the iteration, if a class is out of range.
            InvalidTypeError: If, during the iteration, a class is not an integer.

        Determinism: The result depends on the seed, the epoch and the data only. Each epoch has other random numbers.

        Example:
            >>> import numpy as np, penstock as ps
            >>> ds = ps.Dataset.range(1000).rejection_resample(lambda x: x % 2, [0.2, 0.8], [0.5, 0.5], seed=1)
            >>> classes = [int(c) for c, x in ds]
            >>> round(np.mean(classes), 1)
            np.float64(0.8)
        """
        from penstock.plan.mixing import Accept, EstimateMix, WithClass, acceptance

        with Located(WithClass.name):
            target = np.array(check_weights("target_dist", target_dist, each="class"))
            target /= target.sum()
            wanted = tuple(target.tolist())
            pairs = WithClass(input=self._plan, class_func=class_func, num_classes=len(target))
            plan: Node
            if initial_dist is None:
                accepted = Accept(input=pairs, target=wanted, seed=seed)
                plan = _mixed(pairs, accepted, EstimateMix(input=pairs, target=wanted), seed)
            else:
                initial = _initial(initial_dist, target)
                accepted = Accept(input=pairs, target=wanted, initial=tuple(initial.tolist()), seed=seed)
                share = float(acceptance(initial, target)[1])
                plan = pairs if share == 1 else _mixed(pairs, accepted, (share, 1 - share), seed) if share else accepted
        return Base._of(plan, self._options)


def _plans(argument: str, datasets: Any) -> tuple[tuple[Node, ...], Options]:
    """Return the plans of a list of data sets, and their merged options."""
    if isinstance(datasets, Base) or not isinstance(datasets, Sequence):
        raise InvalidTypeError(f"{argument} must be a list of data sets, got {type(datasets).__name__}.")
    options = Options()
    for number, dataset in enumerate(datasets):
        if not isinstance(dataset, Base):
            raise InvalidTypeError(f"{argument} must be a list of data sets, got {argument}[{number}]={dataset!r:.60}.")
        options = options._merged(dataset._options)
    return tuple(dataset._plan for dataset in datasets), options


def _rule(on_empty: str | None, *, stop: bool) -> str:
    if on_empty is None:
        return "stop" if stop else "continue"
    if stop and on_empty != "stop":
        message = f"stop_on_empty_dataset=True contradicts on_empty={on_empty!r}."
        raise InvalidArgumentError(message, hint="Give one of the two.")
    return on_empty


def _initial(initial_dist: Any, target: np.ndarray) -> np.ndarray:
    initial = np.array(check_weights("initial_dist", initial_dist, each="class"))
    if len(initial) != len(target):
        message = f"initial_dist and target_dist must be of one length, got {len(initial)} and {len(target)} classes."
        raise InvalidArgumentError(message)
    impossible = np.flatnonzero((initial == 0) & (target > 0))
    if len(impossible):
        message = f"target_dist asks for class {impossible[0]}, which by initial_dist never comes."
        raise InvalidArgumentError(message, hint="Leave out initial_dist to have it estimated.")
    return initial / initial.sum()


def _mixed(pairs: Node, accepted: Node, weights: Any, seed: int | None) -> Node:
    parts = (pairs, accepted, weights) if isinstance(weights, Node) else (pairs, accepted)
    constant = None if isinstance(weights, Node) else weights
    return SampleFrom(parts=parts, weights=constant, seed=seed, on_empty="stop", rerandomize_each_iteration=True)
