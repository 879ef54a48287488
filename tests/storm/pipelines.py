"""Random pipelines from a number: the generated sources and steps of the tests, and some that take time."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException
from hypothesis.internal.conjecture.data import ConjectureData, StopTest
from tests import reference, strategies
from tests.generated.storing import entries
from tests.storm.worker import Skipped
from tests.strategies import Pipeline

import penstock as ps
from penstock.plan.node import Node
from penstock.testing import token

MOST = 300  # elements to compare
PARALLEL = (None, 1, 2, 16, ps.AUTOTUNE)
EXECUTORS = ("inline", "thread", "process", "auto")
EXECUTOR = "STORM_EXECUTOR"  # names the only executor
EPOCHS = (0, 1, 3)


# -- steps that take time, so that buffers, workers and timing differ between runs


def _sleepy(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    most, parallel = draw(st.sampled_from([0.0, 0.001, 0.004])), draw(st.sampled_from(PARALLEL))

    def wait(*parts: Any) -> Any:
        time.sleep(most * (time.perf_counter_ns() % 1000) / 1000)
        return parts[0] if len(parts) == 1 else parts

    if at.infinite:
        return at
    return at.then(f"map(sleep {most}, {parallel})", at.dataset.map(wait, num_parallel_calls=parallel))


def _slow_and_large(n: int) -> Iterator[np.ndarray]:
    for i in range(n):
        time.sleep(0.003)
        yield np.full(20_000, i)


def _slow(n: int) -> Iterator[int]:
    for i in range(n):
        time.sleep(0.001)
        yield i


SOURCES: list[Any] = [
    # "other": steps of a fixed shape get small vectors
    ("slow and large", lambda n: ps.Dataset.from_generator(_slow_and_large, args=(n,)), "other"),
    ("slow", lambda n: ps.Dataset.from_generator(_slow, args=(n,)), "int"),
]


def all_sources() -> list[Any]:
    return [*strategies.all_sources(), *SOURCES]


def all_steps() -> list[Any]:
    return [*strategies.all_steps(), _sleepy, _sleepy, _sleepy]


@st.composite
def _pipelines(draw: Any, most_steps: int) -> Pipeline:
    name, make, kind = draw(st.sampled_from(all_sources()))
    size = draw(strategies.SIZES)
    found = Pipeline(make(size), kind, text=f"{name}({size})")
    steps = all_steps()
    for _ in range(draw(st.integers(1, most_steps))):
        step = draw(st.sampled_from(steps))
        if step is not strategies._repeat_for_ever or not found.infinite:
            found = step(draw, found, None)
    if found.infinite:
        count = draw(st.sampled_from([48, 17, 5]))
        found = found.then(f"take({count})", found.dataset.take(count), infinite=False)
    return found


def pipeline_of(seed: int, most_steps: int = 8) -> Pipeline:
    """Build the pipeline of a number: the same one in every process that uses the same folder for files."""
    try:
        return ConjectureData(random=Random(seed)).draw(_pipelines(most_steps))
    except (StopTest, HypothesisException) as raised:
        raise Skipped(f"no pipeline: {type(raised).__name__}") from raised


def executors(rng: Random, count: int) -> list[str]:
    """Return every executor with the same frequency, or the chosen one."""
    chosen = os.environ.get(EXECUTOR)
    found = [chosen] * count if chosen else [EXECUTORS[i % len(EXECUTORS)] for i in range(count)]
    rng.shuffle(found)
    return found


def with_parallel_calls(dataset: ps.Dataset, rng: Random) -> ps.Dataset:
    """Return the same data set with other numbers of parallel calls in all steps that have one."""
    return ps.Dataset._of(_changed(dataset._plan, rng, {}), dataset.options())


def _changed(node: Node, rng: Random, done: dict[int, Node]) -> Node:
    """A plan is no tree: a node with two readers is changed once."""
    if id(node) not in done:
        found = node.with_inputs(tuple(_changed(part, rng, done) for part in node.inputs))
        if "num_parallel_calls" in type(node).__dataclass_fields__:
            found = replace(found, num_parallel_calls=rng.choice(PARALLEL))
        done[id(node)] = found
    return done[id(node)]


def wanted_of(dataset: ps.Dataset, epoch: int) -> list[str]:
    """Return tokens of the expected elements."""
    return tokens(reference.run(dataset._plan, dataset.options(), epoch))


def tokens(elements: Iterable[Any]) -> list[str]:
    return [token(element) for element in islice(elements, MOST)]


def difference(found: list[str], wanted: list[str]) -> str | None:
    """Return the first difference, in words."""
    for number, (one, other) in enumerate(zip(found, wanted, strict=False)):
        if one != other:
            return f"element {number} of {len(wanted)} is {one[:200]} and has to be {other[:200]}"
    if len(found) != len(wanted):
        return f"{len(found)} elements came, and {len(wanted)} had to"
    return None


def wipe() -> None:
    """Remove caches and snapshots, as if a disk was cleared."""
    shutil.rmtree(entries(), ignore_errors=True)


def kept() -> list[Path]:
    return sorted(entries().glob("*")) if entries().exists() else []
