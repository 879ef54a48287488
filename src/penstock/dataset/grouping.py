"""Methods of `Dataset`: windows, groups and buckets."""

from __future__ import annotations


class Grouping:
    """Mixed into `Dataset`."""
