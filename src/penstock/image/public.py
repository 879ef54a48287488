"""The names of `penstock.image`. This module is imported when one of them is first used."""

from penstock.image import augment, colour, geometry
from penstock.image.augment import *  # noqa: F403 - its `__all__`
from penstock.image.colour import *  # noqa: F403 - its `__all__`
from penstock.image.decode import decode_bmp, decode_image, decode_webp
from penstock.image.dtypes import cast, convert_image_dtype
from penstock.image.geometry import *  # noqa: F403 - its `__all__`
from penstock.image.gif import decode_gif
from penstock.image.jpeg import (
    adjust_jpeg_quality,
    decode_and_crop_jpeg,
    decode_jpeg,
    encode_jpeg,
    extract_jpeg_shape,
    is_jpeg,
    random_jpeg_quality,
    stateless_random_jpeg_quality,
)
from penstock.image.measures import psnr
from penstock.image.png import decode_png, encode_png
from penstock.image.resizing import ResizeMethod, crop_and_resize, resize, resize_with_pad

__all__ = [
    "ResizeMethod",
    "adjust_jpeg_quality",
    "cast",
    "convert_image_dtype",
    "crop_and_resize",
    "decode_and_crop_jpeg",
    "decode_bmp",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "decode_webp",
    "encode_jpeg",
    "encode_png",
    "extract_jpeg_shape",
    "is_jpeg",
    "psnr",
    "random_jpeg_quality",
    "resize",
    "resize_with_pad",
    "stateless_random_jpeg_quality",
]
__all__ += [*augment.__all__, *colour.__all__, *geometry.__all__]
