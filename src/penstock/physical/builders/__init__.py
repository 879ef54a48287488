"""The stage of each node type, in one module per group of steps. Importing this package registers all of them."""

from penstock.physical.builders import batching, core, mixing, stateful

__all__ = ["batching", "core", "mixing", "stateful"]
