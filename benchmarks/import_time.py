"""What does `import penstock` cost, and how much of it is numpy?

Each figure is the least of several fresh processes, measured inside the process around the import alone. The goal is
at most 0.15 s.

    python benchmarks/import_time.py
"""

import subprocess
import sys

ROUNDS = 9
GOAL_S = 0.15


def import_seconds(module: str) -> float:
    """Seconds of `import module` in a fresh interpreter: the least of `ROUNDS`."""
    code = f"from time import perf_counter; start = perf_counter(); import {module}; print(perf_counter() - start)"
    return min(
        float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
        for _ in range(ROUNDS)
    )


def main() -> None:
    import_seconds("penstock")  # writes the bytecode
    numpy, penstock = import_seconds("numpy"), import_seconds("penstock")
    print(f"import numpy     {numpy * 1e3:7.1f} ms")
    verdict = "met" if penstock <= GOAL_S else "missed"
    print(f"import penstock  {penstock * 1e3:7.1f} ms   goal {GOAL_S * 1e3:.0f} ms: {verdict}")


if __name__ == "__main__":
    main()
