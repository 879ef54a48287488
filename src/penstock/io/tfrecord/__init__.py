"""TFRecord files: writing, reading in chunks, an index for random access."""
