"""Resizing of images: stretched, padded with zeros, or cropped."""

from penstock.image.resizing.resize import ResizeMethod, crop_and_resize, resize, resize_with_pad

__all__ = ["ResizeMethod", "crop_and_resize", "resize", "resize_with_pad"]
