"""What is known of columns before they are read.

That is the features of tf.train.Examples, found by looking at some, and what Hugging Face's `datasets` notes in
dataset_info.json and in the schema of its files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from penstock.errors import PenstockError
from penstock.io import decode_example


@dataclass
class Feature:
    """The kind of a feature's values, and the least and the most of them in a record."""

    kind: str | None = None  # bytes, int64, float32; None where no record had a value
    least: int = 0
    most: int = 0
    records: int = 0

    def text(self, records: int) -> str:
        """`int64`, `float32, 3 values`, `bytes, 0 to 5 values, in 7 of 10 records`."""
        if self.least == self.most:
            count = "" if self.most == 1 else f", {self.most} values"
        else:
            count = f", {self.least} to {self.most} values"
        missing = "" if self.records == records else f", in {self.records} of {records} records"
        return f"{self.kind or 'empty'}{count}{missing}"


@dataclass
class Seen:
    """The features of `records` records."""

    features: dict[str, Feature]
    records: int

    @property
    def lines(self) -> list[str]:
        return [f"{name}: {feature.text(self.records)}" for name, feature in sorted(self.features.items())]


def seen_in(records: Iterable[bytes], most: int | None = None) -> Seen | None:
    """What the features of the first `most` records are, or of all; None where the first is no tf.train.Example.

    >>> from penstock.io import encode_example
    >>> records = [encode_example({"label": 1, "box": [0.5, 1.5]}), encode_example({"label": 2})]
    >>> seen_in(records).lines
    ['box: float32, 2 values, in 1 of 2 records', 'label: int64']

    Raises InvalidTypeError for a feature that holds values of another kind later, and what is wrong with a record.
    """
    found: dict[str, Feature] = {}
    count = 0
    for record in islice(iter(records), most):
        try:
            example = decode_example(record)
        except PenstockError:
            if not count:
                return None
            raise
        if not count and not example:
            return None  # no features: any empty message would do
        for name, values in example.items():
            _widen(found.setdefault(name, Feature(least=len(values))), name, values)
        count += 1
    return Seen(found, count) if count else None


def _widen(feature: Feature, name: str, values: Any) -> None:
    from penstock.errors import InvalidTypeError

    kind = values.dtype.name if isinstance(values, np.ndarray) else "bytes"
    if len(values):
        if feature.kind not in (None, kind):
            message = f"The feature {name!r} is {feature.kind} in one record and {kind} in another."
            raise InvalidTypeError(message, hint="A column has one type; write the records again.")
        feature.kind = kind
    feature.least, feature.most = min(feature.least, len(values)), max(feature.most, len(values))
    feature.records += 1


def features_of(schema: Any) -> Mapping[str, Any]:
    """The features that the metadata of an Arrow schema holds; none where it was written by somebody else."""
    try:
        noted = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        features = noted.get("info", {}).get("features") or {}
    except (ValueError, AttributeError):
        return {}
    return features if isinstance(features, Mapping) else {}


def noted(schema: Any, features: Mapping[str, Any]) -> Any:
    """The schema with the features in its metadata, as `datasets` writes them."""
    text = json.dumps({"info": {"features": features}})
    return schema.with_metadata({**(schema.metadata or {}), b"huggingface": text.encode()})


def image_columns(features: Mapping[str, Any]) -> list[str]:
    """The columns of images: struct<bytes, path> in the file."""
    return [name for name, feature in features.items() if _type(feature) == "Image"]


def class_names(features: Mapping[str, Any]) -> dict[str, list[str]]:
    """The names of the classes of each column of labels."""
    return {
        name: list(feature.get("names") or []) for name, feature in features.items() if _type(feature) == "ClassLabel"
    }


def _type(feature: Any) -> Any:
    return feature.get("_type") if isinstance(feature, Mapping) else None
