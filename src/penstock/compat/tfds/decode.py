"""`tfds.decode`: what is done with stored features in place of decoding them."""

from penstock.catalog import PartialDecoding, SkipDecoding, make_decoder

__all__ = ["PartialDecoding", "SkipDecoding", "make_decoder"]
