"""Data sets of Hugging Face: the function of `set_transform`, and columns of images that a kernel decodes."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

_ORIENTATION = 274  # the number of this entry in Exif


def is_huggingface(value: Any) -> bool:
    """Return True for a data set of Hugging Face that has an index."""
    kind = type(value)
    return kind.__module__ == "datasets.arrow_dataset" and kind.__name__ == "Dataset"


def transforming(dataset: Any) -> list[Any]:
    """Return the function of `set_transform`, or nothing."""
    found = dataset.format["format_kwargs"].get("transform") if dataset.format["type"] == "custom" else None
    return [] if found is None else [found]


def image_features(dataset: Any) -> list[tuple[str, Any]]:
    """Return the columns of images that are decoded, with their features."""
    kind, features = import_module("datasets").Image, dataset.info.features  # `dataset.features` is a copy
    return [(name, each) for name, each in features.items() if type(each) is kind and each.decode]


def decoder_of(feature: Any) -> Callable[..., Any] | None:
    """Return a function like `decode_example` of a column of images, or None without the package simplejpeg.

    A kernel decodes the usual JPEGs. The image has the class, the pixels and the attributes that Pillow gives it.
    """
    if find_spec("simplejpeg") is None:
        return None

    def decode_example(value: Any, token_per_repo_id: Any = None) -> Any:
        image = _opened(value, feature.mode) if isinstance(value, dict) else None
        return type(feature).decode_example(feature, value, token_per_repo_id) if image is None else image

    return decode_example


def _opened(value: dict[str, Any], mode: str | None) -> Any:
    """Return an image of Pillow that is already decoded, or None if `datasets` has to open it."""
    from penstock.torch.vision.opened import decoded

    pillow = import_module("PIL.Image")
    try:
        content = Path(value["path"]).read_bytes() if value["bytes"] is None else value["bytes"]
        image = pillow.open(BytesIO(content))
        plain = (image.format, image.mode) == ("JPEG", "RGB") and mode in (None, "RGB")
        found = decoded(BytesIO(content)) if plain and _ORIENTATION not in image.getexif() else None
        if found is None:
            return None
        image.im = pillow.fromarray(found[0]).im
    except Exception:  # `datasets` raises it again
        return None
    image.tile, image.fp = [], None  # as after a call of `load`
    return image
