"""What said where and in which order a graph runs: statements run in their own order here, so these change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from penstock.compat.op import known


@contextmanager
def device(name: Any) -> Iterator[None]:
    """Run the block as it stands: input pipelines run on the CPU."""
    yield


@contextmanager
def name_scope(name: Any = None, default_name: Any = None, values: Any = None) -> Iterator[str]:
    """Run the block as it stands; gives the name."""
    yield str(name or default_name or "")


@contextmanager
def control_dependencies(control_inputs: Any) -> Iterator[None]:
    """Run the block as it stands: what is listed has run already.

    >>> from penstock.compat import tf
    >>> with tf.control_dependencies([tf.debugging.assert_equal(1, 1)]):
    ...     print(tf.identity(3).numpy())
    3
    """
    yield


def group(*inputs: Any, name: Any = None) -> None:
    """Nothing: the inputs have run already."""


def no_op(name: Any = None) -> None:
    """Nothing."""


for _function in (device, name_scope, control_dependencies, group, no_op):
    known(_function)
