"""Text: a string."""

from __future__ import annotations

from typing import Any

from penstock.catalog.features.tensor import Tensor


class Text(Tensor):
    r"""A string, stored as UTF-8; it comes back as `bytes`.

    >>> Text().encode_example("Käse", "title")
    b'K\xc3\xa4se'
    """

    tfds_class = "tensorflow_datasets.core.features.text_feature.Text"

    def __init__(self) -> None:
        super().__init__(shape=(), dtype=bytes)

    def to_json(self) -> dict[str, Any]:
        return {"text": {}}
