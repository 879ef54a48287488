"""Generated windows: copied at once by `window_in_place`, and opened one by one, with the states of both."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from tests.functions import sources
from tests.physical.test_windows import Cuts, check_the_same, cuts  # noqa: F401 - a fixture

import penstock as ps
from penstock.compat import tf

COMPONENTS = {
    "a": np.arange(29, dtype=np.float32).reshape(29, 1),
    "b": np.arange(29),
    "c": np.array([b"%d" % number for number in range(29)], object),
}


def part(chosen: random.Random, size: int, window: str) -> str:
    """A component of a window, of which some elements are taken and put into batches."""
    cut = chosen.choice(
        ["", "", f".skip({chosen.randint(0, size)})", f".take({chosen.randint(1, size)})", ".shard(2, 0)"]
    )
    batch = chosen.choice([size, size, chosen.randint(1, size)])
    behind = chosen.choice(["", "", "", f".batch({chosen.randint(1, 3)})", ".take(1)"])
    return f"{window}{cut}.batch({batch}, drop_remainder={chosen.random() < 0.5}){behind}"


def generated(seed: int) -> str:
    chosen = random.Random(seed)
    size, names = chosen.randint(1, 6), "abc"[: chosen.randint(1, 3)]
    parts = [part(chosen, size, name) for name in names]
    made = parts[0] if len(parts) == 1 else f"ps.Dataset.zip(({', '.join(parts)}))"
    if chosen.random() < 0.4:
        made += f".map(lambda {', '.join(names)}: ({', '.join(f'{name}[:-1], {name}[-1]' for name in names)}))"
    columns = ", ".join(f"COMPONENTS[{name!r}]" for name in names)
    settings = f"{size}, {chosen.randint(1, 4)}, {chosen.randint(1, 3)}, {chosen.random() < 0.5}"
    source = f"ps.Dataset.from_tensor_slices({f'({columns})' if len(names) > 1 else columns}).window({settings})"
    behind = chosen.choice(["", ".batch(2)", ".take(7)", ".skip(2)"]) if chosen.random() < 0.3 else ""
    return f"{source}.flat_map(lambda {', '.join(names)}: {made}){behind}"


@pytest.mark.parametrize("many", range(0, 40, 8))
def test_generated_windows(many: int, cuts: Cuts) -> None:  # noqa: F811
    for seed in range(many, many + 8):
        code = generated(seed)
        try:
            names = {"__name__": "__main__", "ps": ps, "COMPONENTS": COMPONENTS}
            check_the_same(sources.executed(f"made = {code}", names)["made"])
        except AssertionError as error:
            error.add_note(f"seed {seed}: {code}")
            raise
    assert cuts.counts


def test_windows_of_code_for_tensorflow_are_copied_at_once(cuts: Cuts) -> None:  # noqa: F811
    series = np.arange(40, dtype=np.float32)
    pairs = tf.data.Dataset.from_tensor_slices((series, series.astype(np.int32))).window(
        5, shift=1, drop_remainder=True
    )
    both: Any = pairs.flat_map(lambda a, b: tf.data.Dataset.zip((a.batch(5), b.skip(4).batch(1))))
    found = [(x.numpy().tolist(), y.numpy().tolist()) for x, y in both.map(lambda a, b: (a[:-1], b[-1]))]
    assert found == [([float(at + k) for k in range(4)], at + 4) for at in range(36)]
    assert max(cuts.counts) > 3
