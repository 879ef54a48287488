"""Check that penstock gives the same results as TensorFlow, bit for bit.

The checks cover TFRecord files written by one library and read by the other, Examples parsed with many descriptions,
JPEG and PNG, and image operations. They also cover generated pipelines of all steps, inputs of no, one and endlessly
many elements, readers of odd files, Python values as elements, and wrong calls. The program prints one line per
subject. Its status is 1 if anything differs. Three differences are allowed: a bilinear resize within 1e-4 of 255, a
call that only penstock refuses (the check has the reason), and the differences listed in docs/reference/tf-data.md. The
program runs an example of each listed difference, to check that it still exists.

    python benchmarks/parity.py                     # everything
    python benchmarks/parity.py readers edges       # these modules of benchmarks/_parity
    PARITY_FIRST=10000 PARITY_PIPELINES=5000 python benchmarks/parity.py generated  # other pipelines, or more
"""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
import warnings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("AUTOGRAPH_VERBOSITY", "0")

SUBJECTS = (
    *("records", "examples", "map_fn", "images", "datasets"),
    *("readers", "edges", "values", "refusals", "listed", "compat", "guides", "generated"),
)


def main() -> int:
    if not importlib.util.find_spec("tensorflow"):
        print("left out: tensorflow is not installed")
        return 0
    import tensorflow as tf

    tf.get_logger().setLevel("ERROR")
    logging.getLogger("penstock").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    from _parity.check import run_all

    names = sys.argv[1:] or SUBJECTS
    failed = sum(run_all(importlib.import_module(f"_parity.{name}").CHECKS) for name in names)
    print(f"{failed} subjects differ" if failed else "penstock and TensorFlow agree")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
