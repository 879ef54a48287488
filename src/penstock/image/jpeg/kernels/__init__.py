"""JPEG decoding without the GIL, a Block at a time."""
