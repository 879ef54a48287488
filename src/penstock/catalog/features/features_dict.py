"""FeaturesDict: the features of an example by name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from penstock.catalog.features.feature import Feature
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.io import FixedLenFeature, encode_example, parse_single_example


class FeaturesDict(Mapping[str, Feature]):
    """The features of an example by name; stores an example as a tf.train.Example and reads it back.

    >>> import numpy as np
    >>> from penstock.catalog.features import Scalar, Text
    >>> features = FeaturesDict({"title": Text(), "stars": Scalar(dtype=np.int64)})
    >>> record = features.serialize({"title": "Emma", "stars": 5})
    >>> features.deserialize(record)
    {'title': b'Emma', 'stars': np.int64(5)}
    """

    tfds_class = "tensorflow_datasets.core.features.features_dict.FeaturesDict"

    def __init__(self, features: Mapping[str, Feature]) -> None:
        for name, feature in features.items():
            if not isinstance(feature, Feature):
                message = f"feature {name!r} must be a Feature, got {feature!r}."
                raise InvalidTypeError(message, hint="For a number use Scalar(dtype=…), for a string Text().")
        self._features = dict(features)
        self._specs: dict[str, FixedLenFeature] = {
            name: feature.serialized_spec() for name, feature in self._features.items()
        }

    def __getitem__(self, name: str) -> Feature:
        return self._features[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._features)

    def __len__(self) -> int:
        return len(self._features)

    def serialize(self, example: Mapping[str, Any]) -> bytes:
        """Check `example` and return it as a serialized tf.train.Example."""
        if example.keys() != self._features.keys():
            message = f"an example must have the features {sorted(self._features)}, got {sorted(example)}."
            missing, extra = self._features.keys() - example.keys(), example.keys() - self._features.keys()
            hint = "; ".join(
                f"{what}: {', '.join(sorted(names))}"
                for what, names in (("missing", missing), ("extra", extra))
                if names
            )
            raise InvalidArgumentError(message, hint=hint)
        stored = {name: feature.encode_example(example[name], name) for name, feature in self._features.items()}
        return encode_example(stored)

    def deserialize(self, record: bytes) -> dict[str, Any]:
        """The example that `serialize` stored in `record`."""
        stored = parse_single_example(record, self._specs)
        return {name: feature.decode_example(stored[name]) for name, feature in self._features.items()}

    def to_json(self) -> dict[str, Any]:
        """`features.json` as TFDS writes it."""
        entries = {
            name: {"pythonClassName": feature.tfds_class, **feature.to_json()}
            for name, feature in self._features.items()
        }
        return {"pythonClassName": self.tfds_class, "featuresDict": {"features": entries}}

    def save_metadata(self, folder: Path) -> None:
        """Write `features.json`, and the files of the features, into `folder`."""
        (folder / "features.json").write_text(json.dumps(self.to_json(), indent=4), encoding="utf-8")
        for name, feature in self._features.items():
            feature.save_metadata(folder, name)
