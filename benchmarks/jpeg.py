"""Measure how fast photographs become batches of floats.

    500×375 JPEGs in TFRecords, 4 files in turn → parse, decode, resize 224×224 float, / 255 → shuffle 1024 → batch 32

The plan is the same in penstock and tf.data, with AUTOTUNE for all settings. penstock decodes into the batch's memory
and shuffles records instead of decoded images, which gives the same order. The second tf.data row shuffles the records
in the pipeline itself. "decode alone" is libjpeg-turbo on as many threads as there are cores, without reading, resizing
or batching. DALI reads the same TFRecords by their index, on as many threads. torch, grain and SPDL read single files,
decode them with OpenCV and shuffle names. Their own decoders cannot be used: the torchvision of the package index
cannot be loaded with a CPU build of torch, and SPDL's decoder needs FFmpeg's libraries, which no package of the index
has.

Goals: ≥ 1.5 times the rate of tf.data, 1.7 if possible; ≥ 0.80 of "decode alone", 0.9 if possible. On a noisy machine
compare the CPU columns first.

    python benchmarks/jpeg.py [--pairs N]
"""

from __future__ import annotations

from _common.duel import duel
from _common.jpeg_sides import sides
from _common.photographs import photographs

if __name__ == "__main__":
    duel("JPEG to batches of 32", *sides(floats=True), prepare=photographs)
