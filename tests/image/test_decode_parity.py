"""The decoders against what TensorFlow decodes a stored corpus to: equal to the last bit but for the listed cases."""

import re

import numpy as np
import pytest
from tests.image.codec_corpus import load

from penstock import image as images
from penstock.errors import DataLossError, PenstockError

FILES, CASES = load()

# What only we decode: more channels and dtypes than TensorFlow converts to, and files on which it gives up or crashes.
WIDER = (
    "`channels` must be 0, 3 or 4 for BMP",
    "WebP only supports",
    "Number of channels requested does not match",
    "TensorFlow crashes",
)
WIDER_FILES = {
    "bmp bytes after the end",  # nothing is missing
    "jpeg predictive",  # libjpeg-turbo has learned it
    "jpeg 12 bits",  # the shape only
}

# Where TensorFlow leaves out frames that are missing, or fills in nearly everything, an element is not delivered.
NOT_WHOLE = {"gif cut in the second frame", "gif cut before the second frame"}
NOT_WHOLE_JPEGS = {"jpeg claims 2000x2000"}


def is_opaque_quirk(case):
    """Opaque alpha of files with less than 8 bits: TensorFlow gives the largest number of so many bits, we give 255."""
    small = re.search(r"depth [124]\b|grey 2$|palette too long", case["file"])
    return (
        case["op"] == "decode_png" and small and case["options"]["channels"] == 4 and not case["file"].endswith("tRNS")
    )


def is_not_whole(case):
    return case["file"] in NOT_WHOLE and case["options"].get("expand_animations", True)


def outcome(case):
    try:
        return getattr(images, case["op"])(FILES[case["file"]], **case["options"])
    except PenstockError as error:
        return error


def test_the_corpus_is_what_it_should_be():
    kinds = {name.split()[0] for name in FILES}
    assert {"png", "gif", "bmp", "webp", "jpeg"} < kinds
    assert len(FILES) > 300
    assert sum("pixels" in case for case in CASES) > 1500


@pytest.mark.parametrize("name", FILES)
def test_equals_tensorflow(name, capfd):
    for case in (case for case in CASES if case["file"] == name):
        found = outcome(case)
        told = f"{case['op']} {case['options']}"
        if "error" in case:
            if isinstance(found, PenstockError):
                continue
            assert case["error"].startswith(WIDER) or name in WIDER_FILES, told
        elif is_not_whole(case) or (name in NOT_WHOLE_JPEGS and case["op"] != "extract_jpeg_shape"):
            assert isinstance(found, DataLossError), told
        else:
            assert not isinstance(found, PenstockError), f"{told}: {found}"
            assert (found.dtype, list(found.shape)) == (case["dtype"], case["shape"]), told
            if is_opaque_quirk(case):
                np.testing.assert_array_equal(found[..., :3], case["pixels"][..., :3], told)
                assert (found[..., 3] == np.iinfo(found.dtype).max).all(), told
                assert (case["pixels"][..., 3] < found[..., 3]).all(), told
            elif "pixels" in case:
                np.testing.assert_array_equal(found, case["pixels"], told)
    capfd.readouterr()  # OpenCV also complains on stderr


def test_errors_name_the_format_or_the_function(capfd):
    for case in CASES:
        found = outcome(case) if case["op"] == "decode_image" else None
        if isinstance(found, PenstockError):
            assert str(found).startswith(("PNG ", "GIF ", "BMP ", "WebP ", "JPEG ", "decode_")), str(found)
    capfd.readouterr()
