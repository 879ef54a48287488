"""The features of examples: their values, their form in a record and their decoding. The names are those of tfds."""

from penstock.catalog.features.audio import Audio
from penstock.catalog.features.bbox import BBox, BBoxFeature
from penstock.catalog.features.class_label import ClassLabel
from penstock.catalog.features.feature import Documentation, Feature
from penstock.catalog.features.features_dict import FeaturesDict
from penstock.catalog.features.from_json import register
from penstock.catalog.features.image import Image, LabeledImage
from penstock.catalog.features.sequence import Dataset, Sequence, Video
from penstock.catalog.features.tensor import Scalar, Tensor, Text
from penstock.catalog.features.translation import Translation, TranslationVariableLanguages

__all__ = [
    "Audio",
    "BBox",
    "BBoxFeature",
    "ClassLabel",
    "Dataset",
    "Documentation",
    "Feature",
    "FeaturesDict",
    "Image",
    "LabeledImage",
    "Scalar",
    "Sequence",
    "Tensor",
    "Text",
    "Translation",
    "TranslationVariableLanguages",
    "Video",
    "register",
]


def __dir__() -> list[str]:
    return sorted(__all__)
