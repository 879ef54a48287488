"""PNG, without a package of images: decode, a Block at a time too, and encode."""

from penstock.image.png.decode import decode_png
from penstock.image.png.encode import encode_png

__all__ = ["decode_png", "encode_png"]
