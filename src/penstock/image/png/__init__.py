"""PNG without an image package: decoding, also of a Block at once, and encoding."""

from penstock.image.png.decode import decode_png
from penstock.image.png.encode import encode_png

__all__ = ["decode_png", "encode_png"]
