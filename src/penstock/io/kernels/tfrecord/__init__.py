"""The compiled walk over the framing of TFRecord files, and their checksums."""
