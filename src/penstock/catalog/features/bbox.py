"""BBoxFeature: a box in an image."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from penstock.catalog.features.feature import Doc, shape_json
from penstock.catalog.features.tensor import Tensor
from penstock.errors import InvalidArgumentError

_FORMATS = ("XYXY", "YXYX", "XYWH", "REL_XYXY", "REL_YXYX")


class BBox(NamedTuple):
    """The four sides of a box, as shares of the height and the width of an image.

    Attributes:
        ymin: Upper side.
        xmin: Left side.
        ymax: Lower side.
        xmax: Right side.

    Example:
        >>> BBox(ymin=0.1, xmin=0, ymax=1, xmax=0.5).xmax
        0.5
    """

    ymin: float
    xmin: float
    ymax: float
    xmax: float


class BBoxFeature(Tensor):
    """Feature for a box: a `BBox`, or its four numbers in this order, as float32 of shape (4,).

    Args:
        bbox_format: Meaning of the numbers. In the default format, `"REL_YXYX"`, they are shares of the height and
            width of the image, from 0 to 1.
        doc: A `Documentation`, or a string.

    Example:
        >>> BBoxFeature().encode_example(BBox(ymin=0.1, xmin=0, ymax=1, xmax=0.5), "bbox").tolist()
        [0.10000000149011612, 0.0, 1.0, 0.5]
    """

    tfds_class = "tensorflow_datasets.core.features.bounding_boxes.BBoxFeature"

    def __init__(self, *, bbox_format: str | None = "REL_YXYX", doc: Doc = None) -> None:
        super().__init__(shape=(4,), dtype=np.float32, doc=doc)
        if bbox_format is not None and bbox_format not in _FORMATS:
            message = f"bbox_format must be one of {', '.join(_FORMATS)}, got {bbox_format!r}."
            raise InvalidArgumentError(message, hint="tfds writes REL_YXYX by default.")
        self.bbox_format = bbox_format

    def encode_example(self, value: Any, name: str) -> Any:
        box = self.checked(value, name, (4,))
        relative = self.bbox_format in ("REL_YXYX", "REL_XYXY")
        if relative and not ((box >= 0) & (box <= 1)).all():
            message = f"feature {name!r} must be shares of height and width, from 0 to 1, got {box.tolist()}."
            raise InvalidArgumentError(message, hint="Divide by the size of the image.")
        if self.bbox_format in ("YXYX", "REL_YXYX") and (box[:2] > box[2:]).any():
            message = f"feature {name!r} must have ymin <= ymax and xmin <= xmax, got {box.tolist()}."
            raise InvalidArgumentError(message, hint="The order is ymin, xmin, ymax, xmax.")
        return box

    def to_json(self) -> dict[str, Any]:
        entry = {"shape": shape_json(self.shape), "dtype": "float32"}
        return {"boundingBox": entry | ({"bboxFormat": self.bbox_format} if self.bbox_format else {})}
