"""Measure how fast JSON Lines are read.

    ps.JsonLinesDataset(path).batch(256)   # `NUMBER` objects of 16 fields, 384 bytes each

Three loops over the lines are measured for comparison: `json.loads` and orjson, which return dicts and no arrays, and
`json.loads` with an `np.array` of each key of 256 dicts. Goals: 3 times the rate of `json.loads`, 5 times with a schema
(`defaults`, here of all keys, in `--side "penstock, schema"`).

    python benchmarks/json_lines.py [--pairs N]
"""

from __future__ import annotations

import itertools
import json
import random
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _common.duel import Pass, Side, duel

NUMBER = 100_000
PATH = Path(tempfile.gettempdir()) / "penstock-json-lines" / f"{NUMBER}.jsonl"


def row(draw: random.Random) -> dict[str, Any]:
    """Return a row of integers, floats, strings and a bool."""
    found: dict[str, Any] = {f"count_{i}": draw.randrange(10**6) for i in range(5)}
    found |= {f"score_{i}": draw.random() for i in range(5)}
    found |= {f"name_{i}": f"user_{draw.randrange(10**5)}" for i in range(5)}
    return found | {"ok": draw.random() < 0.5}


def write() -> None:
    PATH.parent.mkdir(exist_ok=True)
    draw = random.Random(0)
    PATH.write_text("".join(json.dumps(row(draw)) + "\n" for _ in range(NUMBER)))


def penstock(*, schema: bool = False) -> Pass:
    import penstock as ps

    kinds = {"c": np.int64(0), "s": np.float32(0), "n": b"", "o": np.False_}
    defaults = {name: kinds[name[0]] for name in row(random.Random(0))} if schema else None
    ds = ps.JsonLinesDataset(PATH, defaults=defaults).batch(256)

    def one_pass() -> int:
        with ds.iterator() as batches:
            assert sum(len(batch["ok"]) for batch in batches) == NUMBER
        return NUMBER

    return one_pass


def objects(loads: Callable[[bytes], dict[str, Any]]) -> Iterator[dict[str, Any]]:
    with PATH.open("rb") as lines:
        for line in lines:
            yield loads(line)


def standard() -> Pass:
    return lambda: sum(1 for _ in objects(json.loads))


def arrays() -> Pass:
    def one_pass() -> int:
        found = objects(json.loads)
        seen = 0
        while rows := list(itertools.islice(found, 256)):
            seen += len({name: np.array([row[name] for row in rows]) for name in rows[0]}["ok"])
        return seen

    return one_pass


def orjson() -> Pass:
    import orjson

    return lambda: sum(1 for _ in objects(orjson.loads))


if __name__ == "__main__":
    duel(
        "JSON Lines of 16 fields",
        Side("penstock", penstock),
        Side("json.loads", standard, goal=3),
        Side("json.loads, arrays", arrays),
        Side("orjson.loads", orjson, needs="orjson"),
        Side("penstock, schema", partial(penstock, schema=True)),
        prepare=write,
    )
