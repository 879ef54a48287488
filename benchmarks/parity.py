"""Does penstock give what TensorFlow gives, bit for bit?

TFRecord files written by one and read by the other, Examples parsed under a table of descriptions, JPEG and PNG, image
operations, and the order and values of random data sets. One line per subject; the status is 1 if anything differs.
Allowed are: bilinear resize within 1e-4 of 255, and where penstock refuses what TensorFlow takes, the reason standing
with the check.

    python benchmarks/parity.py
"""

from __future__ import annotations

import importlib.util
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")


def main() -> int:
    if not importlib.util.find_spec("tensorflow"):
        print("left out: tensorflow is not installed")
        return 0
    from _parity import datasets, examples, images, records
    from _parity.check import run_all

    failed = run_all([*records.CHECKS, *examples.CHECKS, *images.CHECKS, *datasets.CHECKS])
    print(f"{failed} subjects differ" if failed else "penstock and TensorFlow agree")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
