"""How the elements of each node type are had by number; importing this package registers them all."""

from penstock.physical.accesses import apart, batches, kept, several, single, storing

__all__ = ["apart", "batches", "kept", "several", "single", "storing"]
