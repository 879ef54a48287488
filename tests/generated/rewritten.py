"""Reference for the steps that only rewrites make, and generated steps that rewrites have something to say about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st
from tests.reference import Context, elements

import penstock as ps
from penstock.plan.fused import ShuffleAndRepeat
from penstock.plan.node import EXECUTORS

if TYPE_CHECKING:
    from tests.strategies import Pipeline


@elements.register
def _(node: ShuffleAndRepeat, context: Context) -> Iterator[Any]:
    return elements(replace(node.repeat, input=replace(node.shuffle, input=node.input)), context)


def _shuffle_and_repeat(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    if at.infinite:
        return at
    size, again, count = draw(st.sampled_from([1, 3, 10, 100])), draw(st.booleans()), draw(st.sampled_from([2, 3, -1]))
    dataset = at.dataset.shuffle(size, reshuffle_each_iteration=again).repeat(count)
    # spelled as _repeat_for_ever spells it: what is known of an endless repetition of nothing depends on it
    text = f"shuffle({size}, {again}).repeat({'' if count < 0 else count})"
    return at.then(text, dataset, infinite=count < 0)


def _cut_of_map(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    count = draw(st.integers(0, 7))
    mapped = at.dataset.map(lambda x: x + 1) if at.kind == "int" else at.dataset
    return at.then(f"map.skip({count}).shard(2, 1)", mapped.skip(count).shard(2, 1))


PNG = ps.io.encode_png(np.zeros((2, 3, 1), np.uint8))


def _picture(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    """A map of an operation on pictures, which is made parallel, and one of arithmetic, which joins it."""
    if at.kind != "int":
        return at
    dataset = at.dataset.map(lambda x: (x, ps.image.decode_png(PNG))).map(lambda x, picture: x * 3)
    return at.then("map(decode).map(triple)", dataset)


def _maps_by_executors(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    """Two maps whose functions are called by whoever; they may become one step, or not."""
    if at.kind != "int":
        return at
    parallel = draw(st.sampled_from([None, 2]))
    first, second = draw(st.sampled_from(EXECUTORS)), draw(st.sampled_from(EXECUTORS))
    dataset = at.dataset.map(lambda x: x + 1, parallel, deterministic, executor=first)
    dataset = dataset.map(lambda x: x * 2 if x % 3 else -x, parallel, deterministic, executor=second)
    return at.then(f"map(+1, {parallel}, {first}).map(double or minus, {parallel}, {second})", dataset)


STEPS = [_shuffle_and_repeat, _cut_of_map, _picture, _maps_by_executors]
