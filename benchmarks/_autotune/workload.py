"""Workload: one pipeline as a user of penstock and of tf.data writes it, with the settings a hand would try."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from _autotune.setting import Setting


@dataclass(frozen=True)
class Workload:
    """`penstock` and `tf_data` make endless data sets that give `each` elements at a time.

    `step` is how many seconds the consumer takes for what it was given; `prepare` makes data on disk before, untimed.
    """

    name: str
    penstock: Callable[[Setting], Any]
    tf_data: Callable[[], Any]
    grid: tuple[Setting, ...]
    each: int = 1
    step: float = 0.0
    prepare: Callable[[], object] = lambda: None
