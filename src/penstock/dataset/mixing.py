"""Methods of `Dataset`: several data sets mixed into one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from penstock.dataset.base import Base
from penstock.errors import Context, InvalidArgumentError, InvalidTypeError, PenstockError, annotate, user_location
from penstock.options import Options
from penstock.plan.mix_weights import MixWeights, check_weights
from penstock.plan.mixing import ChooseFrom, SampleFrom
from penstock.plan.node import Node

if TYPE_CHECKING:
    from penstock.dataset.dataset import Dataset

A = TypeVar("A")


class Mixing(Base):
    """Mixed into `Dataset`."""

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
        """Elements of the data sets in random order, each drawn from one of them by weight.

        `weights` are one number of 0 or more for each data set, equal by default. A data set of weight 0 is never
        read. Weights may change from draw to draw: as a data set of such vectors, one for each draw, with which the
        mixture ends; as a function of the number of the draw (`ps.mixing.linear` and `ps.mixing.piecewise` make some),
        which must be a pure one; or as a `ps.MixWeights`, which the training sets while it runs.

        `on_empty` says what happens when a draw picks a data set that has no more elements. "continue", the default as
        in tf.data, goes on with the others, their weights scaled up: the shares then drift from what was asked for.
        "stop" ends the mixture, as does `stop_on_empty_dataset=True`, which tf.data recommends. "repeat" starts that
        data set over, in an epoch of its own, and the shares stay. "error" raises OutOfRangeError, and the mixture
        ends. The mixture also ends at a draw whose data sets of positive weight have all run dry.

        >>> import penstock as ps
        >>> small, large = ps.Dataset.range(3), ps.Dataset.range(100, 200)
        >>> ds = ps.Dataset.sample_from_datasets([small, large], [0.5, 0.5], seed=1, on_empty="repeat")
        >>> [int(x) for x in ds.take(8)]
        [0, 100, 1, 2, 0, 101, 1, 102]

        Draws follow from the seed and their number alone: draw n takes u, uniform in [0, 1), from the key that the seed
        names, and picks the first data set for which the sum of the weights up to it is above u times the sum of all,
        in float64. If that one turns out to be empty, the draw is made again without it, with another u. Without a seed
        the key follows from `Options.seed` (0) and the place in the plan. Every pass draws the same unless
        `rerandomize_each_iteration`, as in tf.data; the data sets themselves may be shuffled anew.

        Raises InvalidTypeError for data sets of differing structure or dtype, InvalidArgumentError for weights that are
        negative, not finite, all 0, or not one for each data set. Where a function or data set gives such weights, or a
        data set fails, that error stands in the place of the draw's element.
        """
        with _Located(SampleFrom.name):
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
        """Elements of the data sets in the order that `choice_dataset` gives: its elements are their numbers.

        Ends with the choices, or when a data set that has no more elements is chosen; with
        `stop_on_empty_dataset=False` such choices are passed over, until all data sets have ended.

        >>> import penstock as ps
        >>> words = [ps.Dataset.from_tensors(word).repeat() for word in ("a", "b")]
        >>> list(ps.Dataset.choose_from_datasets(words, ps.Dataset.from_tensor_slices([0, 1, 1, 0])))
        [b'a', b'b', b'b', b'a']

        Any integers will do, while tf.data wants int64. Raises InvalidTypeError for other choices and for data sets of
        differing structure or dtype; a choice that is no number of a data set is an InvalidArgumentError in its place.
        """
        with _Located(ChooseFrom.name):
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
        """`(class, element)` pairs whose classes are distributed as `target_dist`: elements are left out or repeated.

        `class_func(element)` is the class, a number counted from 0; it is given as int64. The distributions are one
        number of 0 or more for each class, and are scaled to a sum of 1.

        This is tf.data's way: with r = target / initial, a share min(r) of the pairs is the data set as it comes; the
        others come from a second pass over it, in which class i is accepted with probability
        (r[i] - min(r)) / (max(r) - min(r)). An element may thus come twice. When one of the passes ends, all ends.
        Without `initial_dist` the distribution is estimated anew at every 32nd element from the classes seen so far,
        each counted as seen 10 times before the first, which takes a third pass. The data set and `class_func` run for
        each of these passes: put `cache()` before this step if that is dear.

        >>> import numpy as np, penstock as ps
        >>> ds = ps.Dataset.range(1000).rejection_resample(lambda x: x % 2, [0.2, 0.8], [0.5, 0.5], seed=1)
        >>> classes = [int(c) for c, x in ds]
        >>> round(np.mean(classes), 1)
        np.float64(0.8)

        Which elements come follows from the seed, the epoch and the data alone; every pass draws anew. Raises
        InvalidArgumentError for numbers that are no distribution, and for a class that `target_dist` wants and
        `initial_dist` rules out. A class that is no integer, or not below their number, is an error in the place of its
        element.
        """
        from penstock.plan.mixing import Accept, EstimateMix, WithClass, acceptance

        with _Located(WithClass.name):
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


class _Located:
    """Adds step and line of the user's call to errors that leave it."""

    def __init__(self, stage: str) -> None:
        self._stage = stage

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, PenstockError):
            annotate(error, Context(stage=self._stage, where=user_location()))


def _plans(argument: str, datasets: Any) -> tuple[tuple[Node, ...], Options]:
    """The plans of a list of data sets, and their options together."""
    if isinstance(datasets, Base) or not isinstance(datasets, Sequence):
        message = f"{argument} must be a list of data sets, got {type(datasets).__name__}."
        raise InvalidTypeError(message)
    options = Options()
    for number, dataset in enumerate(datasets):
        if not isinstance(dataset, Base):
            message = f"{argument} must be a list of data sets, got {argument}[{number}]={dataset!r:.60}."
            raise InvalidTypeError(message)
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
    scaled: np.ndarray = initial / initial.sum()
    return scaled


def _mixed(pairs: Node, accepted: Node, weights: Any, seed: int | None) -> Node:
    parts = (pairs, accepted, weights) if isinstance(weights, Node) else (pairs, accepted)
    constant = None if isinstance(weights, Node) else weights
    return SampleFrom(parts=parts, weights=constant, seed=seed, on_empty="stop", rerandomize_each_iteration=True)
