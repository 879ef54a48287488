"""Measure which costs grow: CPU time per unit of work while one size grows.

A unit is an element, an element and step, or an input. A row varies one size: elements, fused maps, alternating maps
and filters, columns, inputs of a zip, repetitions, inputs of `flat_map` and `interleave`, files, or the buffer of a
shuffle. Its curve is the minimum CPU time of some warm iterations, of all threads, per unit. Its exponent is the slope
of the curve with logarithmic axes, from the size with the cheapest unit to the largest size. With exponent 0 the cost
per unit is constant. With exponent 1 twice the size costs four times as much. (A line through all sizes would hide
growth that is smaller than the cost of starting an iteration.) If an iteration takes longer than `--seconds`, larger
sizes are left out. Goal: no exponent above +0.15, except for the buffer of a shuffle, whose elements no longer fit into
the processor's cache.

The last rows also run in tf.data, if it is installed: inputs of `flat_map`, and of `interleave` over small files. The
program takes about three minutes on two cores.

    python benchmarks/scaling.py [--only TEXT] [--seconds S] [--turns N]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np
from _common.duel import data_folder, drain, figures_of, timed

GOAL = 0.15
TURNS, SECONDS = 3, 1.0
SOME = 20_000  # elements in rows where another size grows
RECORDS, RECORD = 20, 200  # records in a small file; bytes per record

Data = Any
Made = tuple[Any, float]  # a data set, and the units of work in an iteration


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the output. `make` builds the data set for a size, with the library `data`."""

    name: str
    unit: str
    sizes: Sequence[int]
    make: Callable[[Data, int], Made]
    in_tf_data: bool = False
    may_grow: bool = False


def elements(data: Data, count: int) -> Made:
    return data.Dataset.range(count).map(lambda x: x + 1).batch(1024), count


def shuffled(data: Data, count: int) -> Made:
    return data.Dataset.range(count).shuffle(1000).batch(1024), count


def numbered(data: Data, count: int) -> Made:
    return data.Dataset.range(count).shuffle(data.ALL).batch(1024), count


def maps(data: Data, count: int) -> Made:
    ds = data.Dataset.range(SOME)
    for _ in range(count):
        ds = ds.map(lambda x: x + 1)
    return ds.batch(1024), SOME * count


def opaque_maps(data: Data, count: int) -> Made:
    """Build maps of a function without a vectorised form, which is called for each element."""
    ds, few = data.Dataset.range(SOME // 20), SOME // 20
    for _ in range(count):
        ds = ds.map(lambda x: int(f"{x}") % 1000)
    return ds.batch(100), few * count


def maps_and_filters(data: Data, count: int) -> Made:
    ds = data.Dataset.range(SOME)
    for _ in range(count // 2):
        ds = ds.map(lambda x: x + 1).filter(lambda x: x >= 0)
    return ds.batch(1024), SOME * count


def columns(data: Data, count: int) -> Made:
    ds = data.Dataset.from_tensor_slices({f"c{i}": np.arange(SOME // 4) for i in range(count)})
    return ds.map(lambda row: {**row, "c0": row["c0"] + 1}).batch(256), SOME // 4 * count


def columns_broken(data: Data, count: int) -> Made:
    """Build a map with one line that is called for each element and needs one column."""
    ds = data.Dataset.from_tensor_slices({f"c{i}": np.arange(SOME // 4) for i in range(count)})
    return ds.map(lambda row: {**row, "c0": int(row["c0"]) + 1}).batch(256), SOME // 4 * count


def columns_filtered(data: Data, count: int) -> Made:
    ds = data.Dataset.from_tensor_slices({f"c{i}": np.arange(SOME // 4) for i in range(count)})
    return ds.filter(lambda row: int(row["c1"]) % 97 == 0).batch(256), SOME // 4 * count


def columns_unknown(data: Data, count: int) -> Made:
    """Build a map of an unknown function. Each call gets all columns and returns them."""
    ds = data.Dataset.from_tensor_slices({f"c{i}": np.arange(SOME // 4) for i in range(count)})
    return ds.map(eval("lambda row: {**row, 'c0': int(row['c0']) + 1}")).batch(256), SOME // 4 * count


def columns_shuffled(data: Data, count: int) -> Made:
    ds = data.Dataset.from_tensor_slices({f"c{i}": np.arange(SOME // 4) for i in range(count)})
    return ds.shuffle(1000).batch(256), SOME // 4 * count


def zipped(data: Data, count: int) -> Made:
    return data.Dataset.zip(tuple(data.Dataset.range(SOME) for _ in range(count))).batch(1024), SOME * count


def concatenated(data: Data, count: int) -> Made:
    ds = data.Dataset.range(100)
    for _ in range(count - 1):
        ds = ds.concatenate(data.Dataset.range(100))
    return ds.batch(1024), 100 * count


def concatenated_unknown(data: Data, count: int) -> Made:
    """Build data sets of unknown element type. The engine checks each first element against the earlier data sets."""
    parts = (data.Dataset.range(20).map(lambda x: int(f"{x}")) for _ in range(count))
    return reduce(lambda joined, part: joined.concatenate(part), parts).batch(64), 20 * count


def sampled(data: Data, count: int) -> Made:
    """Take as many elements from each of many data sets as from each of few. Opening a data set is a separate row."""
    parts = [data.Dataset.range(SOME // 10).repeat() for _ in range(count)]
    total = max(SOME * 5, SOME // 2 * count)
    return data.Dataset.sample_from_datasets(parts, seed=1).take(total).batch(1024), total


def sampled_little(data: Data, count: int) -> Made:
    parts = [data.Dataset.range(SOME // 10).repeat() for _ in range(count)]
    return data.Dataset.sample_from_datasets(parts, seed=1).take(10 * count).batch(1024), count


def sampled_to_their_ends(data: Data, count: int) -> Made:
    """Sample data sets of about twenty elements each to their ends."""
    sizes = np.random.default_rng(0).integers(1, 2 * RECORDS, count).tolist()
    parts = [data.Dataset.range(size) for size in sizes]
    return data.Dataset.sample_from_datasets(parts, seed=1).batch(256), sum(sizes)


def repeated(data: Data, count: int) -> Made:
    return data.Dataset.range(100).map(lambda x: x + 1).repeat(count).batch(1024), count


def batches_of(data: Data, count: int) -> Made:
    return data.Dataset.range(max(SOME * 10, 4 * count)).batch(count), max(SOME * 10, 4 * count)


def flat_mapped(data: Data, count: int) -> Made:
    return data.Dataset.range(count).flat_map(lambda i: data.Dataset.range(RECORDS)).batch(1024), count


def slices(data: Data, count: int) -> Made:
    ds = data.Dataset.range(count * RECORDS).batch(RECORDS)
    return ds.flat_map(data.Dataset.from_tensor_slices).batch(1024), count


def mapped_inputs(data: Data, count: int) -> Made:
    ds = data.Dataset.range(count).flat_map(lambda i: data.Dataset.range(RECORDS).map(lambda x: x + i))
    return ds.batch(1024), count


def cycle(data: Data, count: int) -> Made:
    """Interleave with as many slots as inputs. The unit is an element: more inputs have more elements."""
    ds = data.Dataset.range(count).interleave(lambda i: data.Dataset.range(200), cycle_length=count)
    return ds.batch(1024), count * 200


def interleaved(data: Data, count: int, *, parallel: bool = False) -> Made:
    """Interleave small files, 16 at a time."""
    calls = data.AUTOTUNE if parallel else None
    ds = data.Dataset.from_tensor_slices(files(count))
    return ds.interleave(data.TFRecordDataset, cycle_length=16, num_parallel_calls=calls).batch(256), count


def parsed_inputs(data: Data, count: int) -> Made:
    """Interleave small files with a map and a take in each input."""
    ds = data.Dataset.from_tensor_slices(files(count))
    return ds.interleave(lambda name: data.TFRecordDataset(name).map(lambda r: r).take(18), 16).batch(256), count


def labelled_inputs(data: Data, count: int) -> Made:
    """Interleave small files with labels."""
    ds = data.Dataset.from_tensor_slices((files(count), np.arange(count)))

    def opened(name: Any, label: Any) -> Any:
        return data.TFRecordDataset(name).map(lambda r: (r, label))

    return ds.interleave(opened, cycle_length=16, num_parallel_calls=data.AUTOTUNE).batch(256), count


def in_one(data: Data, count: int) -> Made:
    return data.TFRecordDataset(files(count)).batch(256), count


def buffered(data: Data, count: int) -> Made:
    total = max(2 * count, SOME * 10)
    return data.Dataset.range(total).shuffle(count).batch(1024), total


def windows(data: Data, count: int) -> Made:
    ds = data.Dataset.range(count * 32).window(32)
    return ds.flat_map(lambda window: window.batch(32)).batch(64), count


def sliding(data: Data, count: int) -> Made:
    """Build overlapping windows, as in training for forecasts."""
    ds = data.Dataset.from_tensor_slices(np.arange(count + 29, dtype=np.float32)).window(30, 1, drop_remainder=True)
    return ds.flat_map(lambda window: window.batch(30)).map(lambda w: (w[:-1], w[-1])).batch(64), count


def sliding_zipped(data: Data, count: int) -> Made:
    columns = {name: np.arange(count + 29, dtype=np.float32) for name in "abc"}
    ds = data.Dataset.from_tensor_slices(columns).window(30, 1, drop_remainder=True)
    return ds.flat_map(lambda w: data.Dataset.zip({k: w[k].batch(30) for k in w})).batch(64), count


def files(count: int) -> list[str]:
    """Return the names of `count` files with a few records each. Missing files are written."""
    folder = data_folder() / f"scaling-{RECORDS}x{RECORD}"
    folder.mkdir(parents=True, exist_ok=True)
    names = [folder / f"{number:05d}.tfrecord" for number in range(count)]
    if not names[-1].exists():
        import penstock as ps

        drawn = np.random.default_rng(0)
        for name in names:
            if not name.exists():
                with ps.io.TFRecordWriter(str(name)) as writer:
                    for _ in range(RECORDS):
                        writer.write(drawn.bytes(RECORD))
    return [str(name) for name in names]


ELEMENTS = (10_000, 100_000, 1_000_000, 10_000_000)
STEPS = (3, 10, 30, 100, 300)
PARTS = (3, 10, 30, 100, 300)
COLUMNS = (5, 15, 50, 150, 500)
INPUTS = (300, 1000, 3000, 10_000)
FILES = (100, 200, 500, 1000, 2000)

ROWS = (
    Row("elements", "element", ELEMENTS, elements),
    Row("elements, shuffle(1000)", "element", ELEMENTS, shuffled),
    Row("elements, shuffle(ALL)", "element", ELEMENTS, numbered),
    Row("maps", "element and step", STEPS, maps),
    Row("maps, opaque", "element and step", STEPS, opaque_maps),
    Row("maps and filters", "element and step", STEPS, maps_and_filters),
    Row("columns", "element and column", COLUMNS, columns),
    Row("columns, a line not traced", "element and column", COLUMNS, columns_broken),
    Row("columns, a predicate not traced", "element and column", COLUMNS, columns_filtered),
    Row("columns, a function not known", "element and column", COLUMNS, columns_unknown),
    # the last size has 4 MB
    Row("columns, shuffle(1000)", "element and column", COLUMNS, columns_shuffled, may_grow=True),
    Row("zip", "element and part", PARTS, zipped),
    Row("concatenate", "element", (*PARTS, 1000, 3000), concatenated),
    Row("concatenate, of unknown functions", "element", (*PARTS, 1000), concatenated_unknown),
    Row("sample_from_datasets", "element", PARTS, sampled),
    Row("sample_from_datasets, to open", "data set, and ten elements of it", PARTS, sampled_little),
    Row("sample_from_datasets, to their ends", "element", (*PARTS, 1000, 3000), sampled_to_their_ends),
    Row("repeat, of 100", "repetition", (100, 1000, 10_000, 50_000), repeated),
    Row("batch(n)", "element", (1, 10, 100, 1000, 10_000, 100_000), batches_of),
    Row("interleave(cycle_length=n)", "element", (10, 30, 100, 300, 1000, 3000), cycle),
    Row("shuffle(n)", "element", (100, 1000, 10_000, 100_000, 1_000_000), buffered, may_grow=True),
    Row("inputs of flat_map", "input", INPUTS, flat_mapped, in_tf_data=True),
    Row("inputs of flat_map, slices", "input", INPUTS, slices, in_tf_data=True),
    Row("inputs of flat_map, mapped", "input", INPUTS, mapped_inputs, in_tf_data=True),
    Row("inputs of flat_map, windows", "input", INPUTS, windows, in_tf_data=True),
    Row("inputs of flat_map, sliding windows", "window", INPUTS, sliding, in_tf_data=True),
    Row("inputs of flat_map, sliding windows of dicts", "window", INPUTS, sliding_zipped, in_tf_data=True),
    Row("files in one", "file", FILES, in_one, in_tf_data=True),
    Row("files, interleave", "file", FILES, interleaved, in_tf_data=True),
    Row("files, interleave, mapped", "file", FILES, parsed_inputs, in_tf_data=True),
    Row("files, interleave, labelled, AUTOTUNE", "file", FILES, labelled_inputs, in_tf_data=True),
    Row("files, interleave, AUTOTUNE", "file", FILES, partial(interleaved, parallel=True), in_tf_data=True),
)


# -- measuring


def curve(data: Data, row: Row) -> list[tuple[int, float, float]]:
    """Return size, µs of CPU time and µs of wall time per unit."""
    found: list[tuple[int, float, float]] = []
    for size in row.sizes:
        ds, units = row.make(data, size)
        one_pass(ds)  # traces, compiles, fills caches
        passes = [one_pass(ds)]
        while len(passes) < TURNS and passes[0][1] < SECONDS:
            passes.append(one_pass(ds))
        cpu, wall = (min(column) for column in zip(*passes, strict=True))
        found.append((size, cpu / units * 1e6, wall / units * 1e6))
        if wall > SECONDS:
            break
    return found


def one_pass(ds: Any) -> tuple[float, float]:
    """Return the seconds of CPU time, of all threads, and of wall time."""
    wall, cpu = timed(lambda: drain(ds))
    return cpu, wall


def exponent(points: Sequence[tuple[int, float, float]]) -> float:
    """Return the exponent of the cost from its minimum to the last size, or 0 if the last size is the cheapest."""
    size, cost, _ = min(points, key=lambda point: point[1])
    last, last_cost, _ = points[-1]
    return math.log(last_cost / cost) / math.log(last / size) if last > size else 0.0


def penstock(row: Row) -> list[tuple[int, float, float]]:
    import penstock as ps

    return curve(ps, row)


def tf_data(row: Row) -> list[tuple[int, float, float]]:
    import tensorflow as tf

    return curve(tf.data, row)


SIDES = {"penstock": penstock, "tf.data": tf_data}


def measured(side: str, row: Row) -> list[tuple[int, float, float]]:
    """Measure a row in its own process, so that a row does not find caches of another row."""
    command = [sys.executable, sys.argv[0], "--side", side, "--row", row.name]
    command += ["--turns", str(TURNS), "--seconds", str(SECONDS)]
    return [(int(size), cpu, wall) for size, cpu, wall in figures_of(command)]


def show(row: Row) -> bool:
    """Print a row. Return True if the row meets the goal."""
    ours = measured("penstock", row)
    grows = exponent(ours)
    fits = row.may_grow or not grows > GOAL
    verdict = "may grow" if row.may_grow else f"≤ +{GOAL:g} {'met' if fits else 'MISSED'}"
    print(f"{row.name}: exponent {grows:+.2f}  {verdict}")
    print(f"    {line(ours)}  µs per {row.unit}", flush=True)
    if row.in_tf_data and importlib.util.find_spec("tensorflow"):
        theirs = measured("tf.data", row)
        (_, cpu, wall), (_, its_cpu, its_wall) = ours[-1], theirs[-1]
        print(f"    {line(theirs)}  tf.data, exponent {exponent(theirs):+.2f}")
        print(f"    at the last size {its_wall / wall:.2f} × its rate, {cpu / its_cpu:.2f} × its CPU time", flush=True)
    return fits


def line(points: Sequence[tuple[int, float, float]]) -> str:
    return "  ".join(f"{size:,}: {cpu:.3g}" for size, cpu, _ in points)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="costs that should not grow, with their exponents")
    parser.add_argument("--only", default="", metavar="TEXT", help="run only rows whose names contain TEXT")
    parser.add_argument("--turns", type=int, default=TURNS, metavar="N", help="iterations for each point (%(default)s)")
    parser.add_argument("--seconds", type=float, default=SECONDS, metavar="S", help="longest iteration (%(default)s)")
    parser.add_argument("--side", choices=SIDES, help="measure this side alone, in this process, and print its figures")
    parser.add_argument("--row", default="", help="measure this row")
    chosen = parser.parse_args()
    TURNS, SECONDS = chosen.turns, chosen.seconds
    if chosen.side:
        print(json.dumps(SIDES[chosen.side](next(row for row in ROWS if row.name == chosen.row))))
        sys.exit()
    fits = [show(row) for row in ROWS if chosen.only in row.name]
    sys.exit(0 if all(fits) else 1)
