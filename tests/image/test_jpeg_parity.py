"""JPEG functions beside what TensorFlow gave for the same files and images (benchmarks/_parity/make_jpeg.py)."""

import json
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock.image.jpeg import block as jpeg_block

STORED = np.load(Path(__file__).parents[1] / "data" / "tensorflow" / "jpeg.npz")


def cases():
    at = 0
    results = STORED["results"].tobytes()
    for function, name, args, options, shape, dtype in json.loads(str(STORED["calls"])):
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        expected = np.frombuffer(results[at : at + size], dtype).reshape(shape)
        at += size
        yield pytest.param(function, name, args, options, expected, id=f"{function}-{name}-{args}-{options}")


CASES = list(cases())
DECODED = [case for case in CASES if case.values[0] == "decode_jpeg"]


def given(function, name):
    return STORED[name] if function == "adjust_jpeg_quality" else STORED[name].tobytes()


@pytest.mark.parametrize(("function", "name", "args", "options", "expected"), CASES)
def test_equal_to_tensorflow(function, name, args, options, expected):
    result = getattr(ps.image, function)(given(function, name), *args, **options)
    assert result.dtype == expected.dtype
    if (
        function == "decode_and_crop_jpeg"
    ):  # TensorFlow takes the window's sides for the picture's in their last columns
        assert np.abs(result.astype(int) - expected).max() <= 8
        result, expected = result[:, 1:-1], expected[:, 1:-1]
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(("function", "name", "args", "options", "expected"), DECODED)
def test_the_kernels_equal_tensorflow(function, name, args, options, expected):
    jpeg_block._KERNELS.loaded()
    options = {key: value for key, value in options.items() if key != "channels"}
    out = np.zeros((1, *expected.shape), np.uint8)
    assert jpeg_block.JpegBlock([given(function, name)]).decode(out, **options) == {}
    np.testing.assert_array_equal(out[0], expected)
