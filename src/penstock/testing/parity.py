"""assert_same_on_all_executors: what comes out does not depend on who computes it."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from penstock.plan.node import EXECUTORS
from penstock.testing.compare import assert_same_elements

if TYPE_CHECKING:
    from penstock.dataset.dataset import Dataset


def assert_same_on_all_executors(dataset: Dataset, *, epoch: int = 0, limit: int | None = None) -> None:
    """Check that every executor yields the same elements in the same order as the inline executor.

    The elements of an iteration are in memory at the same time. Data sets with `deterministic=False` have no fixed
    order and fail.

    Args:
        dataset: The data set.
        epoch: Number of the epoch. Default: 0.
        limit: Largest number of elements to compare, for infinite data sets.

    Raises:
        AssertionError: If an executor yields other elements.

    Example:
        >>> import penstock as ps
        >>> assert_same_on_all_executors(ps.Dataset.range(5).map(lambda x: x / 3, num_parallel_calls=2).shuffle(3))
    """
    with dataset.iterator(epoch=epoch, executor="inline") as elements:
        wanted = list(islice(elements, limit))
    for executor in EXECUTORS:
        with dataset.iterator(epoch=epoch, executor=executor) as elements:
            found = list(islice(elements, limit))
        try:
            assert_same_elements(found, wanted)
        except AssertionError as error:
            message = f"executors 'inline' and {executor!r}: {error}"
            raise AssertionError(message) from None
