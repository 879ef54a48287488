"""Steps that mix several data sets into one, and the steps that `rejection_resample` consists of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from penstock.block.spec import TensorSpec
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.plan.inputs import relaxed
from penstock.plan.mix_weights import MixWeights, check_weights
from penstock.plan.node import (
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    JoinedNode,
    Node,
    UnaryNode,
    UncountedNode,
    check_function,
    check_seed,
    function_name,
    total,
)

ON_EMPTY = ("continue", "stop", "repeat", "error")


class SampleFrom(JoinedNode):
    """Yields each element from one of the sources, chosen at random by weight.

    `weights` are floats, a function of the step, or a `MixWeights`. If they are None, the last of `parts` is a data set
    of weights. `salt` is as in `Shuffle`.
    """

    parts: tuple[Node, ...]
    weights: Any = None
    seed: int | None = None
    on_empty: str = "continue"
    rerandomize_each_iteration: bool = False
    salt: int = -1

    name: ClassVar[str] = "sample_from_datasets"

    def __post_init__(self) -> None:
        count = len(self.sources)
        _check_some(self.name, count)
        if self.on_empty not in ON_EMPTY:
            message = f"on_empty must be one of {', '.join(map(repr, ON_EMPTY))}, got on_empty={self.on_empty!r}."
            raise InvalidArgumentError(message)
        if isinstance(self.weights, MixWeights):
            if len(self.weights) != count:
                message = f"weights must hold {count} numbers, one for each data set, got {len(self.weights)}."
                raise InvalidArgumentError(message)
        elif self.weights is None:
            _check_weights_spec(self.parts[-1].spec, count)
        elif not callable(self.weights):
            self.settle(weights=check_weights("weights", self.weights, count))
        check_seed(self)
        common_spec(self.name, self.sources)

    @property
    def sources(self) -> tuple[Node, ...]:
        return self.parts[:-1] if self.weights is None else self.parts

    @property
    def label(self) -> str:
        return f"sample_from_datasets({len(self.sources)})"

    @property
    def spec(self) -> Any:
        return common_spec(self.name, self.sources)

    @property
    def cardinality(self) -> int:
        most = INFINITE_CARDINALITY if self.weights is not None else self.parts[-1].cardinality
        if most == 0:
            return 0
        if self.on_empty == "repeat":
            return most
        constant = isinstance(self.weights, tuple)
        asked = [s for i, s in enumerate(self.sources) if not constant or self.weights[i] > 0]
        counts = [source.cardinality for source in asked]
        if all(count == INFINITE_CARDINALITY for count in counts):
            return most
        if not any(counts):
            return 0
        if not constant or (self.on_empty != "continue" and len(counts) > 1):
            return UNKNOWN_CARDINALITY
        return total(counts)


class ChooseFrom(JoinedNode):
    """Yields each element from the source whose index is the next element of the first part."""

    parts: tuple[Node, ...]  # the choices, then the sources
    stop_on_empty_dataset: bool = True

    name: ClassVar[str] = "choose_from_datasets"

    def __post_init__(self) -> None:
        _check_some(self.name, len(self.sources))
        spec = self.parts[0].spec
        if spec is not None and not (isinstance(spec, TensorSpec) and spec.shape == () and _has_kind(spec, "iu")):
            message = f"choice_dataset must give single integers, got elements of {spec}."
            hint = "Each element is the number of a data set, counted from 0; x.astype(np.int64) converts."
            raise InvalidTypeError(message, hint=hint)
        common_spec(self.name, self.sources)

    @property
    def sources(self) -> tuple[Node, ...]:
        return self.parts[1:]

    @property
    def label(self) -> str:
        return f"choose_from_datasets({len(self.sources)})"

    @property
    def spec(self) -> Any:
        return common_spec(self.name, self.sources)

    @property
    def cardinality(self) -> int:
        choices = self.parts[0].cardinality
        endless = all(source.cardinality == INFINITE_CARDINALITY for source in self.sources)
        return choices if choices == 0 or endless else UNKNOWN_CARDINALITY


def common_spec(name: str, sources: tuple[Node, ...]) -> Any:
    """Return the spec that the elements of all sources satisfy, or None if one spec is unknown."""
    found: Any = None
    unknown = False
    for i, source in enumerate(sources):
        spec = source.spec
        if spec is None:
            unknown = True
            continue
        both = spec if found is None else relaxed(found, spec)
        if both is None:
            message = f"{name} needs data sets of one structure and dtype; number {i} gives {spec}, others {found}."
            raise InvalidTypeError(message, hint="Map them to one structure first.")
        found = both
    return None if unknown else found


def _check_some(name: str, count: int) -> None:
    if not count:
        message = f"{name} needs at least one data set, got an empty list."
        raise InvalidArgumentError(message)


def _check_weights_spec(spec: Any, count: int) -> None:
    if spec is None:
        return
    vector = isinstance(spec, TensorSpec) and spec.shape in ((count,), (None,)) and _has_kind(spec, "biuf")
    if not vector:
        message = f"A data set of weights must give vectors of {count} numbers, got elements of {spec}."
        raise InvalidTypeError(message, hint="Each element holds one weight for each data set.")


def _has_kind(spec: TensorSpec, kinds: str) -> bool:
    return spec.dtype is not bytes and np.dtype(spec.dtype).kind in kinds


GROUP = 32  # number of elements between two estimates of the class distribution
PRIOR = 10  # number of imaginary elements of each class before the first element


def acceptance(initial: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the probability of accepting an element of each class, and the fraction of elements taken without a test.

    This is tf.data's formula (`_calculate_acceptance_probs_with_mixing`). With the ratios r = target / initial, the
    fraction is min(r) and the probabilities are (r - min(r)) / (max(r) - min(r)). Distributions lie along the last
    axis.
    """
    ratio = np.divide(
        target, initial, out=np.zeros(np.broadcast_shapes(initial.shape, target.shape)), where=initial > 0
    )
    least, most = ratio.min(axis=-1, keepdims=True), ratio.max(axis=-1, keepdims=True)
    span = most - least
    accepted = np.divide(ratio - least, span, out=np.ones_like(ratio), where=span > 0)
    return accepted, np.minimum(least[..., 0], 1.0)


class WithClass(UnaryNode):
    """Yields `(class, element)` for every element; the class is an integer below `num_classes`."""

    class_func: Callable[..., Any]
    num_classes: int

    name: ClassVar[str] = "rejection_resample"

    def __post_init__(self) -> None:
        check_function("class_func", self.class_func, self.name)

    @property
    def label(self) -> str:
        return f"with_class({function_name(self.class_func)})"

    @property
    def spec(self) -> Any:
        return None if self.input.spec is None else (TensorSpec((), np.int64), self.input.spec)


class Accept(UncountedNode):
    """Accepts `(class, element)` pairs at random, so that the accepted pairs move the classes towards `target`.

    Without `initial`, the distribution of the input is estimated during reading. `salt` is as in `Shuffle`.
    """

    target: tuple[float, ...]
    initial: tuple[float, ...] | None = None
    seed: int | None = None
    salt: int = -1

    name: ClassVar[str] = "rejection_resample"

    def __post_init__(self) -> None:
        check_seed(self)

    @property
    def label(self) -> str:
        return "accept_by_class"


class EstimateMix(UnaryNode):
    """Yields, for every `(class, element)` pair, the weights of unfiltered and of accepted elements."""

    target: tuple[float, ...]

    name: ClassVar[str] = "rejection_resample"

    @property
    def label(self) -> str:
        return "estimate_classes"

    @property
    def spec(self) -> Any:
        return TensorSpec((2,), np.float64)
