"""PNG without an image package: decoding, also of a Block at once, and encoding."""
