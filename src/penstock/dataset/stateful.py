"""Methods of `Dataset`: steps that carry a state from element to element."""

from __future__ import annotations


class Stateful:
    """Mixed into `Dataset`."""
