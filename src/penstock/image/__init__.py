"""Image functions on numpy arrays, with the names and meaning of tf.image and tf.io."""

from typing import TYPE_CHECKING

from penstock.habits.tables import IMAGE
from penstock.habits.teach import unknown_in
from penstock.image.augment import (
    cutmix,
    cutout,
    draw_bounding_boxes,
    mixup,
    rand_augment,
    random_cutout,
    random_erasing,
    random_resized_crop,
    sample_distorted_bounding_box,
    stateless_random_cutout,
    stateless_random_erasing,
    stateless_random_resized_crop,
    stateless_sample_distorted_bounding_box,
    trivial_augment,
)
from penstock.image.bmp import decode_bmp
from penstock.image.colour import (
    adjust_brightness,
    adjust_contrast,
    adjust_gamma,
    adjust_hue,
    adjust_saturation,
    adjust_sharpness,
    autocontrast,
    equalize,
    grayscale_to_rgb,
    hsv_to_rgb,
    invert,
    normalize,
    per_image_standardization,
    posterize,
    random_brightness,
    random_contrast,
    random_hue,
    random_saturation,
    rgb_to_grayscale,
    rgb_to_hsv,
    solarize,
    stateless_random_brightness,
    stateless_random_contrast,
    stateless_random_hue,
    stateless_random_saturation,
)
from penstock.image.crop_and_resize import crop_and_resize
from penstock.image.decode import decode_image
from penstock.image.dtypes import cast, convert_image_dtype
from penstock.image.encode import encode_jpeg, encode_png
from penstock.image.geometry import (
    central_crop,
    crop_to_bounding_box,
    flip_left_right,
    flip_up_down,
    pad,
    pad_to_bounding_box,
    random_crop,
    random_flip_left_right,
    random_flip_up_down,
    random_rotate,
    resize_with_crop_or_pad,
    rot90,
    rotate,
    shear_x,
    shear_y,
    stateless_random_crop,
    stateless_random_flip_left_right,
    stateless_random_flip_up_down,
    stateless_random_rotate,
    transform,
    translate,
    transpose,
)
from penstock.image.gif import decode_gif
from penstock.image.jpeg import decode_jpeg, extract_jpeg_shape, is_jpeg
from penstock.image.jpeg_crop import decode_and_crop_jpeg
from penstock.image.jpeg_quality import adjust_jpeg_quality, random_jpeg_quality, stateless_random_jpeg_quality
from penstock.image.measures import psnr
from penstock.image.png import decode_png
from penstock.image.resize_with_pad import resize_with_pad
from penstock.image.resizing import ResizeMethod, resize
from penstock.image.webp import decode_webp

__all__ = [
    "ResizeMethod",
    "adjust_brightness",
    "adjust_contrast",
    "adjust_gamma",
    "adjust_hue",
    "adjust_jpeg_quality",
    "adjust_saturation",
    "adjust_sharpness",
    "autocontrast",
    "cast",
    "central_crop",
    "convert_image_dtype",
    "crop_and_resize",
    "crop_to_bounding_box",
    "cutmix",
    "cutout",
    "decode_and_crop_jpeg",
    "decode_bmp",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "decode_webp",
    "draw_bounding_boxes",
    "encode_jpeg",
    "encode_png",
    "equalize",
    "extract_jpeg_shape",
    "flip_left_right",
    "flip_up_down",
    "grayscale_to_rgb",
    "hsv_to_rgb",
    "invert",
    "is_jpeg",
    "mixup",
    "normalize",
    "pad",
    "pad_to_bounding_box",
    "per_image_standardization",
    "posterize",
    "psnr",
    "rand_augment",
    "random_brightness",
    "random_contrast",
    "random_crop",
    "random_cutout",
    "random_erasing",
    "random_flip_left_right",
    "random_flip_up_down",
    "random_hue",
    "random_jpeg_quality",
    "random_resized_crop",
    "random_rotate",
    "random_saturation",
    "resize",
    "resize_with_crop_or_pad",
    "resize_with_pad",
    "rgb_to_grayscale",
    "rgb_to_hsv",
    "rot90",
    "rotate",
    "sample_distorted_bounding_box",
    "shear_x",
    "shear_y",
    "solarize",
    "stateless_random_brightness",
    "stateless_random_contrast",
    "stateless_random_crop",
    "stateless_random_cutout",
    "stateless_random_erasing",
    "stateless_random_flip_left_right",
    "stateless_random_flip_up_down",
    "stateless_random_hue",
    "stateless_random_jpeg_quality",
    "stateless_random_resized_crop",
    "stateless_random_rotate",
    "stateless_random_saturation",
    "stateless_sample_distorted_bounding_box",
    "transform",
    "translate",
    "transpose",
    "trivial_augment",
]


def __dir__() -> list[str]:
    return sorted(__all__)


if not TYPE_CHECKING:  # a type checker knows what is there
    __getattr__ = unknown_in("penstock.image", IMAGE, __all__)
