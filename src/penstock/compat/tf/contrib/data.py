"""`tf.contrib.data`: the first home of `tf.data.experimental`."""

from __future__ import annotations

from typing import Any

from penstock.compat.tf.data import experimental


def batch_and_drop_remainder(batch_size: Any) -> Any:
    """`batch(batch_size, drop_remainder=True)` as a function for `apply`."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def __getattr__(name: str) -> Any:
    return getattr(experimental, name)
