"""FeaturesDict: features by name, and the record of an example."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from penstock.catalog.features import wire
from penstock.catalog.features.feature import Doc, Feature, Lengths, StoredNest, child_name, documentation, repr_of_dict
from penstock.catalog.features.tensor import Tensor
from penstock.errors import InvalidArgumentError, InvalidTypeError


class FeaturesDict(Feature, Mapping[str, Feature]):
    """Features by name. It serializes an example as a tf.train.Example, and parses it again.

    A dict of features may stand for a FeaturesDict, and a dtype for a scalar of this dtype.

    Args:
        features: Dict from names to features.
        doc: A `Documentation`, or a string.

    Example:
        >>> import numpy as np
        >>> from penstock.catalog.features import Text
        >>> features = FeaturesDict({"title": Text(), "stars": np.int64})
        >>> features
        FeaturesDict({
            'stars': int64,
            'title': Text(shape=(), dtype=string),
        })
        >>> record = features.serialize({"title": "Emma", "stars": 5})
        >>> features.deserialize(record)
        {'title': b'Emma', 'stars': np.int64(5)}
    """

    tfds_class = "tensorflow_datasets.core.features.features_dict.FeaturesDict"

    def __init__(self, features: Mapping[str, Any], *, doc: Doc = None) -> None:
        if not isinstance(features, Mapping):
            message = f"FeaturesDict takes a dict of features, got {type(features).__name__}."
            raise InvalidTypeError(
                message, hint='For example FeaturesDict({"image": Image(), "label": ClassLabel(…)}).'
            )
        self.doc = documentation(doc)
        self._features = {name: to_feature(feature, name) for name, feature in features.items()}
        self._codec: wire.Codec | None = None

    def __getitem__(self, name: str) -> Feature:
        return self._features[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._features)

    def __len__(self) -> int:
        return len(self._features)

    __hash__ = Feature.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return repr_of_dict(type(self).__name__, self._features)

    @property
    def shape(self) -> dict[str, Any]:
        """The shape of each feature, by name.

        >>> FeaturesDict({"x": "float32"}).shape
        {'x': ()}
        """
        return {name: getattr(feature, "shape", None) for name, feature in self._features.items()}

    @property
    def dtype(self) -> dict[str, Any]:
        """The dtype of each feature, by name; `bytes` for strings."""
        return {name: getattr(feature, "dtype", None) for name, feature in self._features.items()}

    # -- records ------------------------------------------------------------------------------------------------------

    def serialize(self, example: Mapping[str, Any]) -> bytes:
        """Check `example` and return it as a serialized tf.train.Example."""
        return self.codec.pack(self.encode_example(example, ""))

    def deserialize(self, record: bytes, decoders: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the example in a `record` from `serialize`. `decoders` replace the decoding of some features."""
        return self.restore(self.codec.unpack(record), 0, decoders)

    @property
    def codec(self) -> wire.Codec:
        """The codec of examples in records, made on first use."""
        if self._codec is None:
            self._codec = wire.Codec(self.stored())
        return self._codec

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_codec": None}

    def part(self, wanted: Any, name: str = "") -> FeaturesDict:
        """Return the wanted features: names, or a dict from names to True or to the wanted part of a feature."""
        if isinstance(wanted, list | tuple | set | frozenset):
            wanted = dict.fromkeys(wanted, True)
        if not isinstance(wanted, Mapping):
            message = f"what to read must be names of features, or a dict of them, got {wanted!r}."
            raise InvalidTypeError(message, hint='For example PartialDecoding({"image": True, "objects": {"bbox"}}).')
        found: dict[str, Feature] = {}
        for key, inner in wanted.items():
            if inner is False:
                continue
            if key not in self._features:
                message = f"there is no feature {f'{name}/{key}' if name else key!r} to read."
                raise InvalidArgumentError(message, hint=f"The features are {', '.join(map(repr, self._features))}.")
            feature = self._features[key]
            found[key] = feature if inner is True or isinstance(inner, Feature) else feature.part(inner, key)
        return FeaturesDict(found)

    # -- as a feature -------------------------------------------------------------------------------------------------

    def spec(self, lengths: Lengths = ()) -> Any:
        found = {name: feature.spec(lengths) for name, feature in self._features.items()}
        return None if None in found.values() else found

    def encode_example(self, value: Any, name: str) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            message = f"{f'feature {name!r}' if name else 'an example'} must be a dict, got {type(value).__name__}."
            raise InvalidTypeError(message, hint=f"The features are {', '.join(map(repr, self._features))}.")
        if value.keys() != self._features.keys():
            what = f"feature {name!r}" if name else "an example"
            message = f"{what} must have the features {sorted(self._features)}, got {sorted(value)}."
            missing, extra = self._features.keys() - value.keys(), value.keys() - self._features.keys()
            hint = "; ".join(
                f"{word}: {', '.join(sorted(names))}"
                for word, names in (("missing", missing), ("extra", extra))
                if names
            )
            raise InvalidArgumentError(message, hint=hint)
        return {
            key: feature.encode_example(value[key], f"{name}/{key}" if name else key)
            for key, feature in self._features.items()
        }

    def stored(self) -> StoredNest:
        return {name: feature.stored() for name, feature in self._features.items()}

    def decode_example(self, stored: Any) -> dict[str, Any]:
        return self.restore(stored, 0)

    def restore(self, stored: Any, rank: int, decoders: Any = None) -> Any:
        if decoders is not None and not isinstance(decoders, Mapping):
            return super().restore(stored, rank, decoders)
        if not decoders:
            return {name: feature.restore(stored[name], rank) for name, feature in self._features.items()}
        strange = [name for name in decoders if name not in self._features]
        if strange:
            message = f"decoders name {strange[0]!r}, which is not a feature."
            raise InvalidArgumentError(message, hint=f"The features are {', '.join(map(repr, self._features))}.")
        return {
            name: feature.restore(stored[name], rank, decoders.get(name)) for name, feature in self._features.items()
        }

    def to_json(self) -> dict[str, Any]:
        return {"featuresDict": {"features": {name: feature.entry() for name, feature in self._features.items()}}}

    def save_metadata(self, folder: Path, name: str = "") -> None:
        """Write the files of the features, and for the outermost dict `features.json`, into `folder`."""
        if not name:
            content = json.dumps(self.entry(), indent=4, sort_keys=True)
            (folder / "features.json").write_text(content, encoding="utf-8")
        for key, feature in self._features.items():
            feature.save_metadata(folder, child_name(name, key))

    def load_metadata(self, folder: Path, name: str = "") -> None:
        for key, feature in self._features.items():
            feature.load_metadata(folder, child_name(name, key))


def to_feature(value: Any, name: str = "") -> Feature:
    """Return a feature for a feature, a dict of features, or the dtype of a scalar."""
    if isinstance(value, Feature):
        return value
    if isinstance(value, Mapping):
        return FeaturesDict(value)
    try:
        return Tensor(shape=(), dtype=value)
    except TypeError:
        message = f"feature {name!r} must be a Feature, got {value!r}."
        raise InvalidTypeError(message, hint="For a number use Scalar(dtype=…), for a string Text().") from None
