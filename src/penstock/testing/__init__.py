"""Checks to run on data sets of your own: same elements on every executor, and after a resume at every step.

>>> import penstock as ps
>>> from penstock.testing import assert_resumes_exactly, assert_same_on_all_executors
>>> ds = ps.Dataset.range(6).shuffle(4).batch(2)
>>> assert_same_on_all_executors(ds)
>>> assert_resumes_exactly(ds)
"""

from penstock.testing.compare import assert_same_elements, difference, token
from penstock.testing.parity import assert_same_on_all_executors
from penstock.testing.resume import assert_resumes_exactly, resumed

__all__ = [
    "assert_resumes_exactly",
    "assert_same_elements",
    "assert_same_on_all_executors",
    "difference",
    "resumed",
    "token",
]


def __dir__() -> list[str]:
    return sorted(__all__)
