"""Augmentations: random parts, covered rectangles, mixed batches, random operations."""

from penstock.image.augment.covering import (
    cutout,
    random_cutout,
    random_erasing,
    stateless_random_cutout,
    stateless_random_erasing,
)
from penstock.image.augment.drawing import draw_bounding_boxes
from penstock.image.augment.mixing import cutmix, mixup
from penstock.image.augment.policies import rand_augment, trivial_augment
from penstock.image.augment.random_parts import (
    random_resized_crop,
    sample_distorted_bounding_box,
    stateless_random_resized_crop,
    stateless_sample_distorted_bounding_box,
)

__all__ = [
    "cutmix",
    "cutout",
    "draw_bounding_boxes",
    "mixup",
    "rand_augment",
    "random_cutout",
    "random_erasing",
    "random_resized_crop",
    "sample_distorted_bounding_box",
    "stateless_random_cutout",
    "stateless_random_erasing",
    "stateless_random_resized_crop",
    "stateless_sample_distorted_bounding_box",
    "trivial_augment",
]
