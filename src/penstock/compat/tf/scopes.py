"""Functions for the place and order of a graph. Statements run in order here, so these functions change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from penstock.compat.op import known


@known
@contextmanager
def name_scope(name: Any = None, default_name: Any = None, values: Any = None) -> Iterator[str]:
    """Run the block unchanged, and return the name."""
    yield str(name or default_name or "")


@known
@contextmanager
def device(*args: Any, **kwargs: Any) -> Iterator[None]:
    """Run the block unchanged: input pipelines run on the CPU, and earlier statements have run already.

    >>> from penstock.compat import tf
    >>> with tf.control_dependencies([tf.debugging.assert_equal(1, 1)]), tf.device("/cpu:0"):
    ...     print(tf.identity(3).numpy())
    3
    """
    yield


@known
def no_op(*inputs: Any, name: Any = None) -> None:
    """Do nothing: the inputs have run already."""


control_dependencies, group = device, no_op
