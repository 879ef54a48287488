"""Methods of `Dataset`: sequences packed into rows, batches by tokens."""

from __future__ import annotations


class Packing:
    """Mixed into `Dataset`."""
