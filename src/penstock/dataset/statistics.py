"""Statistics: the mean, standard deviation, smallest and largest value of each component of the elements."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.block.spec import TensorSpec
from penstock.block.structure import flatten
from penstock.block.tensors import RaggedTensor
from penstock.errors import InvalidArgumentError
from penstock.plan.node import check_ends

if TYPE_CHECKING:
    from penstock.dataset.dataset import Dataset

_AT_ONCE = 1 << 16  # values per batch; fixed, because the last bits of a mean depend on it


@dataclass(frozen=True, eq=False)
class Statistics:
    """The statistics of one component: numbers, or arrays with a number for each index of the last axis.

    `count` is the number of values in each mean; `mean` and `variance` are float64; `min` and `max` have the dtype of
    the component.
    """

    count: int
    mean: Any
    variance: Any
    min: Any
    max: Any

    @property
    def std(self) -> Any:
        """Standard deviations: the square roots of `variance`."""
        return np.sqrt(self.variance)


def statistics(ds: Dataset) -> Any:
    """Return the nest of an element with `Statistics` in place of numbers, from one iteration over a data set."""
    check_ends("statistics", ds.cardinality())
    specs, structure = flatten(ds.element_spec)
    fixed = all(isinstance(spec, TensorSpec) and not spec.open_rank and None not in spec.shape for spec in specs)
    if fixed:
        ds = ds.batch(max(1, _AT_ONCE // max(1, sum(math.prod(spec.shape) for spec in specs))))
    found: list[Statistics | None] = [None] * len(specs)
    with ds._views() as elements:
        for element in elements:
            for i, leaf in enumerate(structure.flatten(element)):
                found[i] = _joined(found[i], _of(leaf, batched=fixed))
    if not any(found):
        message = "statistics needs elements with real numbers, and found none."
        raise InvalidArgumentError(message, hint="Decode byte strings in a map before it.")
    return structure.build(found)


def _of(leaf: Any, *, batched: bool) -> Statistics | None:
    """Return the statistics of a component, or None if it has no real numbers."""
    array = np.asarray(leaf.flat_values if isinstance(leaf, RaggedTensor) else leaf)
    if array.dtype.kind not in "biuf" or not array.size:
        return None
    channels = array.shape[-1:] if array.ndim > (batched or isinstance(leaf, RaggedTensor)) else ()
    values = np.ascontiguousarray(array.reshape(-1, *channels).T)
    mean = values.mean(-1, np.float64, keepdims=True)
    variance = np.square(values - mean).mean(-1)
    return Statistics(values.shape[-1], mean[..., 0], variance, values.min(-1), values.max(-1))


def _joined(one: Statistics | None, other: Statistics | None) -> Statistics | None:
    """Return the statistics of two sets of values together, by the formula of Chan, Golub and LeVeque."""
    if one is None or other is None:
        return one or other
    if np.shape(one.mean) != np.shape(other.mean):
        one, other = _over_all(one), _over_all(other)
    count = one.count + other.count
    share, apart = other.count / count, other.mean - one.mean
    variance = one.variance * (1 - share) + other.variance * share + np.square(apart) * (share * (1 - share))
    low, high = np.minimum(one.min, other.min), np.maximum(one.max, other.max)
    return Statistics(count, one.mean + apart * share, variance, low, high)


def _over_all(one: Statistics) -> Statistics:
    """Return the statistics of the values of all channels together."""
    mean = np.mean(one.mean)
    variance = np.mean(one.variance + np.square(one.mean - mean))
    return Statistics(one.count * np.size(one.mean), mean, variance, np.min(one.min), np.max(one.max))
