"""Measure the gain from more cores, in penstock, tf.data and torch. Takes five minutes on a machine with 16 cores.

Each pipeline runs in its own process with a given number of cores and as many workers. Numbers above the cores of the
machine are left out, and so are libraries that are not installed.

    - photographs, tiny elements, parse: the pipelines of `jpeg.py`, `tiny.py` and `parse.py`. torch's tiny elements
      come from an iterable data set, of which each worker computes a shard
    - python: the function of `gil.py`, which holds the interpreter lock; in torch, a data set that calls it
    - torchvision: an ImageFolder with RandomResizedCrop and flip, in torch's DataLoader and in penstock's

A row is one pipeline of one library on one number of cores: the rate, its ratio to the rate of one core, and the CPU
time per element. If the rate stops growing and the CPU time does not change, cores wait for the source, for the order
of the elements or for the consumer. If the CPU time grows, cores compete for memory or share an execution unit. After
the rows, the program prints penstock's own analysis on the most cores. If torch finds a CUDA device, it also runs
`device_step.py`, which measures the copy to the device during the step.

    python benchmarks/cores.py [--counts 1,2,4] [--rounds N] [--seconds S] [--only TEXT]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import gil
import parse
import tiny
import torch_image_folder
from _common import click_pipelines, clicks, jpeg_pipelines, opencv_images, photographs
from _common.duel import Pass, data_folder, figures_of, installed, measure, output_of, written_once

COUNTS = (1, 16)
CALLS, CROPPED = 1024, "crop"


def counted(ds: Any) -> Pass:
    return lambda: sum(len(images) for images, _ in ds)


def torch_photographs(workers: int) -> Pass:
    opencv_images.WORKERS = workers
    return opencv_images.torch(floats=True)


def torch_tiny(workers: int) -> Pass:
    from torch.utils.data import DataLoader, IterableDataset, get_worker_info

    class Numbers(IterableDataset):  # type: ignore[type-arg]
        def __iter__(self) -> Iterator[int]:
            info = get_worker_info()
            assert info is not None
            yield from (x + 1 for x in range(info.id, tiny.FEWER, info.num_workers) if (x + 1) % 3)

    loader = DataLoader(Numbers(), tiny.BATCH, num_workers=workers, persistent_workers=True)

    def one_pass() -> int:
        assert sum(len(batch) for batch in loader) == tiny.kept(tiny.FEWER)
        return tiny.FEWER

    return one_pass


def python() -> Any:
    import penstock as ps

    return ps.Dataset.range(CALLS).map(gil.counted, num_parallel_calls=ps.AUTOTUNE).batch(32).prefetch(2)


def elements(ds: Any) -> Pass:
    return lambda: sum(len(batch) for batch in ds)


def torch_python(workers: int) -> Pass:
    from torch.utils.data import DataLoader, Dataset

    class Counted(Dataset):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return CALLS

        def __getitem__(self, index: int) -> int:
            return gil.counted(index)

    return elements(DataLoader(Counted(), 32, num_workers=workers, persistent_workers=True))


def torchvision(kind: str) -> Build:
    def build(workers: int) -> Pass:
        loader = torch_image_folder.loader_of(kind, image_folder(), CROPPED, workers)
        return lambda: sum(len(images) for images, _ in loader)

    return build


def image_folder() -> str:
    """Return a folder of JPEGs in two classes, which the first call writes."""

    def write(folder: Path) -> None:
        folder.mkdir(parents=True)
        torch_image_folder.write(folder, torch_image_folder.FORMS[CROPPED])

    return str(written_once(data_folder() / "cores-images", write))


Build = Callable[[int], Pass]
PIPELINES: dict[str, dict[str, Build]] = {
    "photographs": {
        "penstock": lambda workers: counted(jpeg_pipelines.penstock()),
        "tf.data": lambda workers: counted(jpeg_pipelines.tf_data()),
        "torch": torch_photographs,
    },
    "tiny elements": {
        "penstock": lambda workers: tiny.penstock(),
        "tf.data": lambda workers: tiny.tf_data(),
        "torch": torch_tiny,
    },
    "parse": {
        "penstock": lambda workers: parse.penstock(),
        "tf.data": lambda workers: parse.tf_data(),
    },
    "python": {
        "penstock": lambda workers: elements(python()),
        "torch": torch_python,
    },
    "torchvision": {
        "penstock.torch": torchvision("penstock"),
        "torch": torchvision("torch"),
    },
}
EXPLAINED = "penstock, explained"
DATA_SETS: dict[str, Callable[[], Any]] = {
    "photographs": jpeg_pipelines.penstock,
    "tiny elements": tiny.data_set,
    "parse": click_pipelines.penstock,
    "python": python,
}
NEEDS = {"penstock": "penstock", "penstock.torch": "torchvision", "tf.data": "tensorflow", "torch": "torch"}


def granted() -> list[int]:
    """Return the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def run(pipeline: str, library: str, workers: int, seconds: float) -> None:
    """Run one side in this process. Set the cores first, because libraries read their number when they are imported."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, granted()[:workers])
    photographs.TIMES = workers  # iterations last as long on many cores as on one, so that start and end weigh the same
    if library == EXPLAINED:
        print(DATA_SETS[pipeline]().explain(analyze=True))
        return
    print(json.dumps(measure(lambda: PIPELINES[pipeline][library](workers), seconds)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", type=lambda text: [int(part) for part in text.split(",")], default=COUNTS)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each, in turn")
    parser.add_argument("--seconds", type=float, default=1.0, help="measured at least so long per run")
    parser.add_argument("--only", default="", help="pipelines with this text in their names")
    parser.add_argument("--run", nargs=3, metavar=("PIPELINE", "LIBRARY", "WORKERS"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.run:
        run(asked.run[0], asked.run[1], int(asked.run[2]), asked.seconds)
        return
    counts = [count for count in asked.counts if count <= len(granted())]
    print(f"{len(granted())} cores; left out: {sorted(set(asked.counts) - set(counts)) or 'nothing'}")
    if not hasattr(os, "sched_setaffinity"):
        print("This system has no CPU affinity: only the number of torch's workers is limited.")
    photographs.photographs()
    clicks.clicks()
    columns = ("pipeline", "library", "cores", "elements/s", "× one core", "CPU µs", "  spread of the rate")
    print("{:<15}{:<15}{:>5}{:>13}{:>13}{:>9}{}".format(*columns))
    for pipeline, libraries in PIPELINES.items():
        if asked.only not in pipeline:
            continue
        present = [library for library in libraries if installed(NEEDS[library])]
        rounds: dict[tuple[str, int], list[dict[str, float]]] = {}
        for _ in range(asked.rounds):
            for count in counts:
                for library in present:
                    command = [sys.executable, sys.argv[0], "--seconds", str(asked.seconds)]
                    found = figures_of([*command, "--run", pipeline, library, str(count)])
                    rounds.setdefault((library, count), []).append(found)
        for library in present:
            one = median(found["rate"] for found in rounds[library, counts[0]])
            for count in counts:
                rates = [found["rate"] for found in rounds[library, count]]
                cpu = median(found["cpu_us"] for found in rounds[library, count])
                figures = f"{median(rates):>13,.0f}{median(rates) / one:>12.2f}×{cpu:>9.2f}"
                print(
                    f"{pipeline:<15}{library:<15}{count:>5}{figures}  {min(rates):,.0f} to {max(rates):,.0f}",
                    flush=True,
                )
    for pipeline in (name for name in DATA_SETS if asked.only in name):
        print(output_of([sys.executable, sys.argv[0], "--run", pipeline, EXPLAINED, str(max(counts))]))
    if installed("torch") and not asked.only:
        print(output_of([sys.executable, str(Path(sys.argv[0]).with_name("device_step.py"))]))


if __name__ == "__main__":
    main()
