"""Steps that `rejection_resample` is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from penstock.block.spec import TensorSpec
from penstock.plan.node import UNKNOWN_CARDINALITY, UnaryNode, check_function, check_seed, function_name

GROUP = 32  # elements between two estimates of how classes are distributed
PRIOR = 10  # times each class counts as seen before the first element


def acceptance(initial: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How likely an element of each class is accepted, and the share of elements to take as they come.

    tf.data's formula (`_calculate_acceptance_probs_with_mixing`): with the ratios r = target / initial, the share is
    min(r) and the probabilities are (r - min(r)) / (max(r) - min(r)). Distributions lie along the last axis.
    """
    ratio = np.divide(
        target, initial, out=np.zeros(np.broadcast_shapes(initial.shape, target.shape)), where=initial > 0
    )
    least, most = ratio.min(axis=-1, keepdims=True), ratio.max(axis=-1, keepdims=True)
    span = most - least
    accepted = np.divide(ratio - least, span, out=np.ones_like(ratio), where=span > 0)
    return accepted, np.minimum(least[..., 0], 1.0)


class WithClass(UnaryNode):
    """`(class, element)` for every element, the class a number below `num_classes`."""

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


class Accept(UnaryNode):
    """The `(class, element)` pairs that a draw accepts, so that classes come as in `target` beside the rest.

    Without `initial` the distribution of the input is estimated as it is read. `salt` is as in `Shuffle`.
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

    @property
    def cardinality(self) -> int:
        return 0 if self.input.cardinality == 0 else UNKNOWN_CARDINALITY


class EstimateMix(UnaryNode):
    """For every `(class, element)` pair the weights of taking elements as they come, and of taking accepted ones."""

    target: tuple[float, ...]

    name: ClassVar[str] = "rejection_resample"

    @property
    def label(self) -> str:
        return "estimate_classes"

    @property
    def spec(self) -> Any:
        return TensorSpec((2,), np.float64)
