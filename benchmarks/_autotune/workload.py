"""Workload: one pipeline in penstock and in tf.data, with the settings that a user would try by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from _autotune.setting import Setting


@dataclass(frozen=True)
class Workload:
    """`penstock` and `tf_data` build endless data sets whose items have `each` elements.

    `step` is the consumer's time for an item, in seconds. `prepare` writes data to disk first, which is not timed.
    """

    name: str
    penstock: Callable[[Setting], Any]
    tf_data: Callable[[], Any]
    grid: tuple[Setting, ...]
    each: int = 1
    step: float = 0.0
    prepare: Callable[[], object] = lambda: None
