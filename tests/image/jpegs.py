"""JPEG files of every kind that encoders write, for tests."""

import cv2
import numpy as np
import simplejpeg
from hypothesis import strategies as st
from tests.image.photos import photo

from penstock.image import decode_jpeg, resize
from penstock.image.kernels import CALCULATE

KERNEL_KINDS = ("444", "422", "420", "grey", "optimised", "restarts")
OTHER_KINDS = ("440", "411", "progressive")


def jpeg(kind, height, width, quality=90, seed=0):
    """One file; `restarts` has a marker behind every third unit."""
    image = photo(height, width, 1 if kind == "grey" else 3, seed)
    if kind == "grey":
        return simplejpeg.encode_jpeg(image, quality, "GRAY")
    if kind.isdigit():
        return simplejpeg.encode_jpeg(image, quality, "RGB", kind)
    extra = {
        "optimised": [cv2.IMWRITE_JPEG_OPTIMIZE, 1],
        "progressive": [cv2.IMWRITE_JPEG_PROGRESSIVE, 1],
        "restarts": [cv2.IMWRITE_JPEG_RST_INTERVAL, 3],
    }[kind]
    return cv2.imencode(".jpg", image[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality, *extra])[1].tobytes()


def decode_resize_into(contents, dst, *, fancy_upscaling=True, dct_method="", **how):
    """One file into `dst`, step by step."""
    image = decode_jpeg(contents, dst.shape[-1], fancy_upscaling=fancy_upscaling, dct_method=dct_method)
    resize_into(image, dst, **how)


def resize_into(image, dst, *, flip_left_right="", flip_up_down="", last=()):
    """Resize, flip and calculate one image into `dst`, step by step."""
    for when in ("before", "after"):
        image = image[:: -1 if flip_up_down == when else 1, :: -1 if flip_left_right == when else 1]
        if when == "before":
            image = resize(image, dst.shape[:2])
    for code, numbers in last:
        image = CALCULATE[code](image, np.float32(numbers[: dst.shape[-1]]))
    dst[...] = image.astype(dst.dtype)


SIDES = st.integers(1, 70)


def files(kinds=KERNEL_KINDS + OTHER_KINDS, sides=SIDES):
    """A strategy for files."""
    return st.builds(jpeg, st.sampled_from(kinds), sides, sides, st.integers(1, 100), st.integers(0, 50))
