"""Decode COUNT Blocks of damaged JPEGs, every read at an address looked up: `python checked_reads.py COUNT [FIRST]`.

In a process of its own, with kernels that are built in their checked form. They also check the bounds of arrays.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # and not where pytest looks through all files for doctests
    sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
from tests.image.codec_corpus import mutated
from tests.image.jpegs import KERNEL_KINDS, jpeg

from penstock.image.jpeg import block as jpeg_block
from penstock.image.jpeg.block import JpegBlock
from penstock.image.jpeg.kernels import FIELDS
from penstock.image.kernels import DIVIDE
from penstock.native import library

ROOT = Path(__file__).parents[2]
NAME = "penstock.image.jpeg.kernels.block"
may_be_read: list[tuple[int, int]] = []  # from an address on, and before another one
outside: list[tuple[int, int]] = []  # addresses and sizes of reads that lay in none of them


@contextmanager
def allowed(*files: Any) -> Iterator[None]:
    """Let `files`, arrays of bytes, be read, and nothing else."""
    before = may_be_read[:]
    may_be_read.extend((file.ctypes.data, file.ctypes.data + file.size) for file in files)
    try:
        yield
    finally:
        may_be_read[:] = before


@ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)
def look(address: int, size: int) -> None:
    if not any(start <= address and address + size <= stop for start, stop in may_be_read):
        outside.append((address, size))


def checked_kernels(folder: str) -> Any:
    """Those of JPEGs, which call `look` for each read."""
    command = [sys.executable, ROOT / "tools/build_kernels.py", "--checked", "--into", folder, "--modules", NAME]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    os.environ["PENSTOCK_KERNELS"] = folder
    kernels = jpeg_block._KERNELS.loaded()
    made = ctypes.CDLL(str(Path(folder, library.level(), f"{NAME}.so")))
    ctypes.c_int64.in_dll(made, "penstock_checked_read").value = ctypes.cast(look, ctypes.c_void_p).value
    return kernels


def decode(files, size):
    """Each way to decode a Block."""
    block = JpegBlock(files)
    block.decode_packed()
    block.decode_resize(np.empty((len(files), *size, 3), np.float32), last=[(DIVIDE, (255.0,) * 3)])
    return block


def main(count, first):
    with tempfile.TemporaryDirectory() as folder:
        kernels = checked_kernels(folder)
    file = jpeg("420", 24, 24)
    whole = np.frombuffer(file, np.uint8)  # the same memory
    table = np.empty((1, FIELDS), np.int64)
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
