"""Measure the CPU time of packing, and compare it with Grain's.

    source.pack(2048, too_long="split")             # first fit with 64 open rows, and best fit
    source.unbatch().batch(2048)                    # one stream of tokens, cut

The figure is the CPU time of one iteration with the step, minus one of the source alone, per sequence. penstock packs
after each kind of source, Grain after a list in memory. The sides take turns in one process. Grain has the same length
and number of bins. Its first fit and best fit get sequences that are cut to a row. Goal: at most half of Grain's time.

    python benchmarks/packing.py [--rounds N] [--tokens N]
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import Any

import grain
import numpy as np
from _common.duel import drain, timed

import penstock as ps

LENGTH, OPEN = 2048, 64
TOTAL = 500_000  # tokens


class Tokenizer:
    """Returns prepared tokens. Its function has side effects, so the engine calls it in lock-step, at little cost."""

    def __init__(self, texts: list[np.ndarray]) -> None:
        self.texts = texts
        self.calls = 0

    def encode(self, number: int) -> np.ndarray:
        """Return the tokens of one text."""
        self.calls += 1
        return self.texts[number]


def sequences(tokens: int) -> list[np.ndarray]:
    """Return arrays of `tokens` int32 values on average."""
    rng = np.random.default_rng(0)
    sizes = (tokens * rng.lognormal(-0.245, 0.7, TOTAL // tokens)).astype(int).clip(1)
    return [rng.integers(0, 50_000, size).astype(np.int32) for size in sizes]


def sources(texts: list[np.ndarray], file: Path) -> dict[str, ps.Dataset]:
    """Return the same sequences from each kind of source."""
    file.write_text("".join(json.dumps({"tokens": text.tolist()}) + "\n" for text in texts))
    generator = ps.Dataset.from_generator(lambda: iter(texts))
    return {
        "generator": generator,
        "from_sequence": ps.Dataset.from_sequence(texts),
        "JSON Lines": ps.JsonLinesDataset(str(file)).map(lambda row: row["tokens"]),
        "tokenizer": ps.Dataset.range(len(texts)).map(Tokenizer(texts).encode),
        "cached": generator.cache(),
    }


WAYS: dict[str, Callable[[ps.Dataset], ps.Dataset]] = {
    "first fit": lambda ds: ds.pack(LENGTH, open_rows=OPEN, too_long="split"),
    "best fit": lambda ds: ds.pack(LENGTH, open_rows=OPEN, too_long="split", strategy="best_fit"),
    "concatenated": lambda ds: ds.unbatch().batch(LENGTH),
}


def peers(texts: list[np.ndarray]) -> dict[str, Any]:
    """Return Grain's source, and its packing by the name of ours."""
    in_this_thread = grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)
    cut = [{"tokens": text[:LENGTH]} for text in texts]  # longer ones are an error
    source = grain.MapDataset.source(cut).to_iter_dataset(in_this_thread)
    bins: Any = {"length_struct": {"tokens": LENGTH}, "num_packing_bins": OPEN, "shuffle_bins": False}
    kinds = grain.experimental
    return {
        "": source,
        "first fit": kinds.FirstFitPackIterDataset(source, **bins),
        "best fit": kinds.BestFitPackIterDataset(source, **bins),
        "concatenated": kinds.ConcatThenSplitIterDataset(source, length_struct={"tokens": LENGTH}),
    }


def cpu_of_iteration(elements: Iterable[Any]) -> float:
    """Return the CPU seconds of one iteration."""
    return timed(lambda: drain(elements))[1]


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU time of packing, compared with Grain")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="measured iterations (%(default)s)")
    parser.add_argument("--tokens", type=int, default=240, metavar="N", help="of a sequence, on average (%(default)s)")
    chosen = parser.parse_args()
    texts = sequences(chosen.tokens)
    with tempfile.TemporaryDirectory() as folder:
        measured: dict[tuple[str, str], Any] = {}
        for name, ds in sources(texts, Path(folder, "texts.jsonl")).items():
            measured[name, ""] = ds
            measured |= {(name, way): make(ds) for way, make in WAYS.items()}
        measured |= {("grain", way): ds for way, ds in peers(texts).items()}
        seconds: dict[tuple[str, str], list[float]] = {key: [] for key in measured}
        for _ in range(1 + chosen.rounds):  # the first one warms up
            for key, ds in measured.items():
                seconds[key].append(cpu_of_iteration(ds))
    own = {
        key: (median(took[1:]) - median(seconds[key[0], ""][1:])) / len(texts) * 1e6 for key, took in seconds.items()
    }
    print(f"{len(texts)} sequences of {chosen.tokens} tokens: own µs per sequence (part of Grain's)")
    for name in dict.fromkeys(name for name, _ in measured):
        figures = [f"{way} {own[name, way]:6.1f} ({own[name, way] / own['grain', way]:.2f})" for way in WAYS]
        print(f"{name:15}", *figures, sep="   ")


if __name__ == "__main__":
    main()
