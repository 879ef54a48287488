"""The table from torchvision's transforms to operations on a PlannedImage.

A maker takes a transform, v1 or v2, and returns a step: a function that gets the parameters of one image from
torchvision's own code, and records the operation. The generators have the same states after it as after the transform.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from penstock.image.resizing.pillow import BICUBIC, BILINEAR, BOX
from penstock.torch.vision.planned import PlannedImage

Step = Callable[[PlannedImage], None]

_FILTERS = {"box": BOX, "bilinear": BILINEAR, "bicubic": BICUBIC, 4: BOX, 2: BILINEAR, 3: BICUBIC}
_METHODS = ("forward", "__call__", "transform", "make_params", "get_params", "check_inputs", "_call_kernel")


class Refused(Exception):
    """A transform or data set runs as written. The text is the reason, or empty if it has no transforms."""


class TransformEntry(NamedTuple):
    """A transform's maker, or None if it computes each value from one pixel; and which images it takes."""

    make: Callable[[Any], Step] | None
    pillow: bool = True  # images of Pillow
    tensor: bool = False  # tensors
    converts: bool = False  # to a tensor


def _filter(transform: Any) -> int:
    named = getattr(transform.interpolation, "value", transform.interpolation)
    if named not in _FILTERS:
        message = f"interpolation {named!r} has no kernel"
        raise Refused(message)
    return _FILTERS[named]


def _resize(transform: Any) -> Step:
    kind, size, most = _filter(transform), transform.size, transform.max_size
    if size is None:
        message = "size=None has no kernel"
        raise Refused(message)
    sides = [size] if isinstance(size, int) else list(size)

    def step(planned: PlannedImage) -> None:
        if len(sides) == 2:
            planned.resize(sides[0], sides[1], kind)
            return
        short, long = sorted((planned.height, planned.width))
        new_short, new_long = sides[0], int(sides[0] * long / short)
        if most is not None and new_long > most:
            new_short, new_long = int(most * new_short / new_long), most
        tall = planned.width <= planned.height
        planned.resize(new_long if tall else new_short, new_short if tall else new_long, kind)

    return step


def _center_crop(transform: Any) -> Step:
    rows, columns = transform.size

    def step(planned: PlannedImage) -> None:
        if rows > planned.height or columns > planned.width:
            wide, tall = max(columns - planned.width, 0), max(rows - planned.height, 0)
            planned.pad((wide // 2, tall // 2, (wide + 1) // 2, (tall + 1) // 2), "constant", (0,))
        top, left = round((planned.height - rows) / 2.0), round((planned.width - columns) / 2.0)
        planned.crop(top, left, rows, columns)

    return step


def _random_resized_crop(transform: Any) -> Step:
    kind, (rows, columns) = _filter(transform), transform.size

    def step(planned: PlannedImage) -> None:
        if hasattr(transform, "make_params"):
            box = transform.make_params([_like(planned)])
            planned.crop(box["top"], box["left"], box["height"], box["width"])
        else:
            planned.crop(*transform.get_params(_like(planned), transform.scale, transform.ratio))
        planned.resize(rows, columns, kind)

    return step


def _random_crop(transform: Any) -> Step:
    fill, mode = _fill_of(transform), transform.padding_mode
    if hasattr(transform, "make_params"):

        def step(planned: PlannedImage) -> None:
            found = transform.make_params([_like(planned)])
            if found["needs_pad"]:
                planned.pad(found["padding"], mode, fill)
            if found["needs_crop"]:
                planned.crop(found["top"], found["left"], found["height"], found["width"])

        return step
    padding = None if transform.padding is None else _sides(transform.padding)
    rows, columns = transform.size

    def step_v1(planned: PlannedImage) -> None:
        if padding is not None:
            planned.pad(padding, mode, fill)
        height, width = planned.height, planned.width
        if transform.pad_if_needed and width < columns:
            planned.pad((columns - width, 0, columns - width, 0), mode, fill)
        if transform.pad_if_needed and height < rows:
            planned.pad((0, rows - height, 0, rows - height), mode, fill)
        planned.crop(*transform.get_params(_like(planned), transform.size))

    return step_v1


def _pad(transform: Any) -> Step:
    padding, fill, mode = _sides(transform.padding), _fill_of(transform), transform.padding_mode
    return lambda planned: planned.pad(padding, mode, fill)


def _flip(transform: Any) -> Step:
    torch, upside = import_module("torch"), "Vertical" in type(transform).__name__

    def step(planned: PlannedImage) -> None:
        if torch.rand(1) < transform.p:
            planned.flip(upside=upside)

    return step


def _grayscale(transform: Any) -> Step:
    channels = transform.num_output_channels
    if channels not in (1, 3):
        message = f"num_output_channels={channels!r} is an error"
        raise Refused(message)
    return lambda planned: planned.grey(channels)


def _random_grayscale(transform: Any) -> Step:
    torch = import_module("torch")

    def step(planned: PlannedImage) -> None:
        if torch.rand(1) < transform.p:
            planned.grey(planned.channels)

    return step


def _like(planned: PlannedImage) -> Any:
    """Return a tensor of the size of the image, which has memory for one number."""
    return import_module("torch").empty(1).expand(planned.channels, planned.height, planned.width)


def _sides(padding: Any) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom."""
    numbers = [padding] if isinstance(padding, int) else list(padding)
    sides = numbers * (4 // len(numbers)) if len(numbers) in (1, 2, 4) else []
    if len(sides) != 4 or not all(isinstance(side, int) and side >= 0 for side in sides):
        message = f"padding={padding!r} has no kernel"
        raise Refused(message)
    return sides[0], sides[1], sides[2], sides[3]


def _fill_of(transform: Any) -> tuple[int, ...]:
    fill = transform.fill
    fill = (0,) if fill is None else (fill,) if isinstance(fill, int) else fill
    if not isinstance(fill, (tuple, list)) or not all(isinstance(each, int) and 0 <= each < 256 for each in fill):
        message = f"fill={transform.fill!r} has no kernel"
        raise Refused(message)
    return tuple(fill)


ENTRIES = {
    "Resize": TransformEntry(_resize),
    "CenterCrop": TransformEntry(_center_crop),
    "RandomResizedCrop": TransformEntry(_random_resized_crop),
    "RandomCrop": TransformEntry(_random_crop),
    "Pad": TransformEntry(_pad),
    "RandomHorizontalFlip": TransformEntry(_flip, tensor=True),
    "RandomVerticalFlip": TransformEntry(_flip, tensor=True),
    "Grayscale": TransformEntry(_grayscale),
    "RandomGrayscale": TransformEntry(_random_grayscale),
    "ToTensor": TransformEntry(None, converts=True),
    "PILToTensor": TransformEntry(None, converts=True),
    "ToImage": TransformEntry(None, converts=True),
    "ToDtype": TransformEntry(None, pillow=False, tensor=True),
    "ConvertImageDtype": TransformEntry(None, pillow=False, tensor=True),
    "Normalize": TransformEntry(None, pillow=False, tensor=True),
    "ToPureTensor": TransformEntry(None, pillow=False, tensor=True),
}


@cache
def classes() -> dict[type, TransformEntry]:
    """Return the recognised classes of torchvision.transforms and its v2."""
    modules = import_module("torchvision.transforms"), import_module("torchvision.transforms.v2")
    found = [(getattr(module, name, None), entry) for module in modules for name, entry in ENTRIES.items()]
    return {kind: entry for kind, entry in found if kind is not None}


def entry_of(transform: Any) -> TransformEntry:
    """Return the entry of a transform, by its exact class.

    Raises:
        Refused: If the class is another one, or if its methods were replaced.
    """
    kind = type(transform)
    entry = classes().get(kind)
    if entry is None:
        message = f"{kind.__module__}.{kind.__qualname__} is not a class that penstock recognises"
        raise Refused(message)
    for name in _METHODS:
        where = getattr(getattr(kind, name, None), "__module__", None) or "torchvision."
        if name in vars(transform) or not where.startswith(("torchvision.", "torch.")):
            message = f"its method {name} was replaced"
            raise Refused(message)
    if getattr(transform, "_forward_hooks", None) or getattr(transform, "_forward_pre_hooks", None):
        message = "it has hooks"
        raise Refused(message)
    return entry


def flat(transform: Any) -> list[Any]:
    """Return the transforms of nested Compose and Sequential in order."""
    torch, v1, v2 = map(import_module, ("torch", "torchvision.transforms", "torchvision.transforms.v2"))
    if type(transform) in (v1.Compose, v2.Compose):
        return [each for inner in transform.transforms for each in flat(inner)]
    if type(transform) is torch.nn.Sequential:
        return [each for inner in transform for each in flat(inner)]
    return [transform]
