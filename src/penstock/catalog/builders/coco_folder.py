"""CocoFolder: images with boxes around objects, in the layout of COCO."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from penstock.catalog import features
from penstock.catalog.data_dir import Given
from penstock.catalog.in_place import Items
from penstock.catalog.info import DatasetInfo
from penstock.errors import DataLossError, InvalidArgumentError, NotFoundError

_OTHER_TASKS = ("captions_", "panoptic_", "person_keypoints_", "stuff_")
_BESIDE = ("_annotations.coco.json", "annotations.json")  # names of a file of annotations in the folder of its images
_LAYOUTS = (
    "annotations/instances_<split>.json with the images in <split>/ or images/<split>/, or "
    "<split>/_annotations.coco.json with the images beside it"
)


class _Picture(NamedTuple):
    path: str
    filename: str
    number: int
    objects: tuple[tuple[int, int, tuple[float, float, float, float], int, bool], ...]


class CocoFolder(Items):
    """Images and the JSON that describes them, by split: `annotations/instances_train2017.json` and `train2017/`.

    The layout `train/_annotations.coco.json`, with the images in the same folder, is read too. Examples have the
    features of tfds's coco: "image", "image/filename", "image/id" and "objects". Each object has "id", "area", "bbox",
    "label" and "is_crowd". Objects are in the order of their ids. Boxes are fractions of the height and width of the
    image, clipped to the image. A split described by `image_info_<split>.json`, such as a test split, has no objects.
    Files for other tasks, such as captions, are ignored.

    Raises:
        NotFoundError: If there is no such JSON, or if the images are in none of the expected folders.
        DataLossError: If a JSON does not have COCO's format.
    """

    def __init__(self, data_dir: Given = None) -> None:
        super().__init__(data_dir)
        self._names: list[str] = []
        self._splits: dict[str, list[_Picture]] = {}
        for split, path in sorted(_annotations(self._folder).items()):
            names, pictures = _split(self._folder, split, path)
            if self._names and names and names != self._names:
                message = f"the classes in {path.name} are not those of the other splits."
                hint = "Give all files the same categories, in the same order."
                raise InvalidArgumentError(message, hint=hint, file=str(path))
            self._names = names or self._names
            self._splits[split] = pictures

    def _info(self) -> DatasetInfo:
        objects = {
            "area": np.int64,
            "bbox": features.BBoxFeature(),
            "id": np.int64,
            "is_crowd": np.bool_,
            "label": features.ClassLabel(names=self._names),
        }
        return DatasetInfo(
            features=features.FeaturesDict(
                {
                    "image": features.Image(),
                    "image/filename": features.Text(),
                    "image/id": np.int64,
                    "objects": features.Sequence(objects),
                }
            ),
            description="Images with boxes around things.",
        )

    def _items(self) -> Mapping[str, Sequence[_Picture]]:
        return self._splits

    def _function(self) -> Callable[[_Picture], Mapping[str, Any]]:
        return _example


def _example(picture: _Picture) -> dict[str, Any]:
    return {
        "image": picture.path,
        "image/filename": picture.filename,
        "image/id": picture.number,
        "objects": [
            {"area": area, "bbox": box, "id": number, "is_crowd": crowd, "label": label}
            for number, area, box, label, crowd in picture.objects
        ],
    }


def _annotations(folder: Path) -> dict[str, Path]:
    """Return the file that describes each split."""
    found: dict[str, Path] = {}
    for path in sorted([*folder.glob("annotations/*.json"), *folder.glob("*.json"), *folder.glob("*/*.json")]):
        if path.name in _BESIDE:
            split = "train" if path.parent == folder else path.parent.name
        elif path.parent not in (folder, folder / "annotations") or path.name.startswith(_OTHER_TASKS):
            continue
        else:
            split = re.sub("^(instances|image_info)_", "", path.stem)
        if found.setdefault(split, path) != path:
            message = f"{path} and {found[split]} both describe the split {split!r}."
            raise InvalidArgumentError(message, hint="Move one of them away.", file=str(path))
    if not found:
        message = f"there is no JSON with annotations in {str(folder)!r}."
        raise NotFoundError(message, hint=f"Looked for {_LAYOUTS}.", file=str(folder))
    return found


def _split(folder: Path, split: str, path: Path) -> tuple[list[str], list[_Picture]]:
    """Return the names of the classes, and the images in the order of their ids."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        listed = sorted(content["images"], key=lambda image: image["id"])
        categories = content.get("categories", [])
        names = [str(category["name"]) for category in categories]
        labels = {category["id"]: number for number, category in enumerate(categories)}
        objects = defaultdict(list)
        for one in sorted(content.get("annotations", []), key=lambda annotation: annotation["id"]):
            objects[one["image_id"]].append(one)
        below = _place(folder, split, path, [image["file_name"] for image in listed[:1]])
        pictures = [
            _Picture(
                str(below / image["file_name"]),
                image["file_name"],
                int(image["id"]),
                tuple(_object(one, image, labels) for one in objects[image["id"]]),
            )
            for image in listed
        ]
    except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
        message = f"the JSON is not what COCO describes ({type(error).__name__}: {error})."
        hint = "It should hold images, annotations and categories: https://cocodataset.org/#format-data."
        raise DataLossError(message, hint=hint, file=str(path)) from error
    return names, pictures


def _object(
    one: Mapping[str, Any], image: Mapping[str, Any], labels: Mapping[Any, int]
) -> tuple[int, int, tuple[float, float, float, float], int, bool]:
    x, y, width, height = one["bbox"]
    sides = (y / image["height"], x / image["width"], (y + height) / image["height"], (x + width) / image["width"])
    ymin, xmin, ymax, xmax = (min(max(side, 0.0), 1.0) for side in sides)
    area = int(one.get("area", width * height))
    return int(one["id"]), area, (ymin, xmin, ymax, xmax), labels[one["category_id"]], bool(one.get("iscrowd", 0))


def _place(folder: Path, split: str, path: Path, first: list[str]) -> Path:
    """Return the folder of the images of a split: the first folder that contains the first image."""
    places = [folder / split, folder / "images" / split, folder / split / "images", folder / "images", path.parent]
    if path.name in _BESIDE:
        places = [path.parent, path.parent / "images"]
    for place in places:
        if all((place / name).is_file() for name in first):
            return place
    message = f"{path.name} names the picture {first[0]!r}, which is in none of the folders where it is looked for."
    hint = f"Looked in {', '.join(str(place.relative_to(folder)) for place in places)}. Known is {_LAYOUTS}."
    raise NotFoundError(message, hint=hint, file=str(path))
