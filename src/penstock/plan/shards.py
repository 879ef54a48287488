"""The shards of a saved data set as a data set of data sets, for a reader_func."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from penstock.block.leaf import NESTED
from penstock.errors import InvalidTypeError
from penstock.plan.node import Node
from penstock.plan.ops import Map
from penstock.plan.scan import Scan
from penstock.sources.arrays import RangeSource
from penstock.sources.saved import SavedSource


def read_by(reader_func: Callable[[Any], Any], source: SavedSource, dataset: Callable[[Node], Any]) -> Any:
    """The data set that `reader_func` makes of the shards; `dataset` makes a data set of a plan."""

    def shard(number: Any) -> Any:
        return dataset(Scan(source=replace(source, shards=(source.shards[number],))))

    numbers = Scan(source=RangeSource(range(len(source.shards)), np.dtype(np.int64)))
    found = reader_func(dataset(Map(input=numbers, function=shard)))
    if not isinstance(getattr(found, NESTED, None), Node):
        message = f"reader_func must return a Dataset of elements, got {type(found).__name__}."
        hint = "For example lambda shards: shards.interleave(lambda shard: shard)."
        raise InvalidTypeError(message, hint=hint)
    return found
