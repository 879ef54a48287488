"""What does penstock cost beside the work itself, and beside the loop that a user writes by hand?

    source.map(unknown)                              # a function that runs as written, element by element

`unknown` calls a C library through ctypes: penstock neither vectorises it nor knows what it does, so it calls the
function for each element, in order, when your loop asks for the element. A row subtracts the same calls by hand and the
iteration over the source alone.

    texts.map(tokenise)                              # tokenizer.encode(text).ids, as an array

A tokeniser in a `map`, beside its own batch call for 250 texts, and its calls in a loop. It is trained here,
as nothing can be downloaded; without the library `tokenizers` this row is left out.

All figures are CPU time of the process, medians of rounds in which the sides take turns.

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

NUMBERS, TEXTS = 40_000, 8_000
BATCH = 250
FOLDER = Path(tempfile.gettempdir()) / "penstock-peers"
GOALS = {"numbers": 5.0, "texts": 10.0}  # µs of the engine's own per element
LOCK_STEP = 20.0  # the same for generators, of which nothing is read before your loop asks for it
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
    """Data sets of the values, each with the function that is called for its elements."""
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
    """Return the CPU seconds of an iteration, which calls the function by hand if there is one."""
    began = time.process_time()
    if function is None:
        for _ in elements:
            pass
    else:
        for element in elements:
            function(element)
    return time.process_time() - began


def unknown_functions(rounds: int, only: str) -> None:
    """Print the engine's own CPU time for each source, plain and with AUTOTUNE, and how both compare."""
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
    """Print what a text costs by the tokeniser's own batch call, by hand, in a map, and in one with AUTOTUNE."""
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
    runs = [{name: clocked(make()) for name, make in sides.items()} for _ in range(rounds)]
    for name in sides:
        wall, cpu = (median(run[name][i] for run in runs) / len(values) * 1e6 for i in range(2))
        ratios = [median(run["own batch call"][i] / run[name][i] for run in runs) for i in range(2)]
        print(f"tokeniser, {name:16}{wall:8.0f} µs wall{cpu:8.0f} µs CPU   ratio {ratios[0]:.2f}, {ratios[1]:.2f}")


def clocked(elements: Iterable[Any]) -> tuple[float, float]:
    """Return the seconds of an iteration, by the clock and of CPU time."""
    began = time.perf_counter()
    cpu = spent(elements)
    return time.perf_counter() - began, cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="runs of each side (%(default)s)")
    parser.add_argument("--only", default="", metavar="WORD", help="rows with this in their name")
    chosen = parser.parse_args()
    unknown_functions(chosen.rounds, chosen.only)
    if chosen.only in "tokeniser":
        tokeniser(chosen.rounds)


if __name__ == "__main__":
    main()
