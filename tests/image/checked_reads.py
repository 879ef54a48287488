"""Decode COUNT Blocks of damaged JPEGs, every read at an address looked up: `python checked_reads.py COUNT [FIRST]`.

In a process of its own, for which the kernels are compiled in their checked form.
"""

import os
import sys
from pathlib import Path

if __name__ == "__main__":  # and not where pytest looks through all files for doctests
    os.environ["PENSTOCK_CHECKED_READS"] = "1"
    sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
from tests.image.codec_corpus import mutated
from tests.image.jpegs import KERNEL_KINDS, jpeg

from penstock.image.jpeg import block as jpeg_block
from penstock.image.jpeg.block import JpegBlock


def decode(files, size):
    """Each way to decode a Block."""
    block = JpegBlock(files)
    block.decode_packed()
    block.decode_resize(np.empty((len(files), *size, 3), np.float32), divide=255.0)
    return block


def main(count, first):
    kernels = jpeg_block._KERNELS.get()
    from penstock.image.jpeg.kernels.checked import allowed, outside

    file = jpeg("420", 24, 24)
    whole = np.frombuffer(file, np.uint8)  # the same memory
    table = np.empty((1, kernels.FIELDS), np.int64)
    with allowed(whole[:-40]):  # or nothing would be found below, whatever is read
        kernels.read_headers(np.array([whole.ctypes.data]), np.array([whole.size]), table)
        assert outside == []
        JpegBlock([file]).decode_packed()
        assert outside
    outside.clear()
    taken = 0
    for number in range(first, first + count):
        rng = np.random.default_rng(number)
        kind, height, width = str(rng.choice(KERNEL_KINDS)), int(rng.integers(1, 50)), int(rng.integers(1, 50))
        files = [jpeg(kind, height, width, int(rng.integers(5, 100)), seed) for seed in range(4)]
        files = [mutated(file, rng) if rng.integers(3) else file for file in files]
        with allowed(*(np.frombuffer(file, np.uint8) for file in files if file)):
            block = decode(files, (int(rng.integers(1, 20)), int(rng.integers(1, 20))))
            taken += int(block.taken().sum())
        assert outside == [], f"number={number}: {outside[:5]}"
    assert taken, "the kernels have read none of them"
    print(f"{count} Blocks, {taken} files for the kernels, no read outside")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
