"""`tfds.decode`: what is done with stored features in place of decoding them."""

from penstock.catalog import PartialDecoding, SkipDecoding, make_decoder
from penstock.compat.teaching import missing_in

__all__ = ["PartialDecoding", "SkipDecoding", "make_decoder"]

__getattr__ = missing_in("tfds.decode", globals())
