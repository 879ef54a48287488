"""Text: a string."""

from __future__ import annotations

from typing import Any

from penstock.catalog.features.feature import Feature
from penstock.errors import InvalidTypeError
from penstock.io import FixedLenFeature


class Text(Feature):
    r"""A string, stored as UTF-8; it comes back as `bytes`.

    >>> Text().encode_example("Käse", "title")
    b'K\xc3\xa4se'
    """

    tfds_class = "tensorflow_datasets.core.features.text_feature.Text"

    def encode_example(self, value: Any, name: str) -> bytes:
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value)
        if isinstance(value, str):
            return value.encode("utf-8")
        message = f"feature {name!r} must be a str or bytes, got {type(value).__name__}."
        raise InvalidTypeError(message, hint="Convert the value in _generate_examples().")

    def serialized_spec(self) -> FixedLenFeature:
        return FixedLenFeature((), bytes)

    def decode_example(self, stored: Any) -> bytes:
        return bytes(stored)

    def to_json(self) -> dict[str, Any]:
        return {"text": {}}
