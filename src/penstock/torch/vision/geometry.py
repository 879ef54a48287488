"""Makers of steps that change the place of pixels: resizes, crops, borders, flips, rotations."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from penstock.image.resizing.pillow import BICUBIC, BILINEAR, BOX
from penstock.torch.vision.planned import PlannedImage, Refused, Step
from penstock.torch.vision.recording import FILTERS, recording

_FILTERS: dict[Any, int] = {"box": BOX, "bilinear": BILINEAR, "bicubic": BICUBIC, **FILTERS}
_WARPS = ("nearest", "nearest-exact", "bilinear", "bicubic", 0, 2, 3)


def _filter(transform: Any) -> int:
    named = getattr(transform.interpolation, "value", transform.interpolation)
    if named not in _FILTERS:
        message = f"interpolation {named!r} has no kernel"
        raise Refused(message)
    return _FILTERS[named]


def resize(transform: Any) -> Step:
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


def center_crop(transform: Any) -> Step:
    rows, columns = transform.size

    def step(planned: PlannedImage) -> None:
        if rows > planned.height or columns > planned.width:
            wide, tall = max(columns - planned.width, 0), max(rows - planned.height, 0)
            planned.pad((wide // 2, tall // 2, (wide + 1) // 2, (tall + 1) // 2), "constant", (0,))
        top, left = round((planned.height - rows) / 2.0), round((planned.width - columns) / 2.0)
        planned.crop(top, left, rows, columns)

    return step


def several_crops(transform: Any) -> Step:
    (rows, columns), flipped = transform.size, hasattr(transform, "vertical_flip")
    upside = flipped and transform.vertical_flip
    return lambda planned: planned.several(rows, columns, flipped=flipped, upside=upside)


def random_resized_crop(transform: Any) -> Step:
    kind, (rows, columns) = _filter(transform), transform.size

    def step(planned: PlannedImage) -> None:
        if hasattr(transform, "make_params"):
            box = transform.make_params([like(planned)])
            planned.crop(box["top"], box["left"], box["height"], box["width"])
        else:
            planned.crop(*transform.get_params(like(planned), transform.scale, transform.ratio))
        planned.resize(rows, columns, kind)

    return step


def random_crop(transform: Any) -> Step:
    fill, mode = fill_of(transform), transform.padding_mode
    if hasattr(transform, "make_params"):

        def step(planned: PlannedImage) -> None:
            found = transform.make_params([like(planned)])
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
        planned.crop(*transform.get_params(like(planned), transform.size))

    return step_v1


def pad(transform: Any) -> Step:
    padding, fill, mode = _sides(transform.padding), fill_of(transform), transform.padding_mode
    return lambda planned: planned.pad(padding, mode, fill)


def flip(transform: Any) -> Step:
    torch, upside = import_module("torch"), "Vertical" in type(transform).__name__

    def step(planned: PlannedImage) -> None:
        if torch.rand(1) < transform.p:
            planned.flip(upside=upside)

    return step


def random_zoom_out(transform: Any) -> Step:
    fill = fill_of(transform)

    def step(planned: PlannedImage) -> None:
        if chosen(transform):
            planned.pad(transform.make_params([like(planned)])["padding"], "constant", fill)

    return step


def recorded(transform: Any) -> Step:
    """Run torchvision's own code on an image that records what Pillow would do."""
    check_warps(transform)
    return lambda planned: transform(recording(planned))


def resized(transform: Any) -> Step:
    _filter(transform)
    return lambda planned: transform(recording(planned))


def check_warps(transform: Any) -> None:
    """Refuse fills by type, and interpolations for which Pillow raises an error only when it transforms."""
    named = getattr(transform.interpolation, "value", transform.interpolation)
    if isinstance(transform.fill, dict) or named not in _WARPS:
        message = (
            "a fill for each type of input has no kernel"
            if named in _WARPS
            else f"interpolation {named!r} has no kernel"
        )
        raise Refused(message)


def like(planned: PlannedImage) -> Any:
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


def fill_of(transform: Any) -> tuple[int, ...]:
    fill = transform.fill
    fill = (0,) if fill is None else (fill,) if isinstance(fill, int) else fill
    if not isinstance(fill, (tuple, list)) or not all(isinstance(each, int) and 0 <= each < 256 for each in fill):
        message = f"fill={transform.fill!r} has no kernel"
        raise Refused(message)
    return tuple(fill)


def chosen(transform: Any) -> bool:
    """Draw a number, and compare it with `p` as float32 in v2, as float64 in v1."""
    drawn = import_module("torch").rand(1)
    return bool((drawn if hasattr(transform, "make_params") else drawn.item()) < transform.p)
