"""Compiled loops over the records of TFRecord files, with their checksums."""
