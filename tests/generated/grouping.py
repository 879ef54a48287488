"""Reference and generated steps: windows, groups and buckets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from hypothesis import strategies as st
from tests.reference import Context, call, elements, leaves_of, rebuilt, stacked, value_of

import penstock as ps
from penstock.keys import fold
from penstock.plan import grouping

# -- the meaning of each step


def _data_set(values: list[Any]) -> ps.Dataset:
    return ps.Dataset.from_generator(lambda: iter(values))


@elements.register
def _(node: grouping.Window, context: Context) -> Iterator[Any]:
    below = elements(node.input, context)
    span = (node.size - 1) * node.stride + 1
    held: list[Any] = []
    nothing = object()

    def hold(count: int) -> None:
        while len(held) < count and (element := next(below, nothing)) is not nothing:
            held.append(element)

    while True:
        hold(span)
        if not held:
            return
        window = held[: span : node.stride]
        if len(window) == node.size or not node.drop_remainder:
            columns = zip(*[leaves_of(element, window[0]) for element in window], strict=True)
            yield rebuilt(window[0], (_data_set(list(column)) for column in columns))
        hold(node.shift)
        del held[: node.shift]


def _windows(node: Any, context: Context, key_of: Any, size_of: Any) -> Iterator[tuple[int, int, list[Any]]]:
    """(number, key, elements) for every window of a key, in the order in which they fill up."""
    groups: dict[int, tuple[int, list[Any]]] = {}
    number = 0
    for element in elements(node.input, context):
        key = int(key_of(element))
        if key not in groups:
            groups[key] = int(size_of(np.int64(key))), []
        size, members = groups[key]
        members.append(element)
        if len(members) == size:
            del groups[key]
            yield number, key, members
            number += 1
    for key in sorted(groups):
        yield number, key, groups[key][1]
        number += 1


@elements.register
def _(node: grouping.GroupByWindow, context: Context) -> Iterator[Any]:
    size_of = node.window_size_func or (lambda key: node.window_size)
    for number, key, members in _windows(node, context, lambda x: call(node.key_func, x), size_of):
        dataset = node.reduce_func(np.int64(key), _data_set(members))
        yield from elements(dataset._plan, context.in_epoch(fold(context.epoch, number) if number else context.epoch))


@elements.register
def _(node: grouping.BucketBySequenceLength, context: Context) -> Iterator[Any]:
    def bucket_of(element: Any) -> int:
        length = call(node.element_length_func, element)
        return sum(length >= boundary for boundary in node.bucket_boundaries)

    for _, bucket, members in _windows(node, context, bucket_of, lambda bucket: node.bucket_batch_sizes[bucket]):
        if len(members) < node.bucket_batch_sizes[bucket] and node.drop_remainder:
            continue
        if node.no_padding:
            yield stacked(members)
            continue
        least = node.bucket_boundaries[bucket] - 1 if node.pad_to_bucket_boundary else 0
        columns = zip(*[leaves_of(member, members[0]) for member in members], strict=True)
        yield rebuilt(members[0], (_padded(list(column), least) for column in columns))


def _padded(leaves: list[Any], least: int) -> Any:
    """Zeros or empty strings up to the largest extent, or `least`, in every dimension."""
    if np.ndim(leaves[0]) == 0:
        return stacked(leaves)
    shape = [max(least, *extents) for extents in zip(*[leaf.shape for leaf in leaves], strict=True)]
    found = np.full((len(leaves), *shape), b"" if leaves[0].dtype == object else 0, leaves[0].dtype)
    for row, leaf in zip(found, leaves, strict=True):
        row[tuple(slice(extent) for extent in leaf.shape)] = leaf
    return found


@elements.register
def _(node: grouping.GroupByReducer, context: Context) -> Iterator[Any]:
    states: dict[int, Any] = {}
    for element in elements(node.input, context):
        key = int(call(node.key_func, element))
        state = states[key] if key in states else value_of(node.reducer.init_func(np.int64(key)))
        states[key] = value_of(node.reducer.reduce_func(state, element))
    for key in sorted(states):
        yield value_of(call(node.reducer.finalize_func, states[key]))


# -- steps

KEYS: dict[str, Callable[[int], Callable[..., Any]]] = {
    "int": lambda c: lambda x: int(x) % (c + 1) - 1,
    "vector": lambda c: lambda v: int(v[0]) % (c + 1),
    "ragged": lambda c: lambda r: r.size % (c + 1),
    "bytes": lambda c: lambda b: len(b) % (c + 1),
    "pair": lambda c: lambda a, b: int(a) % (c + 1),
    "dict": lambda c: lambda d: int(d["a"]) % (c + 1),
    "named": lambda c: lambda p: int(p.left) % (c + 1),
}
LONE = ("int", "vector", "ragged", "bytes")
SMALL = st.integers(0, 4)


def _key(draw: Any, kind: str) -> tuple[str, Callable[..., Any]]:
    c = draw(SMALL)
    if kind == "int" and draw(st.booleans()):
        return f"traced {c}", lambda x: (x % (c + 1)).astype(np.int64)
    return f"python {c}", KEYS[kind](c)


def _window(draw: Any, at: Any, deterministic: bool | None) -> Any:
    if deterministic is False or at.kind not in (*KEYS, "nested", "data"):
        return at
    size, shift = draw(st.integers(1, 5)), draw(st.sampled_from([None, 1, 2, 3, 7]))
    stride, drop = draw(st.sampled_from([1, 1, 2, 3])), draw(st.booleans())
    windows = at.dataset.window(size, shift, stride, drop)
    text = f"window({size}, {shift}, {stride}, {drop})"
    if at.kind not in LONE:
        together = (lambda *w: ps.Dataset.zip(w)) if at.kind in ("pair", "nested") else ps.Dataset.zip
        return at.then(f"{text}.flat_map(zip)", windows.flat_map(together))
    how = draw(st.sampled_from(["each", "batch", "nested", "interleave", "shuffle"]))
    if how == "batch" and at.kind != "ragged":
        dataset = windows.flat_map(lambda w: w.batch(size))
        return at.then(f"{text}.flat_map(batch)", dataset, "rows" if at.kind == "int" else "other")
    if how == "nested":
        dataset = windows.window(2).flat_map(lambda outer: outer.flat_map(lambda w: w))
    elif how == "interleave":
        dataset = windows.interleave(lambda w: w, 2, num_parallel_calls=draw(st.sampled_from([None, 2])))
    elif how == "shuffle":
        dataset = windows.flat_map(lambda w: w.shuffle(3))
    else:
        dataset = windows.flat_map(lambda w: w)
    return at.then(f"{text}.{how}", dataset)


def _same(*parts: Any) -> Any:
    return parts if len(parts) > 1 else parts[0]


def _group_by_window(draw: Any, at: Any, deterministic: bool | None) -> Any:
    if deterministic is False or at.kind not in KEYS:
        return at
    name, key = _key(draw, at.kind)
    size = draw(st.integers(1, 5))
    sizes: dict[str, Any] = {"window_size": size}
    if draw(st.booleans()):
        sizes = {"window_size_func": lambda key: key % 3 + size}
    reducers: list[tuple[str, Any, str]] = [
        ("each", lambda key, window: window, at.kind),
        ("shuffle", lambda key, window: window.shuffle(3).repeat(2), at.kind),
        ("parallel", lambda key, window: window.map(_same, num_parallel_calls=2).prefetch(1), at.kind),
        ("first", lambda key, window: window.take(1), at.kind),
        ("key", lambda key, window: ps.Dataset.from_tensors(key), "int"),
    ]
    if at.kind in ("int", "vector", "bytes"):
        kind = "rows" if at.kind == "int" else "other"
        reducers.append(("batch", lambda key, window: window.batch(3), kind))
    how, reduce, kind = draw(st.sampled_from(reducers))
    text = f"group_by_window({name}, {how}, {size}, {list(sizes)})"
    return at.then(text, at.dataset.group_by_window(key, reduce, **sizes), kind)


def _bucket(draw: Any, at: Any, deterministic: bool | None) -> Any:
    if deterministic is False or at.kind not in LONE:
        return at
    name, length = _key(draw, at.kind)
    boundaries = draw(st.sampled_from([[2], [1, 3], [], [0, 1, 2, 5]]))
    sizes = [draw(st.integers(1, 4)) for _ in range(len(boundaries) + 1)]
    options: dict[str, Any] = {"drop_remainder": draw(st.booleans())}
    if at.kind == "ragged" and draw(st.booleans()):
        boundaries, sizes, length = [2, 6], [*sizes, 2, 2][:3], lambda r: r.size
        options |= {"padded_shapes": [None], "pad_to_bucket_boundary": True}
    elif at.kind != "ragged":
        options["no_padding"] = draw(st.booleans())
    dataset = at.dataset.bucket_by_sequence_length(length, boundaries, sizes, **options)
    text = f"bucket_by_sequence_length({name}, {boundaries}, {sizes}, {options})"
    return at.then(text, dataset, "rows" if at.kind == "int" else "other")


def _group_by_reducer(draw: Any, at: Any, deterministic: bool | None) -> Any:
    if deterministic is False or at.kind not in KEYS or at.infinite:
        return at
    name, key = _key(draw, at.kind)
    reducer = ps.experimental.Reducer(
        lambda key: (key, 0), lambda state, x: (state[0], state[1] + 1), lambda key, count: key * 100 + count
    )
    return at.then(f"group_by_reducer({name})", at.dataset.apply(ps.experimental.group_by_reducer(key, reducer)), "int")


STEPS: list[Any] = [_window, _window, _group_by_window, _group_by_window, _bucket, _group_by_reducer]
