"""Mutated files of every format: an image or our error, no crash, no memory without bound."""

import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from tests.image.codec_corpus import load

from penstock.errors import InvalidArgumentError, PenstockError
from penstock.image import decode_image

SEARCH = os.environ.get("HYPOTHESIS_PROFILE") == "search"
COUNT = 10_000 if SEARCH else 150  # for each format


@pytest.mark.slow
def test_mutated_files_give_an_image_or_our_error():
    script = Path(__file__).with_name("fuzz_codecs.py")
    first = int.from_bytes(os.urandom(4), "big") if SEARCH else 0
    run = subprocess.run([sys.executable, str(script), str(COUNT), str(first)], capture_output=True, text=True)
    assert run.returncode == 0, f"first={first}: {run.stderr[-2000:]}"
    assert run.stdout.count("images") == 5


@pytest.mark.skipif(not SEARCH, reason="compiles kernels anew, which takes long: make fuzz")
def test_no_read_lies_outside_of_a_file():
    script = Path(__file__).with_name("checked_reads.py")
    first = int.from_bytes(os.urandom(4), "big")
    run = subprocess.run([sys.executable, str(script), "150", str(first)], capture_output=True, text=True)
    assert run.returncode == 0, f"first={first}: {run.stderr[-2000:]}"


BOMBS = {
    "png claims 60000x60000": "claims 60000 x 60000 pixels",
    "png claims 13000x13000": "which 11 packed bytes cannot hold",
    "gif frame claims 65535x65535": "claims 65535 x 65535 pixels",
    "bmp claims 60000x60000": "claims 60000 x 60000 pixels",
    "bmp lowest height": "claims 7 x 2147483648 pixels",
    "webp lossless claims 16384x16384": "claims 16384 x 16384 pixels",
    "webp lossy claims 16383x16383": "claims 16383 x 16383 pixels",
    "jpeg claims 65500x65500": "claims 65500 x 65500 pixels",
    "jpeg claims 2000x2000": "which 958 bytes cannot hold",
}


@pytest.mark.parametrize(("name", "text"), BOMBS.items())
def test_a_bomb_is_refused_before_memory_is_taken(name, text):
    contents = load()[0][name]
    decode_image(load()[0]["jpeg grey"])  # what is loaded at first use is loaded
    tracemalloc.start()
    try:
        with pytest.raises(PenstockError, match=text):
            decode_image(contents)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_frames_without_number_are_refused():
    """Each frame is small, but all are shown on a canvas of the largest."""
    gif = load()[0]["gif many frames of 4000x4000"]
    frame = gif[13 + 48 : -1][: (len(gif) - 62) // 40]
    large = b"," + (0).to_bytes(4, "little") + (4000).to_bytes(2, "little") * 2 + frame[9:]
    with pytest.raises(InvalidArgumentError, match="claims 4000 x 400000 pixels"):
        decode_image(gif[:61] + frame * 99 + large + b";")
