"""The table from torchvision's transforms to operations on a PlannedImage.

A maker takes a transform, v1 or v2, and returns a step: a function that gets the parameters of one image from
torchvision's own code, and records the operation. The generators have the same states after it as after the transform.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from penstock.torch.vision import colours, geometry
from penstock.torch.vision.planned import PlannedImage, Refused, Step
from penstock.torch.vision.recording import COLOURS, WARPS, agrees

_METHODS = (
    *("forward", "__call__", "transform", "make_params", "get_params", "check_inputs", "_call_kernel"),
    *("_augmentation_space", "_get_random_item", "_apply_image_or_video_transform"),
)


class TransformEntry(NamedTuple):
    """A transform's maker, or None if it computes each value from one pixel; and which images it takes."""

    make: Callable[[Any], Step] | None
    operations: tuple[str, ...] = ()  # operations of `recording` that must agree with torchvision's
    pillow: bool = True  # images of Pillow
    tensor: bool = False  # tensors
    array: bool = False  # arrays of numpy, with channels last
    last: bool = False  # floats; no transform but this one may follow
    several: bool = False  # the result has several images; only tables may follow


def _to_pillow(transform: Any) -> Step:
    if transform.mode is not None:
        message = "it has a mode"
        raise Refused(message)
    return lambda planned: None


def _random_apply(transform: Any) -> Step:
    torch, steps = import_module("torch"), _steps(transform.transforms)

    def step(planned: PlannedImage) -> None:
        drawn = torch.rand(1)
        if drawn >= transform.p if hasattr(transform, "make_params") else transform.p < drawn:
            return
        for each in steps:
            each(planned)

    return step


def _random_choice(transform: Any) -> Step:
    torch, choices = import_module("torch"), [_steps([each]) for each in transform.transforms]

    def step(planned: PlannedImage) -> None:
        if hasattr(transform, "make_params"):
            chosen = choices[int(torch.multinomial(torch.tensor(transform.p), 1))]
        else:
            chosen = random.choices(choices, weights=transform.p)[0]
        for each in chosen:
            each(planned)

    return step


def _random_order(transform: Any) -> Step:
    torch, choices = import_module("torch"), [_steps([each]) for each in transform.transforms]

    def step(planned: PlannedImage) -> None:
        order = list(range(len(choices)))
        if hasattr(transform, "make_params"):
            order = torch.randperm(len(choices)).tolist()
        else:
            random.shuffle(order)
        for place in order:
            for each in choices[place]:
                each(planned)

    return step


def _steps(transforms: Any) -> list[Step]:
    """Return the steps of the transforms in a container."""
    inner = [each for transform in transforms for each in flat(transform)]
    steps = [step_of(each, "pillow") for each in inner]
    found = [step for step in steps if step is not None]
    if len(found) < len(steps) or any(entry_of(each).several for each in inner):
        message = "it contains a transform that converts images to tensors, or to several images"
        raise Refused(message)
    return found


_AUGMENTATIONS = tuple(name for name in (*COLOURS, *WARPS) if name not in ("hue", "perspective"))
ENTRIES = {
    "Resize": TransformEntry(geometry.resize),
    "CenterCrop": TransformEntry(geometry.center_crop),
    "FiveCrop": TransformEntry(geometry.several_crops, several=True),
    "TenCrop": TransformEntry(geometry.several_crops, several=True),
    "RandomResizedCrop": TransformEntry(geometry.random_resized_crop),
    "RandomCrop": TransformEntry(geometry.random_crop),
    "Pad": TransformEntry(geometry.pad),
    "RandomHorizontalFlip": TransformEntry(geometry.flip, tensor=True),
    "RandomVerticalFlip": TransformEntry(geometry.flip, tensor=True),
    "Grayscale": TransformEntry(colours.grayscale),
    "RandomGrayscale": TransformEntry(colours.random_grayscale),
    "ColorJitter": TransformEntry(colours.color_jitter, colours.JITTER),
    "RandomInvert": TransformEntry(colours.by_chance("invert"), ("invert",)),
    "RandomPosterize": TransformEntry(colours.by_chance("posterize", "bits"), ("posterize",)),
    "RandomSolarize": TransformEntry(colours.by_chance("solarize", "threshold"), ("solarize",)),
    "RandomAutocontrast": TransformEntry(colours.by_chance("autocontrast"), ("autocontrast",)),
    "RandomEqualize": TransformEntry(colours.by_chance("equalize"), ("equalize",)),
    "RandomAdjustSharpness": TransformEntry(colours.by_chance("sharpness", "sharpness_factor"), ("sharpness",)),
    "RandomApply": TransformEntry(_random_apply),
    "RandomChoice": TransformEntry(_random_choice),
    "RandomOrder": TransformEntry(_random_order),
    "RandomRotation": TransformEntry(geometry.recorded, ("rotate",)),
    "RandomAffine": TransformEntry(geometry.recorded, ("affine",)),
    "RandomPerspective": TransformEntry(geometry.recorded, ("perspective",)),
    "GaussianBlur": TransformEntry(colours.gaussian_blur),
    "ElasticTransform": TransformEntry(colours.elastic),
    "RandomChannelPermutation": TransformEntry(colours.called),
    "JPEG": TransformEntry(colours.called),
    "RGB": TransformEntry(lambda _: lambda planned: planned.grey(3) if planned.channels == 1 else None),
    "RandomErasing": TransformEntry(colours.random_erasing, pillow=False, tensor=True, last=True),
    "RandomZoomOut": TransformEntry(geometry.random_zoom_out),
    "RandomPhotometricDistort": TransformEntry(colours.photometric_distort, colours.JITTER),
    "Identity": TransformEntry(lambda _: lambda planned: None, tensor=True),
    "ScaleJitter": TransformEntry(geometry.resized),
    "RandomResize": TransformEntry(geometry.resized),
    "RandomShortestSize": TransformEntry(geometry.resized),
    "AutoAugment": TransformEntry(colours.augmenting, _AUGMENTATIONS),
    "RandAugment": TransformEntry(colours.augmenting, _AUGMENTATIONS),
    "TrivialAugmentWide": TransformEntry(colours.augmenting, _AUGMENTATIONS),
    "ToPILImage": TransformEntry(_to_pillow, pillow=False, array=True),
    "ToTensor": TransformEntry(None, array=True),
    "PILToTensor": TransformEntry(None),
    "ToImage": TransformEntry(None, array=True),
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
        changed = _change_of(transform) if kind in _sequences() else ""
        raise Refused(changed or f"{kind.__module__}.{kind.__qualname__} is not a class that penstock recognises")
    if change := _change_of(transform):
        raise Refused(change)
    return entry


def _change_of(transform: Any) -> str:
    """Return the change by which a transform differs from its class in torchvision, or an empty string."""
    for name in _METHODS:
        where = getattr(getattr(type(transform), name, None), "__module__", None) or "torchvision."
        if name in vars(transform) or not where.startswith(("torchvision.", "torch.")):
            return f"its method {name} was replaced"
    hooks = getattr(transform, "_forward_hooks", None) or getattr(transform, "_forward_pre_hooks", None)
    return "it has hooks" if hooks else ""


def step_of(transform: Any, kind: str) -> Step | None:
    """Return the step of a transform, or None if it computes each value from one pixel.

    `kind` is that of its argument: "pillow", "tensor" or "array".

    Raises:
        Refused: If it runs as written.
    """
    entry = entry_of(transform)
    if not getattr(entry, kind):
        message = f"it has no kernel for {'images of Pillow' if kind == 'pillow' else f'{kind}s'}"
        raise Refused(message)
    for name in entry.operations:
        if not agrees(name):
            message = f"on this machine, the self-test found other pixels after {name}"
            raise Refused(message)
    return entry.make(transform) if entry.make else None


def is_table(transform: Any) -> bool:
    """Return True if a transform of this class computes each value from one pixel."""
    entry = classes().get(type(transform))
    return entry is not None and entry.make is None


def uses_random(transform: Any) -> bool:
    """Return True if a transform uses the generator of Python's `random`: two containers of v1."""
    v1 = import_module("torchvision.transforms")
    inner = getattr(transform, "transforms", ())
    return type(transform) in (v1.RandomChoice, v1.RandomOrder) or any(map(uses_random, inner))


@cache
def _sequences() -> tuple[type, ...]:
    torch, v1, v2 = map(import_module, ("torch", "torchvision.transforms", "torchvision.transforms.v2"))
    return v1.Compose, v2.Compose, torch.nn.Sequential


def flat(transform: Any) -> list[Any]:
    """Return the transforms of nested Compose and Sequential in order. One that was changed stays as it is."""
    if type(transform) not in _sequences() or _change_of(transform):
        return [transform]
    return [each for inner in getattr(transform, "transforms", transform) for each in flat(inner)]
