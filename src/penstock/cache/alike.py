"""Alike: holds the elements that go into files to one spec, and joins those that wait to what a file holds."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

from penstock.block.block import Block, concat_blocks
from penstock.block.spec import LeafSpec
from penstock.block.structure import Structure, flatten
from penstock.errors import InvalidTypeError

Kept = tuple[Block, list[LeafSpec]]


class Alike:
    """Blocks with dict keys in the order of the first, and the spec that all elements so far satisfy."""

    def __init__(self, spec: Any = None) -> None:
        self._structure: Structure | None = None
        self._specs: list[LeafSpec] = []
        if spec is not None:
            self._specs, self._structure = flatten(spec)

    @property
    def spec(self) -> Any:
        """The nest of specs, None before the first element."""
        return None if self._structure is None else self._structure.build(list(self._specs))

    def __call__(self, block: Block) -> Kept:
        """The Block, and its specs. Raises InvalidTypeError for what no file holds, or is of another kind."""
        columns = list(block.columns)
        specs = [column.spec() for column in columns]
        if self._structure is None:
            from penstock.block.arrow import schema_of

            schema_of(block.structure, specs)  # what cannot be stored says so before the first file is written
            self._structure, self._specs = block.structure, specs
        elif block.structure != self._structure:
            order = self._structure.flatten(block.structure.build(list(range(len(block.columns)))))
            columns, specs = [columns[i] for i in order], [specs[i] for i in order]
        self._specs = relaxed(self._specs, specs)
        return Block(self._structure, columns, block.size), specs  # no file holds their origin


def relaxed(before: list[LeafSpec], now: list[LeafSpec]) -> list[LeafSpec]:
    """The specs that both satisfy."""
    found = []
    for one, other in zip(before, now, strict=True):
        both = one.relax(other, any_rank=True)  # where ranks may not differ, a step below has said so
        if both is None:
            message = f"All elements of a saved data set have one spec: before it was {one}, now it is {other}."
            raise InvalidTypeError(message, hint="np.float32(value) converts.")
        found.append(both)
    return found


def joined(waiting: Sequence[Kept]) -> Iterator[Kept]:
    """Neighbours as one Block, or as two, the second of which is smaller and of another spec."""
    alike = next((i for i, (_, specs) in enumerate(waiting) if specs != waiting[0][1]), len(waiting))
    first = sum(block.size for block, _ in waiting[:alike])
    # a last batch that is smaller shall not make lists of all the others
    parts = [waiting[:alike], waiting[alike:]] if 2 * first >= sum(block.size for block, _ in waiting) else [waiting]
    for part in parts:
        if part:
            yield whole(part)


def whole(parts: Sequence[Kept]) -> Kept:
    """Neighbours as one Block, and the specs that all of them satisfy."""
    specs = functools.reduce(relaxed, [specs for _, specs in parts])
    return concat_blocks([block for block, _ in parts]), specs


def stored_as(spec: Any) -> Any:
    """A nest of specs, if its elements can be stored; raises InvalidTypeError otherwise."""
    from penstock.block.arrow import schema_of

    leaves, structure = flatten(spec)
    schema_of(structure, leaves)
    return spec
