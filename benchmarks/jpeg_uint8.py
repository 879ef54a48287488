"""How fast do photographs become batches of bytes?

The pipelines of `jpeg.py`, whose resized pictures are cut off to uint8 instead of divided: a quarter of the memory, for
models that scale on the accelerator. The other libraries round, which costs them less than to cut off.

Goals: ≥ 1.5 times tf.data, hoped for 1.7; ≥ 0.80 of decode alone, hoped for 0.9.

    python benchmarks/jpeg_uint8.py [--pairs N]
"""

from __future__ import annotations

from _common.duel import duel
from _common.jpeg_sides import sides
from _common.photographs import photographs

if __name__ == "__main__":
    duel("JPEG to batches of 32, uint8", *sides(floats=False), prepare=photographs)
