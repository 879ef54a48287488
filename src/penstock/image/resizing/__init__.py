"""Bring images to another size: stretched, with zeros around them, or parts of them."""

from penstock.image.resizing.resize import ResizeMethod, crop_and_resize, resize, resize_with_pad

__all__ = ["ResizeMethod", "crop_and_resize", "resize", "resize_with_pad"]
