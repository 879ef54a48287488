"""Reference and generated steps: random access, global shuffles, provenance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from tests.reference import Context, elements

import penstock as ps
from penstock.keys import fold
from penstock.permutation import permuted
from penstock.physical.access import obstacle
from penstock.plan.indexing import GlobalShuffle, WithProvenance

if TYPE_CHECKING:
    from tests.strategies import Pipeline


@elements.register
def _(node: GlobalShuffle, context: Context) -> Iterator[Any]:
    key = fold(context.options.seed, node.salt) if node.seed is None else fold(node.seed, 0)
    if node.reshuffle_each_iteration:
        key = fold(key, context.epoch)
    found = list(elements(node.input, context))
    for position in range(len(found)):
        yield found[permuted(position, key, len(found))]


@elements.register
def _(node: WithProvenance, context: Context) -> Iterator[Any]:
    """The reference does not know where elements come from: generated pipelines look at the elements only."""
    for element in elements(node.input, context):
        yield element, ps.Provenance(b"", -1, -1)


def _shuffle_all(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    if at.infinite or obstacle(at.dataset._plan) is not None:
        return at
    seed, again = draw(st.sampled_from([None, 0, 7])), draw(st.booleans())
    return at.then(f"shuffle(ALL, {seed}, {again})", at.dataset.shuffle(ps.ALL, seed, again))


def _with_provenance(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    dataset = at.dataset.with_provenance().map(lambda element, provenance: element)
    return at.then("with_provenance().map(element)", dataset)


STEPS: list[Any] = [_shuffle_all, _shuffle_all, _with_provenance]
