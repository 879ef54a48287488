"""Numbers of elements in their source, for the origins of Blocks."""

from __future__ import annotations

import numpy as np

from penstock.block.block import Block
from penstock.block.origin import Origin
from penstock.sources.indexed import IndexedSource
from penstock.sources.sliced import SlicedSource
from penstock.sources.source import Source


def located(block: Block, source: Source, numbers: np.ndarray) -> Block:
    """A Block of a source's elements with these numbers, whose origin knows them."""
    if isinstance(source, IndexedSource):
        source, numbers = _whole(source, numbers)
    origin = block.origin
    if origin is None:
        origin = Origin.of_source(source.label, numbers)
    elif origin.position is None:
        origin = Origin(origin.files, origin.file, origin.offset, numbers)
    return Block(block.structure, block.columns, block.size, origin)


def _whole(source: IndexedSource, numbers: np.ndarray) -> tuple[IndexedSource, np.ndarray]:
    """The source that a slice was cut from, and the numbers there: rewrites cut, and nobody shall see that."""
    while isinstance(source, SlicedSource):
        numbers = source.start + numbers * source.step
        source = source.inner
    return source, numbers
