"""Properties of columns that are known before a full read.

These are the features of tf.train.Examples, from some records, and the metadata of Hugging Face's `datasets` in
dataset_info.json and in the schema of its files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from penstock.errors import InvalidTypeError, PenstockError
from penstock.io import decode_example


@dataclass
class NotedFeature:
    """The kind of the values of a feature, and their smallest and largest number in a record."""

    kind: str | None = None  # bytes, int64, float32; None: no record has a value
    least: int = 0
    most: int = 0
    records: int = 0

    def text(self, records: int) -> str:
        """Return a description: `int64`, `float32, 3 values`, `bytes, 0 to 5 values, in 7 of 10 records`."""
        if self.least == self.most:
            count = "" if self.most == 1 else f", {self.most} values"
        else:
            count = f", {self.least} to {self.most} values"
        missing = "" if self.records == records else f", in {self.records} of {records} records"
        return f"{self.kind or 'empty'}{count}{missing}"


@dataclass
class NotedFeatures:
    """The features of `records` records."""

    features: dict[str, NotedFeature]
    records: int

    @property
    def lines(self) -> list[str]:
        return [f"{name}: {feature.text(self.records)}" for name, feature in sorted(self.features.items())]


def seen_in(records: Iterable[bytes], most: int | None = None) -> NotedFeatures | None:
    """Return the features of the first `most` records, or of all. None: the first is no tf.train.Example.

    >>> from penstock.io import encode_example
    >>> records = [encode_example({"label": 1, "box": [0.5, 1.5]}), encode_example({"label": 2})]
    >>> seen_in(records).lines
    ['box: float32, 2 values, in 1 of 2 records', 'label: int64']

    Raises InvalidTypeError if the kind of a feature changes between records, and the errors of invalid records.
    """
    found: dict[str, NotedFeature] = {}
    count = 0
    for record in islice(iter(records), most):
        try:
            example = decode_example(record)
        except PenstockError:
            if not count:
                return None
            raise
        if not count and not example:
            return None  # An empty message has no features, so any format could begin like this.
        for name, values in example.items():
            _widen(found.setdefault(name, NotedFeature(least=len(values))), name, values)
        count += 1
    return NotedFeatures(found, count) if count else None


def _widen(feature: NotedFeature, name: str, values: Any) -> None:
    kind = values.dtype.name if isinstance(values, np.ndarray) else "bytes"
    if len(values):
        if feature.kind not in (None, kind):
            message = f"The feature {name!r} is {feature.kind} in one record and {kind} in another."
            raise InvalidTypeError(message, hint="A column has one type; write the records again.")
        feature.kind = kind
    feature.least, feature.most = min(feature.least, len(values)), max(feature.most, len(values))
    feature.records += 1


def features_of(schema: Any) -> Mapping[str, Any]:
    """Return the features in the metadata of an Arrow schema. Empty if another program wrote the metadata."""
    try:
        noted = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        features = noted.get("info", {}).get("features") or {}
    except (ValueError, AttributeError):
        return {}
    return features if isinstance(features, Mapping) else {}


def noted(schema: Any, features: Mapping[str, Any]) -> Any:
    """Return the schema with the features in its metadata, in the form of `datasets`."""
    text = json.dumps({"info": {"features": features}})
    return schema.with_metadata({**(schema.metadata or {}), b"huggingface": text.encode()})


def image_columns(features: Mapping[str, Any]) -> list[str]:
    """Return the names of image columns, which are struct<bytes, path> in the file."""
    return [name for name, feature in features.items() if _type(feature) == "Image"]


def class_names(features: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the names of the classes for each column of labels."""
    return {
        name: list(feature.get("names") or []) for name, feature in features.items() if _type(feature) == "ClassLabel"
    }


def _type(feature: Any) -> Any:
    return feature.get("_type") if isinstance(feature, Mapping) else None
