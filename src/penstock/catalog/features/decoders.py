"""What is done with stored values in place of decoding them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from penstock.catalog.features.feature import Feature, rows_of


class SkipDecoding:
    """Leave a feature as it is stored: of an image the bytes of its file.

    `load(…, decoders={"image": SkipDecoding()})`. For `decoders` itself, whole records come, as bytes.
    """

    def of(self, feature: Feature) -> SkipDecoding:
        return self

    def decode_example(self, stored: Any) -> Any:
        return stored

    def decode_batch(self, stored: Any) -> Any:
        return stored


class _Decoding:
    """A function in place of a feature's own decoding."""

    def __init__(self, function: Callable[..., Any], feature: Feature) -> None:
        self._function, self._feature = function, feature

    def decode_example(self, stored: Any) -> Any:
        return self._function(stored, self._feature)

    def decode_batch(self, stored: Any) -> Any:
        return np.stack([np.asarray(self.decode_example(one)) for one in rows_of(stored)])


class Decoder:
    """A function of `(stored value, feature)` in place of a feature's own decoding; `make_decoder` makes one.

    >>> @make_decoder()
    ... def length(stored, feature):
    ...     return len(stored)
    >>> length.of(None).decode_example(b"abc")
    3
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *args: Any) -> Decoder:
        """The decoder whose function gets `args`, too; tfds asks for parentheses."""
        return Decoder(lambda stored, feature: self._function(stored, feature, *args))

    def of(self, feature: Any) -> _Decoding:
        return _Decoding(self._function, feature)


def make_decoder(output_dtype: Any = None) -> Callable[[Callable[..., Any]], Decoder]:
    """Decorates a function of `(stored value, feature)`, so that it can stand among `decoders`.

    `output_dtype` is taken for tfds's sake: what the function gives says it.
    """

    def wrap(function: Callable[..., Any]) -> Decoder:
        return Decoder(function)

    return wrap


class PartialDecoding:
    """Read only these features: a list or set of names, or a dict of names to True, or to such a dict.

    Names in a sequence of dicts are given as those in a dict. `decoders` are for what is left.

    >>> PartialDecoding({"image": True, "objects": {"bbox"}}).wanted["objects"]
    {'bbox'}
    """

    def __init__(self, features: Any, decoders: Mapping[str, Any] | None = None) -> None:
        self.wanted, self.decoders = features, decoders

    def of(self, features: Any) -> Any:
        """The part of `features` that is wanted."""
        return features.part(self.wanted)
