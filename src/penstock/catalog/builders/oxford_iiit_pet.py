"""OxfordIIITPet: 7,349 photographs of cats and dogs, with their breeds, outlines and heads."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from penstock import image
from penstock.catalog import features
from penstock.catalog.builder import Each, Examples
from penstock.catalog.builders.published import Published, labels
from penstock.catalog.download.manager import DownloadManager
from penstock.errors import DataLossError

# Files of other formats, or with decoding warnings.
_RECODED = (
    "beagle_116 chihuahua_121 Abyssinian_5 Abyssinian_34 Egyptian_Mau_14 Egyptian_Mau_139 Egyptian_Mau_145 "
    "Egyptian_Mau_156 Egyptian_Mau_167 Egyptian_Mau_177 Egyptian_Mau_186 Egyptian_Mau_191"
)
_NO_BOX = features.BBox(0.0, 0.0, 0.0, 0.0)
_LISTS = {"train": "trainval.txt", "test": "test.txt"}
_JPEG = b"\xff\xd8\xff"


class OxfordIIITPet(Published):
    """Photographs of cats and dogs of 37 breeds: 3,680 for training, with boxes of the heads, and 3,669 for test.

    The twelve files that tfds lists, and any other file that is not a JPEG, are encoded as JPEG again.
    """

    def _features(self) -> Mapping[str, features.Feature]:
        return {
            "file_name": features.Text(),
            "head_bbox": features.BBoxFeature(),
            "image": features.Image(encoding_format="jpeg"),
            "label": features.ClassLabel(names=labels("oxford_iiit_pet")),
            "segmentation_mask": features.Image(shape=(None, None, 1), use_colormap=True),
            "species": features.ClassLabel(names=("Cat", "Dog")),
        }

    def _split_generators(self, dl_manager: DownloadManager) -> Mapping[str, Examples]:
        urls = {name: f"{self.URL}{name}.tar.gz" for name in ("images", "annotations")}
        folders = {name: folder / name for name, folder in dl_manager.download_and_extract(urls).items()}
        return {
            split: Each(_lines(folders["annotations"] / name), partial(_pet, folders["images"], folders["annotations"]))
            for split, name in _LISTS.items()
        }


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def _pet(images: Path, annotations: Path, line: str) -> tuple[str, dict[str, Any]]:
    """Return the example of a line such as "Abyssinian_100 1 1 1": file, breed, species, number."""
    name, breed, species, _ = line.split()
    content = (images / f"{name}.jpg").read_bytes()
    if name in _RECODED.split() or not content.startswith(_JPEG):
        pixels = image.decode_image(content, expand_animations=False)
        pixels = pixels[:, :, :3] if pixels.shape[2] == 4 else pixels  # JPEG has no transparency
        content = image.encode_jpeg(np.ascontiguousarray(pixels), quality=95)
    return f"{name}.jpg", {
        "file_name": f"{name}.jpg",
        "head_bbox": _head(annotations / "xmls" / f"{name}.xml"),
        "image": content,
        "label": int(breed) - 1,
        "segmentation_mask": annotations / "trimaps" / f"{name}.png",
        "species": int(species) - 1,
    }


def _head(path: Path) -> features.BBox:
    """Return the box in an annotation, or an empty box if there is no annotation, as for the test split."""
    if not path.is_file():
        return _NO_BOX
    try:
        root = ET.parse(path).getroot()
        width, height = (float(root.findtext(f"size/{side}", "")) for side in ("width", "height"))
        sides = {name: float(root.findtext(f"object/bndbox/{name}", "")) for name in ("ymin", "xmin", "ymax", "xmax")}
    except (ET.ParseError, ValueError) as error:
        message = f"an annotation cannot be read ({error})."
        hint = "Delete the folder that it is in, and it is unpacked again."
        raise DataLossError(message, hint=hint, file=str(path)) from error
    return features.BBox(sides["ymin"] / height, sides["xmin"] / width, sides["ymax"] / height, sides["xmax"] / width)
