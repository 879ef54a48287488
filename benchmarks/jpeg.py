"""How fast do photographs become batches of floats?

    500×375 JPEGs in TFRecords, 4 files in turn → parse, decode, resize 224×224 float, / 255 → shuffle 1024 → batch 32

The same plan in penstock and tf.data, everything AUTOTUNE. penstock decodes into the batch's memory and shuffles
records instead of decoded pictures, which gives the same order. The second tf.data row does that by hand, which takes
knowing about it. "decode alone" is libjpeg-turbo on as many threads as there are cores, without reading, resizing or
batches. DALI reads the same TFRecords by their index, on as many threads as there are cores. torch, grain and SPDL read
the pictures from single files, as their users keep them, decode them with OpenCV and shuffle names: the torchvision of
the package index does not load beside a torch for CPUs, and SPDL's own decoder asks for FFmpeg's libraries, which no
package of the index brings it.

Goals: ≥ 1.5 times tf.data, hoped for 1.7; ≥ 0.80 of decode alone, hoped for 0.9. On a noisy machine compare the CPU
columns first.

    python benchmarks/jpeg.py [--pairs N]
"""

from __future__ import annotations

from _common.duel import duel
from _common.jpeg_sides import sides
from _common.photographs import photographs

if __name__ == "__main__":
    duel("JPEG to batches of 32", *sides(floats=True), prepare=photographs)
