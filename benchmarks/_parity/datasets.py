"""Data sets: interleave with many settings, functions, random steps, and properties known before an iteration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

import penstock as ps
from _parity.check import Check, Comparer
from _parity.kit import OURS, THEIRS

ORDERS = 150


def elements(ds: Any) -> list[Any]:
    """Return all elements, as numpy values."""
    return list(ds.as_numpy_iterator())


def _spec(spec: Any) -> Any:
    """Convert a spec of either library to a nest of strings."""
    if isinstance(spec, dict):
        return {name: _spec(part) for name, part in spec.items()}
    if isinstance(spec, tuple):
        return tuple(_spec(part) for part in spec)
    name = "bytes" if spec.dtype in (bytes, tf.string) else tf.as_dtype(spec.dtype).name
    return f"{name} {tuple(spec.shape)}"


def orders(compare: Comparer) -> None:
    """Compare interleave and flat_map with random cycles, block lengths and input lengths, sequential and parallel."""
    for number in range(ORDERS):
        rng = np.random.default_rng(number)
        lengths = rng.integers(0, 7, size=rng.integers(0, 9)).astype(np.int64)
        settings = {"cycle_length": int(rng.integers(1, 6)), "block_length": int(rng.integers(1, 5))}
        calls = int(rng.integers(0, settings["cycle_length"] + 1))
        parallel = {"num_parallel_calls": calls} if calls else {}
        ours, theirs = _inputs(ps.Dataset, lengths), _inputs(tf.data.Dataset, lengths)
        compare.same(
            f"interleave({lengths.tolist()}, {settings}, {parallel})",
            elements(ours.interleave(_counted(ps.Dataset), **settings, **parallel)),
            elements(theirs.interleave(_counted(tf.data.Dataset), **settings, **parallel)),
        )
        compare.same(
            f"flat_map({lengths.tolist()})",
            elements(ours.flat_map(_counted(ps.Dataset))),
            elements(theirs.flat_map(_counted(tf.data.Dataset))),
        )


def _inputs(kind: Any, lengths: Any) -> Any:
    return kind.from_tensor_slices(lengths).enumerate()


def _counted(kind: Any) -> Callable[[Any, Any], Any]:
    """Return a function from (i, length) to a data set of `length` numbers from i·100 on."""
    return lambda i, length: kind.range(i * 100, i * 100 + length)


def _pair(x: Any) -> Any:
    return x * 2, x % 7


def _difference(a: Any, b: Any) -> Any:
    return a - b


def _kept(x: Any) -> Any:
    return x % 3 != 0


def functions(compare: Comparer) -> None:
    """Compare map, filter and from_generator. For shuffle, compare the set of elements and their earliest position.

    The order of a shuffle differs between the libraries.
    """
    numbers, theirs = ps.Dataset.range(50), tf.data.Dataset.range(50)
    for parallel in (None, 3):
        compare.same(
            f"map, {parallel} calls",
            elements(numbers.map(_pair, num_parallel_calls=parallel).map(_difference)),
            elements(theirs.map(_pair, num_parallel_calls=parallel).map(_difference)),
        )
    compare.same("filter", elements(numbers.filter(_kept)), elements(theirs.filter(_kept)))
    for buffer in (1, 7, 50, 100):
        found = elements(numbers.shuffle(buffer, seed=1))
        compare.same(f"shuffle({buffer}) has every element", sorted(found), sorted(elements(theirs.shuffle(buffer))))
        early = [int(x) for place, x in enumerate(found) if x >= place + buffer]
        compare.same(f"shuffle({buffer}) has no element before its buffer reaches it", early, [])

    def generate() -> Iterator[Any]:
        yield from ((i, b"x" * i) for i in range(5))

    ours = ps.TensorSpec((), np.int64), ps.TensorSpec((), bytes)
    theirs = tf.TensorSpec((), tf.int64), tf.TensorSpec((), tf.string)
    compare.same(
        "from_generator",
        elements(ps.Dataset.from_generator(generate, output_signature=ours)),
        elements(tf.data.Dataset.from_generator(generate, output_signature=theirs)),
    )


def specs(compare: Comparer) -> None:
    """Compare element_spec and cardinality of sources and steps that generated pipelines do not have."""
    values = {"a": np.zeros((4, 2), np.float16), "b": (np.array([b"x"] * 4), np.ones(4, bool))}
    ours, theirs = ps.Dataset.from_tensor_slices(values), tf.data.Dataset.from_tensor_slices(values)
    forms: tuple[tuple[str, Callable[[Any], Any]], ...] = (
        ("slices", lambda ds: ds),
        ("batch", lambda ds: ds.batch(3)),
        ("batch, drop_remainder", lambda ds: ds.batch(3, drop_remainder=True)),
        ("batch of batch", lambda ds: ds.batch(2).batch(2)),
        ("repeat for ever", lambda ds: ds.repeat()),
        ("take of repeat", lambda ds: ds.repeat().take(3)),
        ("filter", lambda ds: ds.filter(lambda x: x["b"][1])),
    )
    for text, build in forms:
        mine, other = build(ours), build(theirs)
        compare.same(f"cardinality: {text}", int(mine.cardinality()), int(other.cardinality()))
        compare.same(f"element_spec: {text}", _spec(mine.element_spec), _spec(other.element_spec))


SHARE = 0.04  # allowed deviation of a share of 2000 random numbers: four standard deviations
MIXED = "K.Dataset.sample_from_datasets([K.Dataset.range(30), K.Dataset.range(100, 110)], seed=3)"
WEIGHTED = (
    "K.Dataset.sample_from_datasets([K.Dataset.range(1).repeat(), K.Dataset.range(1, 2).repeat()], [0.2, 0.8], seed=3)"
)
RESAMPLED = (
    "K.Dataset.range(10**6).map(lambda x: x % 4 // 3)"
    ".rejection_resample(lambda x: K.cast(x, 'int32'), [0.2, 0.8], {}, seed=3).map(lambda label, x: x)"
)


def mixtures(compare: Comparer) -> None:
    """Check mixtures, whose random order differs: all elements in their data set's order, and the right shares."""
    for kit in (OURS, THEIRS):
        found = [int(x) for x in elements(kit.build(MIXED))]
        for low, high in ((0, 30), (100, 110)):
            share = [x for x in found if low <= x < high]
            compare.same(f"{kit.name}: elements from {low} of {MIXED}", share, list(range(low, high)))
        initial = ("None", "[0.75, 0.25]")
        for text in (WEIGHTED, *(RESAMPLED.format(dist) for dist in initial)):
            share = float(np.mean(elements(kit.build(text).skip(500).take(2000))))
            compare.same(f"{kit.name}: {text} has a share of {share}", abs(share - 0.8) < SHARE, True)
    for text in ("K.Dataset.random(seed=1).take(500)", "K.Dataset.random().take(500)"):
        for kit in (OURS, THEIRS):
            found = elements(kit.build(text))
            inside = all(0 <= int(x) < 2**32 for x in found)
            compare.same(f"{kit.name}: {text}", (inside, len(set(found))), (True, 500))


CHECKS = (
    Check("interleave and flat_map", orders),
    Check("functions, generators, shuffles", functions),
    Check("mixtures and random numbers", mixtures),
    Check("element_spec and cardinality", specs),
)
