"""The function `take_apart` splits elements and batches into examples: an image, and the text below it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np

from penstock.errors import InvalidArgumentError
from penstock.plan.indexing import Split
from penstock.plan.inputs import Scan
from penstock.plan.node import Node, rebuilt
from penstock.plan.ops import Batch, Map, Prefetch
from penstock.plan.stateful import IgnoreErrors
from penstock.sources.image_folder import ImageFolderSource

Names = Sequence[str] | Mapping[int, str]
_LABELS = ("class_name", "label", "labels", "class", "target", "targets", "cls", "y", "category", "caption", "txt")
_CHANNELS = (1, 3, 4)
_LEAST = 4  # rows and columns of an image; a smaller array is a table of numbers
_PICTURES = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF87a", b"GIF89a", b"BM", b"RIFF")


@dataclass(frozen=True)
class ImageExample:
    """An image in its original values, (height, width) or (height, width, channels), or None, and its caption."""

    image: np.ndarray | None
    caption: str


def leaves(element: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values in an element, each with its path: `1`, `image`, `meta.name`."""
    if isinstance(element, Mapping):
        parts: list[tuple[str, Any]] = [(str(key), value) for key, value in element.items()]
    elif isinstance(element, tuple):
        names = getattr(element, "_fields", None) or [str(number) for number in range(len(element))]
        parts = list(zip(names, element, strict=True))
    elif hasattr(element, "__dataclass_fields__") and not isinstance(element, type) and not hasattr(element, "dtype"):
        parts = [(name, getattr(element, name)) for name in element.__dataclass_fields__]
    else:
        yield path, element
        return
    for name, value in parts:
        yield from leaves(value, f"{path}.{name}" if path else name)


def take_apart(
    elements: Iterable[Any], n: int, *, image: str | None, label: str | None, label_names: Names | None
) -> list[ImageExample]:
    """Return at most `n` examples, from as few elements as possible. `image` and `label` are the paths of values."""
    found: list[ImageExample] = []
    for element in elements:
        values = dict(leaves(element))
        for name in (image, label):
            if name is not None and name not in values:
                message = f"There is no value {name!r} in an element."
                raise InvalidArgumentError(message, hint=f"There are {', '.join(map(repr, values))}.")
        where = image if image is not None else next((key for key in values if _pictures(values, key)), None)
        pictures = None if where is None else _pictures(values, where)
        if where is not None and pictures is None:
            message = f"The value {where!r} is not an image: {_kind(values[where])}."
            raise InvalidArgumentError(message, hint="An image has 2 or 3 axes, or is the content of an image file.")
        batched = pictures is not None and pictures[1]
        for number, picture in enumerate(pictures[0] if pictures else [None]):
            rest = {key: _at(value, number) if batched else value for key, value in values.items() if key != where}
            found.append(ImageExample(picture, _caption(rest, label, label_names)))
            if len(found) == n:
                return found
    return found


def _pictures(values: Mapping[str, Any], key: str) -> tuple[list[np.ndarray], bool] | None:
    """Return the images in a value, and True if it is a batch of them. Return None if the value has no images."""
    value = values[key]
    if isinstance(value, bytes | np.bytes_):
        return ([_decoded(bytes(value))], False) if _is_file(bytes(value)) else None
    if not isinstance(value, np.ndarray):
        if isinstance(value, list) and value and all(isinstance(part, bytes) and _is_file(part) for part in value):
            return [_decoded(part) for part in value], len(value) > 1  # a feature of an Example
        return None
    if value.dtype == object:
        contents = value.reshape(-1).tolist()
        files = contents and all(isinstance(part, bytes) and _is_file(part) for part in contents)
        return ([_decoded(part) for part in contents], True) if files else None
    if value.dtype.kind not in "uifb":
        return None
    single = as_rows(value)
    if single is not None and not _counts(values, key, len(value)):
        return [single], False
    if value.ndim in (3, 4) and len(value):
        each = [as_rows(part) for part in value]
        if all(part is not None for part in each):
            return [part for part in each if part is not None], True
    return None if single is None else ([single], False)


def as_rows(value: np.ndarray) -> np.ndarray | None:
    """Return an image as (height, width) or (height, width, channels), or None for arrays that are no image.

    (channels, height, width) is accepted too.

    >>> as_rows(np.zeros((3, 32, 48))).shape, as_rows(np.zeros((32, 48, 1))).shape, as_rows(np.zeros((5, 32, 48)))
    ((32, 48, 3), (32, 48), None)
    """
    if value.ndim == 2 and min(value.shape) >= _LEAST:
        return value
    if value.ndim != 3:
        return None
    if value.shape[2] in _CHANNELS and min(value.shape[:2]) >= _LEAST:
        found = value
    elif value.shape[0] in _CHANNELS and min(value.shape[1:]) >= _LEAST:
        found = np.moveaxis(value, 0, 2)
    else:
        return None
    return found[..., 0] if found.shape[2] == 1 else found


def _counts(values: Mapping[str, Any], key: str, size: int) -> bool:
    """Return True if an array with `size` rows is a batch, because all other values have that many rows.

    An image of 8 rows beside a vector of 8 numbers would look the same. The array must therefore have three axes.
    """
    others = [value for name, value in values.items() if name != key]
    return (
        values[key].ndim == 3
        and values[key].shape[2] not in _CHANNELS
        and bool(others)
        and all(isinstance(value, np.ndarray) and value.ndim and len(value) == size for value in others)
    )


def _is_file(content: bytes) -> bool:
    return len(content) > 16 and content.startswith(_PICTURES)


def _decoded(content: bytes) -> np.ndarray:
    from penstock.image import decode_image

    return decode_image(content, expand_animations=False)


def _at(value: Any, number: int) -> Any:
    try:
        return value[number]
    except (TypeError, IndexError, KeyError):
        return value


def _caption(values: Mapping[str, Any], label: str | None, names: Names | None) -> str:
    """Return the label, by its name if that is known. Without a label, return the short values."""
    if label is None:
        # in WebDataset keys, the part before the suffix counts too
        last = {key: key.lower().split(".")[-2:] for key in values}
        label = next((key for wanted in _LABELS for key in values if wanted in last[key]), None)
    if label is None and len(values) == 1:
        (label,) = values  # (image, label)
    if label is not None:
        return named(values[label], names)
    shown = [(key.rpartition(".")[2], text_of(value)) for key, value in values.items() if _is_short(value)]
    return ", ".join(text if key.isdigit() else f"{key} {text}" for key, text in shown)


def named(value: Any, names: Names | None) -> str:
    """Return a label as text. A number is replaced by its name, and a one-hot vector by the name of its largest value.

    >>> named(np.int64(1), ["cat", "dog"]), named(np.array([1.0, 0.0]), ["cat", "dog"]), named(b"bird", None)
    ('dog', 'cat', 'bird')
    """
    array = np.asarray(value)
    if array.ndim == 1 and array.dtype.kind in "uifb" and len(array) > 1:
        if array.max() == 1 and array.sum() == 1 and (array == 0).sum() == len(array) - 1:
            array = np.asarray(array.argmax())
    elif array.shape == (1,):
        array = array[0]
    if names is not None and np.ndim(array) == 0 and np.asarray(array).dtype.kind in "uib":
        number = int(array)
        if isinstance(names, Mapping):
            return str(names.get(number, number))
        return str(names[number]) if 0 <= number < len(names) else str(number)
    return text_of(value)


def _is_short(value: Any) -> bool:
    return np.ndim(value) == 0 and len(text_of(value)) <= 40


def text_of(value: Any, most: int = 200) -> str:
    """Return a value as one line of text."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item() if value.dtype == object else value[()]
    if isinstance(value, list | np.ndarray) and len(value) == 1 and np.ndim(value[0]) == 0:
        value = value[0]
    if isinstance(value, bytes | np.bytes_):
        text = _text(bytes(value), most)
    elif isinstance(value, float | np.floating):
        text = f"{float(value):.4g}" if math.isfinite(value) else str(value)
    elif isinstance(value, np.ndarray) and value.size > 6:
        text = _kind(value)
    elif isinstance(value, list) and len(value) > 6:
        text = f"{len(value)} values"
    else:
        text = str(value)
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"


def _text(content: bytes, most: int) -> str:
    """Return bytes as text if they are text, otherwise their number."""
    try:
        text = content[: 4 * most].decode()
    except UnicodeDecodeError as error:
        if len(content) <= 4 * most or error.start < 4 * most - 4:
            return f"{len(content):,} bytes"
        text = content[: error.start].decode()
    plain = all(letter.isprintable() or letter in "\t\n\r" for letter in text)
    return text if plain else f"{len(content):,} bytes"


def _kind(value: Any) -> str:
    return f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else type(value).__name__


def label_names_of(data: Any) -> Names | None:
    """Return the names of the classes of a folder, or of the one label of a catalog data set, or None."""
    names = getattr(data, "class_names", None)
    if isinstance(names, list):
        return names
    plan = getattr(data, "__penstock_dataset__", None)
    below = [] if plan is None else [plan]
    while below:
        node = below.pop()
        told = getattr(getattr(node, "function", None), "label_names", None)  # of a decoder of the catalog
        if told:
            return list(told)
        source = getattr(node, "source", None)
        labels, directory = getattr(source, "labels", None), getattr(source, "directory", None)
        if source is not None and labels is not None and directory is not None:
            files = zip(labels, source.files, strict=True)
            return {label: PurePath(file[len(directory) :].lstrip("/")).parts[0] for label, file in files}
        below += node.inputs
    return None


def classes_in_turn(plan: Node) -> Node:
    """Return the plan with the images of a folder, which are sorted by class, in another order: each class in turn.

    Returns `plan` itself for other sources, and if a step chooses elements or orders them.
    """
    scan = plan
    while isinstance(scan, (Map, Batch, Prefetch, IgnoreErrors)):
        scan = scan.input
    if not isinstance(scan, Scan) or not isinstance(scan.source, ImageFolderSource) or scan.source.labels is None:
        return plan
    order = np.argsort(scan.source.labels, kind="stable")
    labels = np.array(scan.source.labels)[order]
    within = np.arange(len(labels)) - np.searchsorted(labels, labels)  # the number of each element in its class
    numbers = order[np.argsort(within, kind="stable")].tobytes()
    in_turn = Split(input=scan, numbers=numbers, reshuffle_each_iteration=False)
    return rebuilt(plan, lambda node: in_turn if node is scan else None)
