"""Methods of `Dataset`: padded, ragged and sparse batches, rebatch."""

from __future__ import annotations


class Batching:
    """Mixed into `Dataset`."""
