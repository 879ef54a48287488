"""JPEG files of every kind that encoders write, for tests."""

import cv2
import simplejpeg
from hypothesis import strategies as st
from tests.image.photos import photo

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


SIDES = st.integers(1, 70)


def files(kinds=KERNEL_KINDS + OTHER_KINDS, sides=SIDES):
    """A strategy for files."""
    return st.builds(jpeg, st.sampled_from(kinds), sides, sides, st.integers(1, 100), st.integers(0, 50))
