"""Methods of `Dataset`: random access, global shuffles, provenance."""

from __future__ import annotations


class Indexing:
    """Mixed into `Dataset`."""
