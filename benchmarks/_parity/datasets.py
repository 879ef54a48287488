"""Data sets: random chains of transformations give the same elements, specs and cardinalities; so does interleave."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

import penstock as ps
from _parity.check import Check, Comparer, outcome

CHAINS = 400
ORDERS = 150


def elements(ds: Any) -> list[Any]:
    """Every element, as numpy values."""
    return list(ds.as_numpy_iterator())


def chains(compare: Comparer) -> None:
    """Two to five transformations on a random source, built by the same calls in both libraries."""
    for number in range(CHAINS):
        text, build = _chain(np.random.default_rng(number))
        compare.same_or_both_refuse(
            text,
            lambda: elements(build(ps.Dataset)),  # noqa: B023  # called before the next turn
            lambda: elements(build(tf.data.Dataset)),  # noqa: B023
        )
        theirs, refusal = outcome(lambda: build(tf.data.Dataset))  # noqa: B023
        if refusal is None:
            ours = build(ps.Dataset)
            known = int(theirs.cardinality())
            if known == tf.data.UNKNOWN_CARDINALITY and ours.cardinality() >= 0:
                known = len(elements(theirs))  # penstock knows more: it must be right
            compare.same(f"cardinality of {text}", int(ours.cardinality()), known)
            compare.same(f"element_spec of {text}", _spec(ours.element_spec), _spec(theirs.element_spec))


def _spec(spec: Any) -> Any:
    """A spec of either library with its leaves as text."""
    if isinstance(spec, dict):
        return {name: _spec(part) for name, part in spec.items()}
    if isinstance(spec, tuple):
        return tuple(_spec(part) for part in spec)
    name = "bytes" if spec.dtype in (bytes, tf.string) else tf.as_dtype(spec.dtype).name
    return f"{name} {tuple(spec.shape)}"


Build = Callable[[Any], Any]  # from the Dataset class of a library to a data set


def _chain(rng: np.random.Generator) -> tuple[str, Build]:
    text, build = _source(rng)
    for _ in range(rng.integers(2, 6)):
        step_text, step = _step(rng)
        text, build = text + step_text, _then(build, step)
    return text, build


def _then(build: Build, step: Callable[[Any, Any], Any]) -> Build:
    return lambda kind: step(build(kind), kind)


def _source(rng: np.random.Generator) -> tuple[str, Build]:
    arguments = [(int(rng.integers(0, 30)),), tuple(int(rng.integers(*b)) for b in ((-5, 5), (5, 40), (1, 4)))]
    form = int(rng.integers(4))
    if form < 2:
        return f"range{arguments[form]}", lambda kind: kind.range(*arguments[form])
    rows = int(rng.integers(1, 20))
    image = rng.integers(100, size=(rows, 2, 3)).astype(np.float32)
    values: Any = (image, np.arange(rows, dtype=np.int32)) if form == 2 else {"x": image, "n": np.arange(rows)}
    name = "tuple" if form == 2 else "dict"
    return f"slices of a {name} ({rows} rows)", lambda kind: kind.from_tensor_slices(values)


def _step(rng: np.random.Generator) -> tuple[str, Callable[[Any, Any], Any]]:
    """The text of a random transformation, and the function that applies it."""
    number, flag = int(rng.integers(-1, 9)), bool(rng.integers(2))
    arguments: dict[str, tuple[Any, ...]] = {
        "take": (number,),
        "skip": (number,),
        "repeat": (max(number, 0) % 3,),
        "shard": (number % 4 + 2, number % 2),
        "batch": (max(number, 1), flag),
        "unbatch": (),
        "enumerate": (number,),
        "prefetch": (2,),
        "cache": (),
        "zip": (),
        "concatenate": (),
    }
    name = str(rng.choice(list(arguments)))
    if name == "zip":
        return ".zip(with its skip(1))", lambda ds, kind: kind.zip((ds, ds.skip(1)))
    if name == "concatenate":
        return ".concatenate(its skip(1))", lambda ds, _: ds.concatenate(ds.skip(1))
    if name == "unbatch":  # of something that certainly can be
        return ".batch(3).unbatch()", lambda ds, _: ds.batch(3).unbatch()
    return f".{name}{arguments[name]}", lambda ds, _: getattr(ds, name)(*arguments[name])


def orders(compare: Comparer) -> None:
    """interleave with random cycles, block lengths, and lengths of inputs, in turn and in parallel; and flat_map."""
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
    """A function from (i, length) to a data set of the `length` numbers from i·100 on."""
    return lambda i, length: kind.range(i * 100, i * 100 + length)


def _pair(x: Any) -> Any:
    return x * 2, x % 7


def _difference(a: Any, b: Any) -> Any:
    return a - b


def _kept(x: Any) -> Any:
    return x % 3 != 0


def functions(compare: Comparer) -> None:
    """map, filter, from_generator; of shuffle, whose order is its own, which elements and how early."""
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
        compare.same(f"shuffle({buffer}) keeps every element", sorted(found), sorted(elements(theirs.shuffle(buffer))))
        early = [int(x) for place, x in enumerate(found) if x >= place + buffer]
        compare.same(f"shuffle({buffer}) gives none before its buffer reaches it", early, [])

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
    """element_spec where sources and operations are known, beyond what the chains meet."""
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


CHECKS = (
    Check("random chains of transformations", chains),
    Check("interleave and flat_map", orders),
    Check("functions, generators, shuffles", functions),
    Check("element_spec and cardinality", specs),
)
