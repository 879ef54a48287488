"""Access by index for each node type. Importing this package registers all of them."""

from penstock.physical.accesses import batches, several, single, storing

__all__ = ["batches", "several", "single", "storing"]
