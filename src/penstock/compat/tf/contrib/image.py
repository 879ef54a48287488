"""`tf.contrib.image`: rotations and moves of images."""

from __future__ import annotations

from typing import Any

import penstock as ps
from penstock.compat.op import known, through
from penstock.compat.teaching import missing_in

_rotate = through(ps.image.rotate)
_translate = through(ps.image.translate)
_transform = through(ps.image.transform)


@known
def rotate(images: Any, angles: Any, interpolation: str = "NEAREST", name: Any = None) -> Any:
    """Images turned counter-clockwise by angles in radians."""
    return _rotate(images, angles, interpolation.lower())


@known
def translate(images: Any, translations: Any, interpolation: str = "NEAREST", name: Any = None) -> Any:
    """Images moved by (dx, dy)."""
    return _translate(images, translations, interpolation.lower())


@known
def transform(
    images: Any, transforms: Any, interpolation: str = "NEAREST", output_shape: Any = None, name: Any = None
) -> Any:
    """Images under projective maps, eight numbers each."""
    return _transform(images, transforms, interpolation.lower(), output_shape=output_shape)


__getattr__ = missing_in("tf.contrib.image", globals())
