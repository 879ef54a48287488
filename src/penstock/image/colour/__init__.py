"""Colour functions: brightness, contrast, saturation, hue, gamma, colour spaces, standardisation, levels."""

from penstock.image.colour.adjust import (
    adjust_brightness,
    adjust_contrast,
    adjust_hue,
    adjust_saturation,
    adjust_sharpness,
    random_brightness,
    random_contrast,
    random_hue,
    random_saturation,
    stateless_random_brightness,
    stateless_random_contrast,
    stateless_random_hue,
    stateless_random_saturation,
)
from penstock.image.colour.levels import adjust_gamma, autocontrast, equalize, invert, posterize, solarize
from penstock.image.colour.spaces import grayscale_to_rgb, hsv_to_rgb, rgb_to_grayscale, rgb_to_hsv
from penstock.image.colour.standardize import normalize, per_image_standardization

__all__ = [
    "adjust_brightness",
    "adjust_contrast",
    "adjust_gamma",
    "adjust_hue",
    "adjust_saturation",
    "adjust_sharpness",
    "autocontrast",
    "equalize",
    "grayscale_to_rgb",
    "hsv_to_rgb",
    "invert",
    "normalize",
    "per_image_standardization",
    "posterize",
    "random_brightness",
    "random_contrast",
    "random_hue",
    "random_saturation",
    "rgb_to_grayscale",
    "rgb_to_hsv",
    "solarize",
    "stateless_random_brightness",
    "stateless_random_contrast",
    "stateless_random_hue",
    "stateless_random_saturation",
]
