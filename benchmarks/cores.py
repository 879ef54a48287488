"""What do more cores give: photographs, and tiny elements, on 1, 2, 4, 8 and 16 of them, beside tf.data and torch?

The pipelines of `jpeg.py` and `tiny.py`, each run in a process of its own that may use so many cores and has so many
workers; counts beyond the cores of the machine are left out. A row is one pipeline of one library on one count: the
rate, how many times that of one core it is, and the CPU time for an element. Where the rate bends and CPU for each
element stays, cores wait: for the source, for order, for the loop. Where CPU grows, they are in each other's way, or
share an execution unit. torch's tiny elements come from an iterable data set of which each worker makes a part.
Last comes what penstock's own analysis says on the most cores.

    python benchmarks/cores.py [--counts 1,2,4] [--rounds N] [--seconds S] [--only TEXT]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import tiny
from _common import jpeg_pipelines, opencv_pictures, photographs
from _common.duel import Pass, installed, measure, output_of

COUNTS = (1, 2, 4, 8, 16)


def counted(ds: Any) -> Pass:
    return lambda: sum(len(images) for images, _ in ds)


def torch_photographs(workers: int) -> Pass:
    opencv_pictures.WORKERS = workers
    return opencv_pictures.torch(floats=True)


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
}
EXPLAINED = "penstock, explained"
NEEDS = {"penstock": "penstock", "tf.data": "tensorflow", "torch": "torch"}


def granted() -> list[int]:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def run(pipeline: str, library: str, workers: int, seconds: float) -> None:
    """What a process of its own does; libraries see the cores when they are imported, behind this."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, granted()[:workers])
    photographs.TIMES = workers  # as long a pass on many cores as on one: its begin and end are not what is measured
    if library == EXPLAINED:
        print(
            {"photographs": jpeg_pipelines.penstock, "tiny elements": tiny.data_set}[pipeline]().explain(analyze=True)
        )
        return
    print(json.dumps(measure(lambda: PIPELINES[pipeline][library](workers), seconds)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", type=lambda text: [int(part) for part in text.split(",")], default=COUNTS)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each, in turn")
    parser.add_argument("--seconds", type=float, default=2.0, help="measured at least so long per run")
    parser.add_argument("--only", default="", help="pipelines with this text in their names")
    parser.add_argument("--run", nargs=3, metavar=("PIPELINE", "LIBRARY", "WORKERS"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.run:
        run(asked.run[0], asked.run[1], int(asked.run[2]), asked.seconds)
        return
    counts = [count for count in asked.counts if count <= len(granted())]
    print(f"{len(granted())} cores; left out: {sorted(set(asked.counts) - set(counts)) or 'nothing'}")
    if not hasattr(os, "sched_setaffinity"):
        print("This system does not say which cores a process may use: only torch's workers are bounded.")
    photographs.photographs()
    columns = ("pipeline", "library", "cores", "elements/s", "of one core", "CPU µs", "  spread of the rate")
    print("{:<15}{:<10}{:>5}{:>13}{:>13}{:>9}{}".format(*columns))
    for pipeline, libraries in PIPELINES.items():
        if asked.only not in pipeline:
            continue
        present = [library for library in libraries if installed(NEEDS[library])]
        rounds: dict[tuple[str, int], list[dict[str, float]]] = {}
        for _ in range(asked.rounds):
            for count in counts:
                for library in present:
                    command = [sys.executable, sys.argv[0], "--seconds", str(asked.seconds)]
                    printed = output_of([*command, "--run", pipeline, library, str(count)])
                    rounds.setdefault((library, count), []).append(json.loads(printed.splitlines()[-1]))
        for library in present:
            one = median(found["rate"] for found in rounds[library, counts[0]])
            for count in counts:
                rates = [found["rate"] for found in rounds[library, count]]
                cpu = median(found["cpu_us"] for found in rounds[library, count])
                figures = f"{median(rates):>13,.0f}{median(rates) / one:>12.2f}×{cpu:>9.2f}"
                print(
                    f"{pipeline:<15}{library:<10}{count:>5}{figures}  {min(rates):,.0f} to {max(rates):,.0f}",
                    flush=True,
                )
    for pipeline in (name for name in PIPELINES if asked.only in name):
        print(output_of([sys.executable, sys.argv[0], "--run", pipeline, EXPLAINED, str(max(counts))]))


if __name__ == "__main__":
    main()
