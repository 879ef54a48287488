"""Data sets to and from Ray Data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from penstock.adaptors.conversion import column_names
from penstock.block.structure import flatten
from penstock.dataset.base import inner
from penstock.dataset.converting import Converting
from penstock.errors import InvalidTypeError
from penstock.plan.distribution import cut, unit_of
from penstock.plan.node import check_ends
from penstock.rewrite.driver import optimise

if TYPE_CHECKING:
    from penstock.dataset.dataset import Dataset

_ROWS = 256  # elements per transfer to Ray


def to_ray(dataset: Dataset, blocks: int) -> Any:
    """Implement `Dataset.to_ray`."""
    from penstock.delivery.on_ray import the_ray

    the_ray()
    import ray.data

    check_ends("to_ray", dataset.cardinality())
    parts = [{"part": part, "parts": blocks} for part in range(blocks)]

    def rows(asked: Mapping[str, Any]) -> Iterator[dict[str, list[Any]]]:
        for part, of in zip(asked["part"].tolist(), asked["parts"].tolist(), strict=True):
            yield from _columns(dataset, part, of)

    return ray.data.from_items(parts, override_num_blocks=blocks).map_batches(rows, batch_size=1)


def _columns(dataset: Dataset, part: int, parts: int) -> Iterator[dict[str, list[Any]]]:
    """Yield the elements of every `parts`-th range of an iteration as columns, `_ROWS` at a time."""
    elements = _elements(dataset, part, parts)
    while some := list(islice(elements, _ROWS)):
        rows = [_row(element) for element in some]
        yield {name: [row[name] for row in rows] for name in rows[0]}


def _elements(dataset: Dataset, part: int, parts: int) -> Iterator[Any]:
    from penstock.delivery.maker import Maker
    from penstock.delivery.part import PlanPart

    options = dataset._options
    found = cut(optimise(dataset._plan, options))
    if found.rest:  # some steps need the whole stream: each task runs all of them
        with dataset.shard(parts, part).iterator(epoch=0, executor="inline") as elements:
            yield from elements
        return
    unit = unit_of(found.middle)
    length = max(_ROWS // (unit * parts), 1) * unit
    maker = Maker(PlanPart(found.base, found.middle, options, inner, provenance=False), 0)
    start = part * length
    while True:
        made = maker.make(start, start + length)
        for each in made.parts:
            for piece in each.pieces():
                if isinstance(piece, Exception):
                    raise piece
                yield from piece.elements()
        if made.ended:
            return
        start += parts * length


def _row(element: Any) -> dict[str, Any]:
    leaves, structure = flatten(element)
    return {name or "item": leaf for name, leaf in zip(column_names(structure), leaves, strict=True)}


def from_ray(dataset: Any, columns: Sequence[str] | None, fill_null: Mapping[str, Any] | None) -> Dataset:
    """Implement `Dataset.from_ray`."""
    from penstock.delivery.on_ray import the_ray

    ray = the_ray()
    import pyarrow as pa

    if not hasattr(dataset, "to_arrow_refs"):
        message = f"from_ray takes a ray.data.Dataset, got {type(dataset).__name__}."
        raise InvalidTypeError(message, hint="For a table, use from_arrow. For a frame, use from_pandas.")
    tables = ray.get(dataset.to_arrow_refs())
    filled = [table for table in tables if table.num_rows] or tables[:1]
    return Converting.from_arrow(pa.concat_tables(filled, promote_options="default"), columns, fill_null=fill_null)
