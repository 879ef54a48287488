"""Does penstock give what TensorFlow gives, bit for bit?

TFRecord files written by one and read by the other, Examples parsed under a table of descriptions, JPEG and PNG, image
operations, generated pipelines of all steps, inputs of no, one and endlessly many elements, the readers on odd files,
Python's values as elements, and wrong calls. One line per subject; the status is 1 if anything differs. Allowed are:
bilinear resize within 1e-4 of 255, where penstock refuses what TensorFlow takes, the reason standing with the check,
and the differences that docs/reference/tf-data.md lists, of which an example is run to see that they still are.

    python benchmarks/parity.py                 # everything
    python benchmarks/parity.py readers edges   # these modules of benchmarks/_parity
    PARITY_FIRST=10000 PARITY_PIPELINES=5000 python benchmarks/parity.py generated    # other pipelines, or more
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
