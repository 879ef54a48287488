"""What Hugging Face's `datasets` notes of columns, in dataset_info.json and in the schema of its Parquet files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


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
