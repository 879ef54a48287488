"""Decoders that replace the decoding of stored values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from penstock.catalog.features.feature import Feature, rows_of


class SkipDecoding:
    """Decoder that returns a feature as it is stored, such as the bytes of an image file.

    In place of `decoders` itself, it returns whole records as bytes.

    Example:
        >>> ds = load("mnist", split="train", decoders={"image": SkipDecoding()})  # doctest: +SKIP
    """

    def of(self, feature: Feature) -> SkipDecoding:
        return self

    def decode_example(self, stored: Any) -> Any:
        return stored

    def decode_batch(self, stored: Any) -> Any:
        return stored


class _Decoding:
    """A function that replaces the decoding of a feature."""

    def __init__(self, function: Callable[..., Any], feature: Feature) -> None:
        self._function, self._feature = function, feature

    def decode_example(self, stored: Any) -> Any:
        return self._function(stored, self._feature)

    def decode_batch(self, stored: Any) -> Any:
        return np.stack([np.asarray(self.decode_example(one)) for one in rows_of(stored)])


class Decoder:
    """A function of `(stored value, feature)` that replaces the decoding of a feature. See `make_decoder`.

    >>> @make_decoder()
    ... def length(stored, feature):
    ...     return len(stored)
    >>> length.of(None).decode_example(b"abc")
    3
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *args: Any) -> Decoder:
        """Return a decoder whose function also gets `args`. tfds requires the call."""
        return Decoder(lambda stored, feature: self._function(stored, feature, *args))

    def of(self, feature: Any) -> _Decoding:
        return _Decoding(self._function, feature)


def make_decoder(output_dtype: Any = None) -> Callable[[Callable[..., Any]], Decoder]:
    """Return a decorator for functions of `(stored value, feature)` that are used as decoders.

    Args:
        output_dtype: Accepted for tfds's sake. The dtype is that of the results.

    Returns:
        The decorator.

    Example:
        >>> from penstock.catalog import make_decoder
        >>> @make_decoder()
        ... def size_in_bytes(stored, feature):
        ...     return len(stored)
    """

    def wrap(function: Callable[..., Any]) -> Decoder:
        return Decoder(function)

    return wrap


class PartialDecoding:
    """Decoders that read some features only.

    Args:
        features: Names of the features: a list or set, or a dict from names to True, or to such a dict for nested
            features.
        decoders: Decoders of these features.

    Example:
        >>> PartialDecoding({"image": True, "objects": {"bbox"}}).wanted["objects"]
        {'bbox'}
    """

    def __init__(self, features: Any, decoders: Mapping[str, Any] | None = None) -> None:
        self.wanted, self.decoders = features, decoders

    def of(self, features: Any) -> Any:
        """Return the wanted part of `features`."""
        return features.part(self.wanted)
