"""What the values of an example are, how they are stored in a record and how they come back."""

from penstock.catalog.features.class_label import ClassLabel
from penstock.catalog.features.feature import Feature
from penstock.catalog.features.features_dict import FeaturesDict
from penstock.catalog.features.image import Image
from penstock.catalog.features.tensor import Scalar, Tensor
from penstock.catalog.features.text import Text

__all__ = ["ClassLabel", "Feature", "FeaturesDict", "Image", "Scalar", "Tensor", "Text"]
