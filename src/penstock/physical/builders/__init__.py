"""How each node type runs, one module per group of steps; importing this package registers them all."""

from penstock.physical.builders import batching, core, mixing, stateful

__all__ = [
    "batching",
    "core",
    "delivering",
    "grouping",
    "indexing",
    "mixing",
    "packing",
    "rewritten",
    "stateful",
    "storing",
]
