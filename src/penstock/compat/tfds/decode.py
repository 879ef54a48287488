"""`tfds.decode`: decoders that replace the decoding of stored features."""

from typing import Any

from penstock import catalog
from penstock.catalog import PartialDecoding, SkipDecoding
from penstock.compat.calling import called
from penstock.compat.teaching import missing_in

__all__ = ["PartialDecoding", "SkipDecoding", "make_decoder"]


def make_decoder(output_dtype: Any = None) -> Any:
    """Decorate a function of `(stored value, feature)` on tensors; `decoders={"image": name()}` uses it."""
    return lambda function: catalog.make_decoder(output_dtype)(called(function))


__getattr__ = missing_in("tfds.decode", globals())
