"""Image functions on numpy arrays, with the names and meaning of tf.image and tf.io."""

from penstock.image.decode import decode_image
from penstock.image.dtypes import cast, convert_image_dtype
from penstock.image.encode import encode_jpeg, encode_png
from penstock.image.flips import flip_left_right, flip_up_down
from penstock.image.jpeg import decode_jpeg, extract_jpeg_shape
from penstock.image.png import decode_png
from penstock.image.resizing import ResizeMethod, resize

__all__ = [
    "ResizeMethod",
    "cast",
    "convert_image_dtype",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "encode_jpeg",
    "encode_png",
    "extract_jpeg_shape",
    "flip_left_right",
    "flip_up_down",
    "resize",
]
