"""Compare the CPU time of `import penstock` with that of `import numpy`, and count penstock's modules.

Each round is a new process that imports numpy and then penstock. The goal is that penstock takes no longer than numpy.
The output also has the time of a first iteration, which imports the engine.

    python benchmarks/import_time.py
"""

import itertools
import statistics
import sys

from _common.duel import figures_of

ROUNDS = 15
CODE = """
import json, sys
from time import process_time
times = [process_time()]
import numpy
times.append(process_time())
import penstock
times.append(process_time())
modules = sum(name.partition(".")[0] == "penstock" for name in sys.modules)
next(iter(penstock.Dataset.range(4).map(abs).batch(2)))
times.append(process_time())
print(json.dumps([times, modules]))
"""


def main() -> None:
    rounds = []
    for _ in range(ROUNDS + 1):
        times, modules = figures_of([sys.executable, "-c", CODE])
        rounds.append([later - earlier for earlier, later in itertools.pairwise(times)])
    rounds = rounds[1:]  # the first round writes the bytecode
    ratios = sorted(penstock / numpy for numpy, penstock, _ in rounds)
    numpy, penstock, first = (min(column) * 1e3 for column in zip(*rounds, strict=True))
    print(f"CPU, minimum of {ROUNDS}: numpy {numpy:.0f} ms, penstock {penstock:.0f} ms, first iteration {first:.0f} ms")
    middle = statistics.median(ratios)
    print(f"penstock / numpy: min {ratios[0]:.2f}, median {middle:.2f}, max {ratios[-1]:.2f}; goal 1: ", end="")
    print("met" if middle <= 1 else "missed")
    print(f"imported modules of penstock: {modules}")


if __name__ == "__main__":
    main()
