"""Functions that move pixels: flips, crops, paddings, rotations. Values are copied or blended."""

from penstock.image.geometry.affine import random_rotate, rotate, shear_x, shear_y, stateless_random_rotate, translate
from penstock.image.geometry.crops import (
    central_crop,
    crop_to_bounding_box,
    pad,
    pad_to_bounding_box,
    random_crop,
    resize_with_crop_or_pad,
    stateless_random_crop,
)
from penstock.image.geometry.flips import (
    flip_left_right,
    flip_up_down,
    random_flip_left_right,
    random_flip_up_down,
    rot90,
    stateless_random_flip_left_right,
    stateless_random_flip_up_down,
    transpose,
)
from penstock.image.geometry.projective import transform

__all__ = [
    "central_crop",
    "crop_to_bounding_box",
    "flip_left_right",
    "flip_up_down",
    "pad",
    "pad_to_bounding_box",
    "random_crop",
    "random_flip_left_right",
    "random_flip_up_down",
    "random_rotate",
    "resize_with_crop_or_pad",
    "rot90",
    "rotate",
    "shear_x",
    "shear_y",
    "stateless_random_crop",
    "stateless_random_flip_left_right",
    "stateless_random_flip_up_down",
    "stateless_random_rotate",
    "transform",
    "translate",
    "transpose",
]
