"""JPEG: decoding by libjpeg-turbo or, for a Block, by kernels; encoding; JPEG noise as an augmentation."""

from penstock.image.jpeg.decode import decode_and_crop_jpeg, decode_jpeg
from penstock.image.jpeg.encode import (
    adjust_jpeg_quality,
    encode_jpeg,
    random_jpeg_quality,
    stateless_random_jpeg_quality,
)
from penstock.image.jpeg.libjpeg import extract_jpeg_shape, is_jpeg

__all__ = [
    "adjust_jpeg_quality",
    "decode_and_crop_jpeg",
    "decode_jpeg",
    "encode_jpeg",
    "extract_jpeg_shape",
    "is_jpeg",
    "random_jpeg_quality",
    "stateless_random_jpeg_quality",
]
