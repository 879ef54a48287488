"""Generated pipelines: sources, steps and functions of many kinds, put together so that they fit.

A `Kind` says what the elements of a data set look like, as far as the choice of the next step needs it. The functions
are of two sorts on purpose: some can be traced and run on whole Blocks, some (branches, unknown calls) cannot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from tests.generated import made, modules

import penstock as ps

MOST = 24  # elements of a source: enough for several Blocks, few enough to resume at each


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass(frozen=True)
class Sample:
    image: Any
    label: Any


Kind = str  # int, vector, ragged, bytes, pair, nested, dict, named, data, rows (a batch of some length), other
Step = Callable[[Any], Any]


@dataclass(frozen=True)
class Pipeline:
    """A data set, the kind of its elements, and whether it has no end."""

    dataset: ps.Dataset
    kind: Kind
    infinite: bool = False
    text: str = ""

    def then(self, text: str, dataset: ps.Dataset, kind: Kind | None = None, infinite: bool | None = None) -> Pipeline:
        infinite = self.infinite if infinite is None else infinite
        return Pipeline(dataset, self.kind if kind is None else kind, infinite, f"{self.text}.{text}")

    def __repr__(self) -> str:
        return self.text


# -- functions: for every kind of element, those that fit it and the kind they return


def branching(c: int) -> Step:
    def branch(x: Any) -> Any:
        if x % 3 == c % 3:
            return x * 10
        return x - c

    return branch


def reused_buffer(c: int) -> Step:
    """A function that fills the same array again and again."""
    buffer = np.zeros(3, np.int64)

    def fill(x: Any) -> Any:
        found = buffer.copy() if c % 2 else buffer
        found[:] = x
        found[1] = c
        return found

    return fill


def first_of(x: Any) -> Any:
    return x


FUNCTIONS: dict[Kind, list[tuple[str, Callable[[int], Step], Kind]]] = {
    "int": [
        ("add", lambda c: lambda x: x + c, "int"),
        ("scale", lambda c: lambda x: x * 3 - c, "int"),
        ("remainder", lambda c: lambda x: x % (c + 1), "int"),
        ("where", lambda c: lambda x: np.where(x % 2 == 0, x, -x - c), "int"),
        ("minimum", lambda c: lambda x: np.minimum(x, c), "int"),
        ("constant", lambda c: lambda x: (x, c), "pair"),
        ("halves", lambda c: lambda x: {"a": x, "b": x / 2}, "dict"),
        ("cast", lambda c: lambda x: x.astype(np.float32) / 4, "int"),
        ("twice", lambda c: lambda x: (x, x * c), "pair"),
        ("branch", branching, "int"),
        ("python", lambda c: lambda x: int(x) + c, "int"),
        ("literal", lambda c: lambda x: float(x) * 0.5, "int"),
        ("full", lambda c: lambda x: np.full(3, x), "vector"),
        ("reused", reused_buffer, "vector"),
        ("ragged", lambda c: lambda x: np.arange(int(x) % 4, dtype=np.int32) + c, "ragged"),
        ("text", lambda c: lambda x: "é" * (int(x) % 3) + str(c), "bytes"),
        ("named", lambda c: lambda x: Pair(x, x + c), "named"),
        ("data", lambda c: lambda x: Sample(np.full((2, 2), x), x), "data"),
        ("nested", lambda c: lambda x: ((x, x + 1), {"k": c}), "nested"),
    ],
    "vector": [
        ("double", lambda c: lambda v: v * 2, "vector"),
        ("shift", lambda c: lambda v: v + 0.5, "vector"),
        ("compare", lambda c: lambda v: v > c, "vector"),
        ("reversed", lambda c: lambda v: v[::-1], "vector"),
        ("sum", lambda c: lambda v: v.sum(), "other"),
        ("inplace", lambda c: lambda v: np.add(v.copy(), c), "vector"),
    ],
    "ragged": [
        ("add", lambda c: lambda r: r + c, "ragged"),
        ("size", lambda c: lambda r: r.size, "int"),
        ("paired", lambda c: lambda r: (r, r * 2), "other"),
    ],
    "bytes": [
        ("append", lambda c: lambda b: b + b"!", "bytes"),
        ("length", lambda c: lambda b: len(b), "int"),
        ("split", lambda c: lambda b: (b, b[:1]), "other"),
    ],
    "pair": [
        ("sum", lambda c: lambda a, b: a + b, "other"),
        ("swap", lambda c: lambda a, b: (b, a), "pair"),
        ("first", lambda c: lambda a, b: a, "other"),
        ("dict", lambda c: lambda a, b: {"b": b, "a": a}, "dict"),
        ("product", lambda c: lambda *parts: Pair(parts[0] * c, parts[1]), "named"),
    ],
    "nested": [
        ("flat", lambda c: lambda p, d: (*p, d["k"]), "other"),
        ("inner", lambda c: lambda p, d: (p[1], d), "other"),
    ],
    "dict": [
        ("sum", lambda c: lambda d: d["a"] + d["b"], "other"),
        ("swap", lambda c: lambda d: {"b": d["a"], "a": d["b"]}, "dict"),
        ("keep", lambda c: lambda d: {**d, "c": c}, "dict"),
    ],
    "named": [("product", lambda c: lambda p: p.left * p.right, "other"), ("same", lambda c: first_of, "named")],
    "data": [
        ("label", lambda c: lambda s: s.label, "other"),
        ("again", lambda c: lambda s: Sample(s.image + c, s.label), "data"),
    ],
    "rows": [("add", lambda c: lambda v: v + c, "rows"), ("sum", lambda c: lambda v: v.sum(), "other")],
    "other": [("same", lambda c: lambda *parts: parts if len(parts) > 1 else parts[0], "other")],
}

PREDICATES: dict[Kind, list[tuple[str, Callable[[int], Step]]]] = {
    "int": [
        ("below", lambda c: lambda x: x < c),
        ("remainder", lambda c: lambda x: x % 3 != c % 3),
        ("branch", lambda c: lambda x: True if x > c else bool(x % 2)),
        ("never", lambda c: lambda x: x != x),
    ],
    "vector": [("any", lambda c: lambda v: bool((v > c).any()))],
    "ragged": [("long", lambda c: lambda r: r.size > c % 3)],
    "bytes": [("long", lambda c: lambda b: len(b) > c % 3)],
    "pair": [("first", lambda c: lambda a, b: a % 2 == 0)],
    "dict": [("a", lambda c: lambda d: d["a"] > c)],
    "named": [("left", lambda c: lambda p: p.left % 2 == 0)],
}

DATASETS: dict[Kind, list[tuple[str, Callable[[int], Step], Kind]]] = {
    "int": [
        ("range", lambda c: lambda x: ps.Dataset.range(int(x) % (c + 2)), "int"),
        ("tensors", lambda c: lambda x: ps.Dataset.from_tensors(x).repeat(c % 4), "int"),
        ("mapped", lambda c: lambda x: ps.Dataset.range(3).map(lambda y: y + x), "int"),
        ("shuffled", lambda c: lambda x: ps.Dataset.range(4).shuffle(3), "int"),
        ("filtered", lambda c: lambda x: ps.Dataset.range(5).filter(lambda y: y % 2 == x % 2), "int"),
        ("generated", lambda c: lambda x: ps.Dataset.from_generator(lambda: iter([int(x)] * (c % 3))), "int"),
    ],
    "vector": [("slices", lambda c: lambda v: ps.Dataset.from_tensor_slices(v), "other")],
    "rows": [("slices", lambda c: lambda v: ps.Dataset.from_tensor_slices(v), "other")],
    "pair": [("tensors", lambda c: lambda a, b: ps.Dataset.from_tensors((a, b)).repeat(2), "pair")],
    "bytes": [("tensors", lambda c: lambda b: ps.Dataset.from_tensors(b).repeat(c % 3), "bytes")],
}


# -- sources


@cache
def record_file(count: int) -> Path:
    """A TFRecord file with `count` records of differing length."""

    def write(path: Path) -> None:
        with ps.io.TFRecordWriter(path) as writer:
            for i in range(count):
                writer.write(bytes([65 + i]) * (i % 5))

    return made(f"{count}.tfrecord", write)


def _vectors(n: int) -> np.ndarray:
    return np.arange(3 * n, dtype=np.float32).reshape(n, 3) / 4


def _ragged(n: int) -> Any:
    for i in range(n):
        yield np.arange(i % 4, dtype=np.int16)


def _dicts(n: int) -> Any:
    for i in range(n):
        yield {"a": i, "b": i * 0.5} if i % 2 else {"b": i * 0.5, "a": i}


SOURCES: list[tuple[str, Callable[[int], ps.Dataset], Kind]] = [
    ("range", lambda n: ps.Dataset.range(n), "int"),
    ("range by -3", lambda n: ps.Dataset.range(3 * n, 0, -3), "int"),
    ("range float32", lambda n: ps.Dataset.range(n, output_type=np.float32), "int"),
    ("range int32", lambda n: ps.Dataset.range(n, output_type="int32"), "int"),
    ("scalars", lambda n: ps.Dataset.from_tensor_slices(np.arange(n, dtype=np.int16)), "int"),
    ("vectors", lambda n: ps.Dataset.from_tensor_slices(_vectors(n)), "vector"),
    ("bytes", lambda n: ps.Dataset.from_tensor_slices(np.array([b"x" * (i % 4) for i in range(n)], object)), "bytes"),
    ("pairs", lambda n: ps.Dataset.from_tensor_slices((np.arange(n), np.arange(n) * 2)), "pair"),
    ("dicts", lambda n: ps.Dataset.from_tensor_slices({"a": np.arange(n), "b": np.arange(n) / 2}), "dict"),
    ("named", lambda n: ps.Dataset.from_tensor_slices(Pair(np.arange(n), np.arange(n) % 3)), "named"),
    ("data", lambda n: ps.Dataset.from_tensor_slices(Sample(_vectors(n), np.arange(n))), "data"),
    ("ragged generator", lambda n: ps.Dataset.from_generator(_ragged, args=(n,)), "ragged"),
    ("dict generator", lambda n: ps.Dataset.from_generator(_dicts, args=(n,)), "dict"),
    (
        "signed generator",
        lambda n: ps.Dataset.from_generator(range, args=(n,), output_signature=ps.TensorSpec((), np.int64)),
        "int",
    ),
    ("tensors", lambda n: ps.Dataset.from_tensors(np.int64(n)), "int"),
    ("tensors of vector", lambda n: ps.Dataset.from_tensors([n, 1, 2]), "vector"),
    ("records", lambda n: ps.TFRecordDataset(record_file(n)), "bytes"),
    (
        "parallel records",
        lambda n: ps.TFRecordDataset([record_file(n), record_file(n // 2)], num_parallel_reads=2),
        "bytes",
    ),
]

SIZES = st.sampled_from([5, 9, 3, 16, 12, MOST, 2, 1, 0])  # mostly enough to tell an order by
SMALL = st.integers(0, 5)
PARALLEL = st.sampled_from([None, 1, 2, 4, ps.AUTOTUNE])


@cache
def all_sources() -> list[Any]:
    return [*SOURCES, *(source for module in modules() for source in getattr(module, "SOURCES", []))]


@st.composite
def sources(draw: Any) -> Pipeline:
    name, make, kind = draw(st.sampled_from(all_sources()))
    size = draw(SIZES)
    return Pipeline(make(size), kind, text=f"{name}({size})")


# -- steps


@st.composite
def pipelines(draw: Any, most_steps: int = 5, deterministic: bool | None = None) -> Pipeline:
    """A finite pipeline of up to `most_steps` steps; one that repeats for ever ends in a take."""
    found = draw(sources())
    for _ in range(draw(st.integers(0, most_steps))):
        found = _step(draw, found, deterministic)
    if found.infinite:
        count = draw(st.sampled_from([2 * MOST, MOST, 17, 5, 1, 0]))
        found = found.then(f"take({count})", found.dataset.take(count), infinite=False)
    return found


def _step(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    choices = [step for step in all_steps() if step is not _repeat_for_ever or not at.infinite]
    return draw(st.sampled_from(choices))(draw, at, deterministic)


def _map(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    name, make, kind = draw(st.sampled_from(FUNCTIONS[at.kind]))
    c, parallel = draw(SMALL), draw(PARALLEL)
    dataset = at.dataset.map(make(c), num_parallel_calls=parallel, deterministic=deterministic)
    return at.then(f"map({name} {c}, {parallel})", dataset, kind)


def _filter(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    if at.kind not in PREDICATES or at.infinite:  # an endless filter may look for ever
        return at
    name, make = draw(st.sampled_from(PREDICATES[at.kind]))
    c = draw(SMALL)
    return at.then(f"filter({name} {c})", at.dataset.filter(make(c)))


def _batch(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    if at.kind in ("ragged", "rows", "other"):
        return at
    size, drop, parallel = draw(st.integers(1, 6)), draw(st.booleans()), draw(PARALLEL)
    dataset = at.dataset.batch(size, drop, num_parallel_calls=parallel, deterministic=deterministic)
    return at.then(f"batch({size}, {drop}, {parallel})", dataset, "rows" if at.kind == "int" else "other")


def _batch_unbatch(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    if at.kind in ("ragged", "rows", "other"):
        return at
    size = draw(st.integers(1, 6))
    return at.then(f"batch({size}).unbatch()", at.dataset.batch(size).unbatch())


def _shuffle(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    size, seed, again = draw(st.integers(1, 10)), draw(st.sampled_from([None, 0, 7])), draw(st.booleans())
    return at.then(f"shuffle({size}, {seed}, {again})", at.dataset.shuffle(size, seed, again))


def _repeat(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    count = draw(st.sampled_from([2, 3, 1, 2, 3, 0]))
    return at.then(f"repeat({count})", at.dataset.repeat(count), infinite=at.infinite and count > 0)


def _repeat_for_ever(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    return at.then("repeat()", at.dataset.repeat(), infinite=True)


def _take(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    count = draw(st.sampled_from([12, 7, MOST, -1, 18, 3, 1, 0]))
    return at.then(f"take({count})", at.dataset.take(count), infinite=at.infinite and count < 0)


def _skip(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    count = draw(st.sampled_from([1, 2, 5, 0, 3, 8, -1]))
    return at.then(f"skip({count})", at.dataset.skip(count), infinite=at.infinite and count >= 0)


def _shard(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    shards = draw(st.integers(1, 4))
    index = draw(st.integers(0, shards - 1))
    return at.then(f"shard({shards}, {index})", at.dataset.shard(shards, index))


def _enumerate(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    start = draw(SMALL)
    return at.then(f"enumerate({start})", at.dataset.enumerate(start), "pair" if at.kind == "int" else "other")


def _prefetch(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    size = draw(st.sampled_from([0, 1, 3, ps.AUTOTUNE]))
    return at.then(f"prefetch({size})", at.dataset.prefetch(size))


def _cache(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    return at if at.infinite else at.then("cache()", at.dataset.cache())


def _flat_map(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    if at.kind not in DATASETS or at.infinite:
        return at
    name, make, kind = draw(st.sampled_from(DATASETS[at.kind]))
    c = draw(SMALL)
    return at.then(f"flat_map({name} {c})", at.dataset.flat_map(make(c)), kind)


def _interleave(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    if at.kind not in DATASETS or at.infinite:
        return at
    name, make, kind = draw(st.sampled_from(DATASETS[at.kind]))
    c, cycle, block, parallel = draw(SMALL), draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(PARALLEL)
    dataset = at.dataset.interleave(make(c), cycle, block, parallel, deterministic)
    return at.then(f"interleave({name} {c}, {cycle}, {block}, {parallel})", dataset, kind)


def _zip(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    other = ps.Dataset.range(draw(st.integers(1, MOST))).map(lambda x: x * 2)
    if draw(st.booleans()):
        zipped = ps.Dataset.zip(at.dataset, other)
        return at.then("zip(·, range)", zipped, "pair" if at.kind == "int" else "other", infinite=False)
    return at.then("zip({a: ·, b: range})", ps.Dataset.zip({"a": at.dataset, "b": other}), "other", infinite=False)


def _concatenate(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    count = draw(st.integers(0, 5))
    return at.then(f"concatenate(itself.take({count}))", at.dataset.concatenate(at.dataset.take(count)))


STEPS = [
    _map, _map, _map, _filter, _batch, _batch_unbatch, _shuffle, _shuffle, _repeat, _repeat_for_ever, _take, _skip,
    _shard, _enumerate, _prefetch, _cache, _flat_map, _interleave, _interleave, _zip, _concatenate,
]  # fmt: skip


@cache
def all_steps() -> list[Any]:
    return [*STEPS, *(step for module in modules() for step in module.STEPS)]
