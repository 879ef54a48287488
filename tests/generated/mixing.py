"""Reference and generated steps: several data sets mixed into one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count as count_from
from itertools import islice
from typing import Any

import numpy as np
from hypothesis import strategies as st
from tests.reference import Context, call, elements, value_of
from tests.strategies import Pipeline

import penstock as ps
from penstock.keys import draw as draw_integer
from penstock.keys import fold
from penstock.plan.mix_weights import MixWeights
from penstock.plan.mixing import Accept, ChooseFrom, EstimateMix, SampleFrom, WithClass
from penstock.plan.ops import Repeat

NOTHING = object()


def unit(key: int, number: int) -> float:
    """A number in [0, 1), of 26 and 27 random bits."""
    return (draw_integer(key, 2 * number, 2**26) * 2**27 + draw_integer(key, 2 * number + 1, 2**27)) / 2**53


def pick(weights: list[float], u: float) -> int | None:
    """The first source for which the sum of weights is above u times the sum of all; None without weight."""
    sums = []
    total = 0.0
    for weight in weights:
        total += weight
        sums.append(total)
    if total == 0:
        return None
    above = [i for i, upto in enumerate(sums) if upto > u * total]
    return above[0] if above else max(i for i, weight in enumerate(weights) if weight)


def _weights(node: SampleFrom, context: Context) -> Iterator[Any]:
    if node.weights is None:
        yield from elements(node.parts[-1], context)
    for step in count_from():
        if isinstance(node.weights, tuple):
            yield node.weights
        elif isinstance(node.weights, MixWeights):
            yield [weights for first, weights in node.weights.history if first <= step][-1]
        elif node.weights is not None:
            yield node.weights(step)
        else:
            return


@elements.register
def _(node: SampleFrom, context: Context) -> Iterator[Any]:
    key = fold(context.options.seed, node.salt, 1) if node.seed is None else fold(node.seed, 1)
    if node.rerandomize_each_iteration:
        key = fold(key, context.epoch)
    parts = [Repeat(input=part) for part in node.sources] if node.on_empty == "repeat" else node.sources
    sources = [elements(part, context) for part in parts]
    dry: set[int] = set()
    for step, weights in enumerate(_weights(node, context)):
        for attempt in count_from():
            u = unit(fold(key, attempt) if attempt else key, step)
            source = pick([0.0 if i in dry else float(weight) for i, weight in enumerate(weights)], u)
            if source is None:
                return
            element = next(sources[source], NOTHING)
            if element is not NOTHING:
                yield element
                break
            assert node.on_empty in ("continue", "stop"), "errors have no reference"
            dry.add(source)
            if node.on_empty == "stop":
                return


@elements.register
def _(node: ChooseFrom, context: Context) -> Iterator[Any]:
    sources = [elements(part, context) for part in node.sources]
    dry: set[int] = set()
    for choice in elements(node.parts[0], context):
        element = next(sources[choice], NOTHING)
        if element is not NOTHING:
            yield element
            continue
        dry.add(int(choice))
        if node.stop_on_empty_dataset or len(dry) == len(sources):
            return


@elements.register
def _(node: WithClass, context: Context) -> Iterator[Any]:
    for element in elements(node.input, context):
        yield np.int64(value_of(call(node.class_func, element))), element


def _estimated(node: Accept | EstimateMix, context: Context) -> Iterator[tuple[Any, list[float]]]:
    """Each pair, and how often each class is target than input, by the classes up to the end of its group of 32."""
    pairs = elements(node.input, context)
    seen = [10] * len(node.target)
    while group := list(islice(pairs, 32)):
        for number, _ in group:
            seen[number] += 1
        ratios = [wanted / (count / sum(seen)) for wanted, count in zip(node.target, seen, strict=True)]
        yield from ((pair, ratios) for pair in group)


@elements.register
def _(node: Accept, context: Context) -> Iterator[Any]:
    key = fold(context.options.seed, node.salt, 2) if node.seed is None else fold(node.seed, 2)
    key = fold(key, context.epoch)
    if node.initial is None:
        found = _estimated(node, context)
    else:
        known = [wanted / has if has else 0.0 for wanted, has in zip(node.target, node.initial, strict=True)]
        found = ((pair, known) for pair in elements(node.input, context))
    for number, (pair, ratios) in enumerate(found):
        least, most = min(ratios), max(ratios)
        chance = (ratios[pair[0]] - least) / (most - least) if most > least else 1.0
        if unit(key, number) < chance:
            yield pair


@elements.register
def _(node: EstimateMix, context: Context) -> Iterator[Any]:
    for _, ratios in _estimated(node, context):
        share = min(*ratios, 1.0)
        yield np.array([share, 1 - share])


# -- generated steps

WEIGHTS: list[Any] = [
    None,
    [1, 2, 1],
    [0.0, 0.1, 0.9],
    [1, 0, 0],
    lambda step: [1 + step % 2, 1, step],
    ps.mixing.piecewise([(0, [1, 0, 0]), (4, [0.2, 0.4, 0.4]), (9, [0, 1, 1])]),
    ps.mixing.linear([1, 0, 0], [0, 1, 3], steps=10),
    ps.MixWeights([3, 2, 1]),
]


def _sources(draw: Any, at: Pipeline) -> tuple[str, list[ps.Dataset]]:
    count = draw(st.sampled_from([2, 5, 0]))
    text = f"take({count}), skip({count}), itself"
    return text, [at.dataset.take(count), at.dataset.skip(count), at.dataset]


def _sample(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    text, sources = _sources(draw, at)
    place = draw(st.integers(0, len(WEIGHTS)))
    seed, again = draw(st.sampled_from([None, 0, 7])), draw(st.booleans())
    rule = draw(st.sampled_from(["continue", "stop"]))
    if place == len(WEIGHTS):
        weights = ps.Dataset.range(30).map(lambda step: np.array([1, 2, 1]) * (step + 1) / 8)
    else:
        weights = WEIGHTS[place]
    ds = ps.Dataset.sample_from_datasets(sources, weights, seed, False, again, on_empty=rule)
    # an endless source may be cut short, but one that is drawn from for ever has no end either
    return at.then(f"sample({text}; {place}, {seed}, {again}, {rule})", ds)


def _sample_repeated(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    again = draw(st.booleans())
    shuffled = ps.Dataset.range(5).shuffle(3, seed=1)
    ds = ps.Dataset.sample_from_datasets(
        [shuffled, ps.Dataset.range(10, 12)], [0.6, 0.4], 3, False, again, on_empty="repeat"
    )
    text = f"zip(·, sample({again}, repeat))"
    return at.then(text, ps.Dataset.zip(at.dataset, ds), "pair" if at.kind == "int" else "other")


def _choose(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    text, sources = _sources(draw, at)
    stop, length = draw(st.sampled_from([False, False, True])), draw(st.sampled_from([15, 30, 4, 0]))
    choices = ps.Dataset.range(length).map(lambda i: (i * i + i // 3) % 3)
    ds = ps.Dataset.choose_from_datasets(sources, choices, stop)
    return at.then(f"choose({length} of {text}, {stop})", ds, infinite=False)


def _resample(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    if at.kind != "int" or at.infinite:
        return at
    target = draw(st.sampled_from([[0.5, 0.5], [1, 3], [0, 1]]))
    initial, seed = draw(st.sampled_from([None, [0.5, 0.5], [0.2, 0.8]])), draw(st.sampled_from([None, 5]))
    ds = at.dataset.repeat(3).rejection_resample(_parity, target, initial, seed).take(-1)
    return at.then(f"repeat(3).resample({target}, {initial}, {seed}).take(-1)", ds, "other")


def _parity(x: Any) -> Any:
    return np.int64(x) % 2


STEPS: list[Any] = [_sample, _sample, _sample_repeated, _choose, _resample]
