"""Compare the cost of penstock with the work itself, and with a loop written by hand.

    source.map(unknown)                 # a function that runs as written, element by element

`unknown` calls a C library through ctypes. penstock cannot vectorise it or know its effects, so it calls the function
for each element, in order, when the consumer requests the element. A row subtracts the same calls by hand and the
iteration over the source alone.

    texts.map(tokenise)                 # tokenizer.encode(text).ids, as an array

These rows compare a tokeniser in a `map` with its own batch call for 250 texts, and with its calls in a loop. The
program trains the tokeniser, because it cannot download one. Without the library `tokenizers` these rows are left out.

    ParquetDataset(...).shuffle(ps.ALL).batch(256)      # a table of 20 columns and 250,000 rows, in ten row groups

These rows compare tables in batches of arrays with polars and pyarrow. polars reads the file, takes a `sample`, and
returns slices. The row `frame` starts with polars' frame in memory. Without polars these rows are left out.

    from_tensor_slices(x).shuffle(ps.ALL).batch(256)    # compared with x[order[i : i + 256]]
    from_tensor_slices(names)                           # a million names of files, up to the first batch

All figures are CPU time of the process, medians of rounds in which the sides take turns. A ratio above 1 means that
penstock takes less time.

    python benchmarks/peers.py [--rounds N] [--only WORD]
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import json
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from _common.duel import drain, timed

NUMBERS, TEXTS = 40_000, 8_000
ROWS, ROWS_OF_BATCH = 250_000, 256
BATCH = 250
FOLDER = Path(tempfile.gettempdir()) / "penstock-peers"
GOALS = {"numbers": 5.0, "texts": 10.0}  # µs of the engine itself per element
LOCK_STEP = 20.0  # the same for generators, which are read only when the consumer requests an element
_LABS = ctypes.CDLL(None).labs
_STRLEN = ctypes.CDLL(None).strlen
_LABS.restype, _LABS.argtypes = ctypes.c_long, [ctypes.c_long]
_STRLEN.restype, _STRLEN.argtypes = ctypes.c_size_t, [ctypes.c_char_p]


def number(x: Any) -> int:
    return _LABS(int(x))


def text(x: bytes) -> int:
    return _STRLEN(x)


def number_of(row: dict[str, Any]) -> int:
    return _LABS(int(row["x"]))


def text_of(row: dict[str, Any]) -> int:
    return _STRLEN(row["x"])


def texts() -> list[bytes]:
    """Texts of about 2 kB."""
    rng = np.random.default_rng(0)
    words = ["".join(map(chr, rng.integers(97, 123, size))) for size in rng.integers(2, 11, 2000)]
    return [" ".join(words[i] for i in rng.integers(0, len(words), 300)).encode() for _ in range(TEXTS)]


def write(values: Sequence[Any], name: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    plain = [value.decode() if isinstance(value, bytes) else int(value) for value in values]
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.jsonl").write_text("".join(json.dumps({"x": value}) + "\n" for value in plain))
    (FOLDER / f"{name}.txt").write_text("".join(f"{value}\n" for value in plain))
    pq.write_table(pa.table({"x": plain}), FOLDER / f"{name}.parquet", row_group_size=2000)


def sources(values: Sequence[Any], name: str) -> dict[str, tuple[Any, Callable[[Any], Any]]]:
    """Return data sets of the values, each with the function for its elements."""
    import penstock as ps

    plain, row = (number, number_of) if name == "numbers" else (text, text_of)
    found = {
        "slices": (ps.Dataset.from_tensor_slices(np.array(values) if name == "numbers" else list(values)), plain),
        "generator": (ps.Dataset.from_generator(lambda: iter(values)), plain),
        "from_sequence": (ps.Dataset.from_sequence(values), plain),
        "JSON Lines": (ps.JsonLinesDataset(FOLDER / f"{name}.jsonl"), row),
        "Parquet": (ps.ParquetDataset(FOLDER / f"{name}.parquet"), row),
    }
    if name == "numbers":
        return {"range": (ps.Dataset.range(len(values)), plain), **found}
    return {**found, "text lines": (ps.TextLineDataset(FOLDER / f"{name}.txt"), plain)}


def spent(elements: Iterable[Any], function: Callable[[Any], Any] | None = None) -> float:
    """Return the CPU seconds of an iteration. Calls the function by hand for each element, if there is one."""
    return timed(lambda: drain(elements if function is None else map(function, elements)))[1]


def unknown_functions(rounds: int, only: str) -> None:
    """Print the engine's own CPU time for each source, without and with AUTOTUNE, and their ratio."""
    from penstock import AUTOTUNE

    print(f"{'':24}{'whole':>8}{'by hand':>9}{'source':>8}{'engine':>8}{'goal':>6}{'AUTOTUNE':>10}{'ratio':>7}   (µs)")
    for name, values in (("numbers", list(range(NUMBERS))), ("texts", texts())):
        write(values, name)
        for kind, (source, function) in sources(values, name).items():
            if only not in f"{name}, {kind}":
                continue
            by_hand = list(source)
            plain, parallel = source.map(function), source.map(function, num_parallel_calls=AUTOTUNE)
            assert list(plain) == list(parallel) == [function(value) for value in by_hand]
            runs = [(spent(plain), spent(by_hand, function), spent(source), spent(parallel)) for _ in range(rounds)]
            whole, hand, alone, auto = (median(run[i] for run in runs) / len(values) * 1e6 for i in range(4))
            goal = LOCK_STEP if kind == "generator" else GOALS[name]
            ratio = median(run[0] / run[3] for run in runs)
            print(
                f"{name + ', ' + kind:24}{whole:8.1f}{hand:9.2f}{alone:8.2f}{whole - hand - alone:8.1f}{goal:6.0f}"
                f"{auto:10.1f}{ratio:7.2f}"
            )


def tokeniser(rounds: int) -> None:
    """Print the time per text of the tokeniser's batch call, a loop, a map, and a map with AUTOTUNE."""
    import penstock as ps

    if importlib.util.find_spec("tokenizers") is None:
        print("tokeniser left out: tokenizers is not installed")
        return
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    values = texts()[:2000]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=3000, show_progress=False)
    tokenizer.train_from_iterator([value.decode() for value in values[:300]], trainer)

    def tokenise(value: bytes) -> np.ndarray:
        return np.array(tokenizer.encode(value.decode()).ids, np.int32)

    def batches() -> Iterable[np.ndarray]:
        for at in range(0, len(values), BATCH):
            for found in tokenizer.encode_batch([value.decode() for value in values[at : at + BATCH]]):
                yield np.array(found.ids, np.int32)

    source = ps.Dataset.from_tensor_slices(values)
    sides: dict[str, Callable[[], Iterable[np.ndarray]]] = {
        "own batch call": batches,
        "loop by hand": lambda: map(tokenise, values),
        "map": lambda: source.map(tokenise),
        "map, AUTOTUNE": lambda: source.map(tokenise, num_parallel_calls=ps.AUTOTUNE),
    }
    expected = list(batches())
    for make in sides.values():
        assert all(map(np.array_equal, make(), expected))
    runs = [{name: timed(lambda make=make: drain(make())) for name, make in sides.items()} for _ in range(rounds)]
    for name in sides:
        wall, cpu = (median(run[name][i] for run in runs) / len(values) * 1e6 for i in range(2))
        ratios = [median(run["own batch call"][i] / run[name][i] for run in runs) for i in range(2)]
        print(f"tokeniser, {name:16}{wall:8.0f} µs wall{cpu:8.0f} µs CPU   ratio {ratios[0]:.2f}, {ratios[1]:.2f}")


def compared(name: str, rounds: int, ours: Callable[[], Iterable[Any]], peer: Callable[[], Iterable[Any]]) -> None:
    """Print the CPU time of an iteration by penstock and by a peer, built and iterated in turn, and their ratio."""
    runs = [[timed(lambda make=make: drain(make()))[1] for make in (ours, peer)] for _ in range(rounds)]
    mine, other = (median(run[i] for run in runs) * 1e3 for i in range(2))
    print(f"{name:44}{mine:8.0f} ms{other:8.0f} ms   ratio {median(run[1] / run[0] for run in runs):.2f}")


def joined(batches: Iterable[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Return the columns of all batches, rows in the order of the column `id`."""
    parts = list(batches)
    whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return {name: column[np.argsort(whole["id"])] for name, column in whole.items()}


def sliced(columns: Any, arrays: Callable[[Any], dict[str, np.ndarray]]) -> Iterable[dict[str, np.ndarray]]:
    for at in range(0, len(columns), ROWS_OF_BATCH):
        yield arrays(columns[at : at + ROWS_OF_BATCH])


def tables(rounds: int, only: str) -> None:
    """Print the cost of tables in batches, shuffled and in order, by penstock, polars and pyarrow."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.dataset
    import pyarrow.parquet

    import penstock as ps

    rng = np.random.default_rng(0)
    columns = {"id": np.arange(ROWS), **{f"i{i}": rng.integers(0, 1000, ROWS) for i in range(5)}}
    columns |= {f"f{i}": rng.normal(size=ROWS).astype(np.float32) for i in range(14)}
    table = pa.table(columns)
    FOLDER.mkdir(exist_ok=True)
    parquet, csv = str(FOLDER / "table.parquet"), str(FOLDER / "table.csv")
    pa.parquet.write_table(table, parquet, row_group_size=ROWS // 10)
    pa.csv.write_csv(table, csv)
    kinds = [values.dtype.type for values in columns.values()]

    def of_arrow(rows: Any) -> dict[str, np.ndarray]:
        return {name: column.to_numpy() for name, column in zip(rows.schema.names, rows.columns, strict=True)}

    def scanned() -> Iterable[dict[str, np.ndarray]]:
        return map(of_arrow, pa.dataset.dataset(parquet).to_batches(batch_size=ROWS_OF_BATCH))

    def csv_read() -> Iterable[dict[str, np.ndarray]]:
        for part in pa.csv.open_csv(csv):
            yield from sliced(part, of_arrow)

    def csv_rows() -> Iterable[tuple[np.ndarray, ...]]:
        return ps.experimental.CsvDataset(csv, kinds, header=True).batch(ROWS_OF_BATCH)

    in_order = ps.ParquetDataset(parquet).batch(ROWS_OF_BATCH)
    sides: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "tables, Parquet in order, pyarrow scanner": (lambda: in_order, scanned),
        "tables, CSV in order, pyarrow": (csv_rows, csv_read),
    }
    if importlib.util.find_spec("polars") is None:
        print("tables of polars left out: polars is not installed")
    else:
        import polars as pl

        frame = pl.read_parquet(parquet).rechunk()
        shuffled = ps.ParquetDataset(parquet).shuffle(ps.ALL).batch(ROWS_OF_BATCH)
        of_frame = ps.Dataset.from_polars(frame).shuffle(ps.ALL).batch(ROWS_OF_BATCH)

        def sampled(frame: Any) -> Iterable[dict[str, np.ndarray]]:
            rows = frame.sample(fraction=1, shuffle=True)
            return sliced(rows, lambda part: {column.name: column.to_numpy() for column in part})

        sides["tables, Parquet shuffled, polars"] = lambda: shuffled, lambda: sampled(pl.read_parquet(parquet))
        sides["tables, frame shuffled, polars"] = lambda: of_frame, lambda: sampled(frame)
    for name, (ours, peer) in sides.items():
        if only not in name:
            continue
        found = [dict(zip(columns, row, strict=True)) if type(row) is tuple else row for row in ours()]
        for side in (joined(found), joined(peer())):
            assert all(np.allclose(side[column], values) for column, values in columns.items())
        compared(name, rounds, ours, peer)


def in_memory(rounds: int, only: str) -> None:
    """Print the cost of shuffled slices and of indexing by hand, and the time until a first batch of strings."""
    import penstock as ps

    shapes = ((1_000_000, (16,), np.float32), (60_000, (784,), np.float32), (60_000, (28, 28), np.uint8))
    for count, shape, dtype in shapes:
        name = f"in memory, {count} x {shape}, {np.dtype(dtype)}"
        if only not in name:
            continue
        x, y = np.zeros((count, *shape), dtype), np.arange(count)
        x += (y % 251).astype(dtype).reshape(-1, *[1] * len(shape))
        shuffled = ps.Dataset.from_tensor_slices((x, y)).shuffle(ps.ALL).batch(ROWS_OF_BATCH)

        def by_hand(x: np.ndarray = x, y: np.ndarray = y) -> Iterable[tuple[np.ndarray, np.ndarray]]:
            order = np.random.default_rng().permutation(len(x))
            return ((x[rows], y[rows]) for rows in sliced(order, lambda rows: rows))

        for side in (shuffled, by_hand()):
            numbers = [rows for part, rows in side if np.array_equal(part, x[rows])]
            assert np.array_equal(np.sort(np.concatenate(numbers)), y)
        compared(name, rounds, lambda shuffled=shuffled: shuffled, by_hand)
    if only in "in memory, texts":
        names = [f"image_{i:07}.jpg" for i in range(1_000_000)]
        times = []
        for _ in range(rounds):
            began = time.process_time()
            first = next(iter(ps.Dataset.from_tensor_slices(names).shuffle(ps.ALL).batch(ROWS_OF_BATCH)))
            times.append(time.process_time() - began)
            assert len({*first} & {name.encode() for name in names}) == ROWS_OF_BATCH
        print(f"{'in memory, texts: the first batch':44}{median(times) * 1e3:8.0f} ms   goal 150 ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="runs of each side (%(default)s)")
    parser.add_argument("--only", default="", metavar="WORD", help="print only rows with this in their name")
    chosen = parser.parse_args()
    unknown_functions(chosen.rounds, chosen.only)
    if chosen.only in "tokeniser":
        tokeniser(chosen.rounds)
    tables(chosen.rounds, chosen.only)
    in_memory(chosen.rounds, chosen.only)


if __name__ == "__main__":
    main()
