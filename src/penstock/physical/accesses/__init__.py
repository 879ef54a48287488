"""How the elements of each node type are had by number; importing this package registers them all."""

from penstock.physical.accesses import batches, several, single, storing

__all__ = ["batches", "cached", "several", "single", "slices", "storing"]
