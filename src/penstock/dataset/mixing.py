"""Methods of `Dataset`: several data sets mixed into one."""

from __future__ import annotations


class Mixing:
    """Mixed into `Dataset`."""
