"""Makes features from the entries of tfds's `features.json`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from penstock.catalog.features.audio import Audio
from penstock.catalog.features.bbox import BBoxFeature
from penstock.catalog.features.class_label import ClassLabel
from penstock.catalog.features.feature import Documentation, Feature, StoredNest, shape_of_json
from penstock.catalog.features.features_dict import FeaturesDict
from penstock.catalog.features.image import Image, LabeledImage
from penstock.catalog.features.sequence import Dataset, Sequence, Video
from penstock.catalog.features.tensor import Scalar, Tensor, Text
from penstock.catalog.features.translation import Translation, TranslationVariableLanguages
from penstock.errors import DataLossError, UnimplementedError

FILE_NAME = "features.json"

# Makes a user's own feature from its entry in `features.json` without the class name.
Reader = Callable[[dict[str, Any]], Feature]
_OWN: dict[str, Reader] = {}


def register(tfds_class: str, reader: Reader) -> None:
    """Register a function that creates a feature of a class of your own from its entry in `features.json`.

    Args:
        tfds_class: Name of the class in the entry.
        reader: A function of the entry that returns a feature.

    Example:
        >>> register("my_package.Ratio", lambda entry: Scalar("float32"))
        >>> type(feature_of("ratio", {"pythonClassName": "my_package.Ratio", "jsonFeature": {"json": "{}"}})).__name__
        'Scalar'
    """
    _OWN[tfds_class] = reader


def load_features(folder: Path) -> FeaturesDict:
    """Return the features of `features.json` in `folder`, with the names of their classes.

    Raises:
        DataLossError: If the file is missing, or does not have the format of tfds.
    """
    path = folder / FILE_NAME
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
        features = feature_of("", entry)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"{FILE_NAME} does not describe features ({type(error).__name__}: {error})."
        raise DataLossError(message, hint="Prepare the data set again.", file=str(path)) from error
    if not isinstance(features, FeaturesDict):
        message = f"{FILE_NAME} describes a {type(features).__name__} where a dict of features is expected."
        raise DataLossError(message, hint="Only data sets whose examples are dicts are read.", file=str(path))
    features.load_metadata(folder, "")
    return features


def feature_of(name: str, entry: Mapping[str, Any]) -> Feature:
    """Return the feature of an entry of `features.json`, or an `UnknownFeature` for an unknown kind."""
    class_name = str(entry.get("pythonClassName") or entry.get("type") or "")
    if class_name in _OWN:
        return _OWN[class_name]({key: value for key, value in entry.items() if key != "pythonClassName"})
    if "content" in entry:  # the format of tfds before 4.5
        entry = _of_old(entry)
    short = class_name.rpartition(".")[2]
    make = _MAKERS.get(short)
    kind = _KINDS.get(short, "")
    if make is None or kind not in entry or not class_name.startswith("tensorflow_datasets."):
        return UnknownFeature(name, dict(entry))
    made = make(name, entry[kind])
    made.doc = Documentation(entry.get("description") or None, entry.get("valueRange") or None)
    return made


_KINDS = {"ClassLabel": "classLabel", "Text": "text", "Image": "image", "LabeledImage": "image", "Video": "video"}
_KINDS |= {"Audio": "audio", "BBoxFeature": "boundingBox", "Sequence": "sequence", "Dataset": "sequence"}
_KINDS |= {"Translation": "translation", "TranslationVariableLanguages": "translation"}
_KINDS |= {"FeaturesDict": "featuresDict", "Tensor": "tensor", "Scalar": "tensor"}


def _of_old(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Convert an entry of the older format, {"type", "content", "proto_cls"}, to the newer one."""
    content = entry["content"]
    content = json.loads(content) if isinstance(content, str) else content
    short = str(entry["type"]).rpartition(".")[2]
    if not entry.get("proto_cls"):
        content = {_camel(key): value for key, value in content.items()} if short != "FeaturesDict" else content
        if isinstance(content.get("shape"), list):
            content["shape"] = {"dimensions": [-1 if size is None else size for size in content["shape"]]}
        if short == "FeaturesDict":
            content = {"features": content}
    return {"pythonClassName": entry["type"], _KINDS.get(short, "jsonFeature"): content}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _features(name: str, entry: Any) -> Feature:
    inner = entry.get("features", {})
    return FeaturesDict({key: feature_of(f"{name}/{key}" if name else key, value) for key, value in inner.items()})


def _sequence(kind: type[Sequence]) -> Callable[[str, Any], Feature]:
    def make(name: str, entry: Any) -> Feature:
        length = int(-1 if entry.get("length") is None else entry["length"]) if "length" in entry else 0
        return kind(feature_of(name, entry["feature"]), length=None if length < 0 else length)

    return make


def _arguments(entry: Any, *names: str) -> dict[str, Any]:
    """Return the arguments of these names that an entry has. Entries leave out defaults."""
    found = {name: entry[_camel(name)] for name in names if entry.get(_camel(name))}
    return found | ({"shape": shape_of_json(found["shape"])} if "shape" in found else {})


_IMAGE = ("shape", "dtype", "encoding_format")


def _video(name: str, entry: Any) -> Feature:
    return Video(**{"encoding_format": None, **_arguments(entry, *_IMAGE, "use_colormap")})


def _labeled_image(name: str, entry: Any) -> Feature:
    return LabeledImage(**_arguments(entry, *_IMAGE), labels=int(entry.get("label", {}).get("numClasses", 0)))


def _audio(name: str, entry: Any) -> Feature:
    given = {"shape": (), **_arguments(entry, "file_format", "shape", "dtype", "encoding", "lazy_decode")}
    return Audio(**given, sample_rate=int(entry.get("sampleRate") or 0) or None)


def _tensor(name: str, entry: Any) -> Feature:
    return Tensor(**{"shape": (), "dtype": entry["dtype"], **_arguments(entry, "shape", "encoding", "optional")})


_MAKERS: dict[str, Callable[[str, Any], Feature]] = {
    "FeaturesDict": _features,
    "Sequence": _sequence(Sequence),
    "Dataset": _sequence(Dataset),
    "Image": lambda name, entry: Image(**_arguments(entry, *_IMAGE, "use_colormap")),
    "LabeledImage": _labeled_image,
    "Video": _video,
    "Audio": _audio,
    "Tensor": _tensor,
    "Scalar": lambda name, entry: Scalar(entry["dtype"], optional=bool(entry.get("optional"))),
    "Text": lambda name, entry: Text(),
    "ClassLabel": lambda name, entry: ClassLabel(num_classes=int(entry.get("numClasses", 0))),
    "BBoxFeature": lambda name, entry: BBoxFeature(bbox_format=entry.get("bboxFormat") or None),
    "Translation": lambda name, entry: Translation(entry.get("languages", [])),
    "TranslationVariableLanguages": lambda name, entry: TranslationVariableLanguages(entry.get("languages")),
}


class UnknownFeature(Feature):
    """A feature of an unknown kind. It raises an error when its value is used."""

    def __init__(self, name: str, entry: dict[str, Any]) -> None:
        self.name, self.tfds_class, self._entry = name, str(entry.get("pythonClassName") or entry.get("type")), entry

    def __repr__(self) -> str:
        return f"UnknownFeature({self.tfds_class})"

    def _refuse(self) -> NoReturn:
        message = f"feature {self.name!r} is a {self.tfds_class}, which is not known here."
        hint = (
            "Read the other features with decoders=PartialDecoding([…]), or whole records, as bytes, with "
            "decoders=SkipDecoding(); or name the class that knows it with features.register(…)."
        )
        raise UnimplementedError(message, hint=hint)

    def encode_example(self, value: Any, name: str) -> Any:
        self._refuse()

    def stored(self) -> StoredNest:
        self._refuse()

    def decode_example(self, stored: Any) -> Any:
        self._refuse()

    def to_json(self) -> dict[str, Any]:
        return {key: value for key, value in self._entry.items() if key != "pythonClassName"}
