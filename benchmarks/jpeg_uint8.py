"""Measure how fast photographs become batches of bytes.

The pipelines are those of `jpeg.py`, but the resized images are truncated to uint8 instead of divided. The batches take
a quarter of the memory, for models that scale on the accelerator. The other libraries round, which costs them less than
truncating.

Goals: ≥ 1.5 times the rate of tf.data, 1.7 if possible; ≥ 0.80 of "decode alone", 0.9 if possible.

    python benchmarks/jpeg_uint8.py [--pairs N]
"""

from __future__ import annotations

from _common.duel import duel
from _common.jpeg_sides import sides
from _common.photographs import photographs

if __name__ == "__main__":
    duel("JPEG to batches of 32, uint8", *sides(floats=False), prepare=photographs)
