"""Makers of steps that change the values of pixels: colours, blur, erased parts; and those of AutoAugment."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from types import FunctionType
from typing import Any

from penstock.torch.vision.geometry import check_warps, chosen, like
from penstock.torch.vision.planned import PlannedImage, Refused, Step
from penstock.torch.vision.recording import record_colour, recording

JITTER = "brightness", "contrast", "saturation", "hue"
_FACTORS = {"Brightness": "brightness", "Color": "saturation", "Contrast": "contrast", "Sharpness": "sharpness"}
_SIZES = 32  # of images, for which magnitudes are kept


def grayscale(transform: Any) -> Step:
    channels = transform.num_output_channels
    if channels not in (1, 3):
        message = f"num_output_channels={channels!r} is an error"
        raise Refused(message)
    return lambda planned: planned.grey(channels)


def random_grayscale(transform: Any) -> Step:
    torch = import_module("torch")

    def step(planned: PlannedImage) -> None:
        if torch.rand(1) < transform.p:
            planned.grey(planned.channels)

    return step


def color_jitter(transform: Any) -> Step:
    def step(planned: PlannedImage) -> None:
        if hasattr(transform, "make_params"):
            order, *factors = transform.make_params([]).values()
        else:
            order, *factors = transform.get_params(*(getattr(transform, name) for name in JITTER))
        for place in order.tolist():
            if factors[place] is not None:
                record_colour(planned, JITTER[place], factors[place])

    return step


def by_chance(name: str, setting: str = "") -> Callable[[Any], Step]:
    """Return a maker for one operation on colours, which runs with the probability `p`."""

    def make(transform: Any) -> Step:
        number = getattr(transform, setting) if setting else 0
        if not isinstance(number, (int, float)) or (name == "posterize" and number not in range(1, 9)):
            message = f"{setting}={number!r} has no kernel"
            raise Refused(message)

        def step(planned: PlannedImage) -> None:
            if chosen(transform):
                record_colour(planned, name, getattr(transform, setting) if setting else 0)

        return step

    return make


def photometric_distort(transform: Any) -> Step:
    permute = import_module("torchvision.transforms.v2.functional").permute_channels

    def step(planned: PlannedImage) -> None:
        found = transform.make_params([like(planned)])
        before = ["contrast"] * found["contrast_before"]
        for name in ("brightness", *before, "saturation", "hue", *(() if before else ("contrast",))):
            if found[f"{name}_factor"] is not None:
                record_colour(planned, name, found[f"{name}_factor"])
        order = found["channel_permutation"]
        if order is not None:
            planned.call(lambda image: permute(image, order))

    return step


def gaussian_blur(transform: Any) -> Step:
    if hasattr(transform, "make_params"):
        return called(transform)
    blur = import_module("torchvision.transforms.functional").gaussian_blur

    def step(planned: PlannedImage) -> None:
        size, sigma = transform.kernel_size, transform.get_params(*transform.sigma)
        planned.call(lambda image: blur(image, size, [sigma, sigma]))

    return step


def elastic(transform: Any) -> Step:
    if hasattr(transform, "make_params"):
        return called(transform)
    displace = import_module("torchvision.transforms.functional").elastic_transform

    def step(planned: PlannedImage) -> None:
        found = transform.get_params(transform.alpha, transform.sigma, [planned.height, planned.width])
        mode, fill = transform.interpolation, transform.fill
        planned.call(lambda image: displace(image, found, mode, fill))

    return step


def called(transform: Any) -> Step:
    """Draw the parameters, and call torchvision's own code for the pixels later: v2 only."""

    def step(planned: PlannedImage) -> None:
        found = transform.make_params([like(planned)])
        planned.call(lambda image: transform.transform(image, found))

    return step


def augmenting(transform: Any) -> Step:
    """Run torchvision's own code, which calls one function for each operation, with a function that records."""
    check_warps(transform)
    kind = type(transform)

    class Augmenting(kind):  # type: ignore[misc, valid-type]
        def _flatten_and_extract_image_or_video(self, inputs: Any) -> Any:
            return None, inputs[0]

        def _unflatten_and_insert_image_or_video(self, _: None, image: Any) -> Any:
            return image

        def _apply_image_or_video_transform(self, image: Any, name: str, magnitude: float, **how: Any) -> Any:
            if _recorded_augmentation(image.planned, name, magnitude, 255.0):
                return image
            return super()._apply_image_or_video_transform(image, name, magnitude, **how)

    def apply(image: Any, name: str, magnitude: float, **how: Any) -> Any:
        if _recorded_augmentation(image.planned, name, magnitude, 1.0):
            return image
        return names["_apply_op"](image, name, magnitude, **how)

    if not hasattr(transform, "make_params"):
        names = kind.forward.__globals__
        Augmenting.forward = FunctionType(kind.forward.__code__, {**names, "_apply_op": apply})
        Augmenting._augmentation_space = lru_cache(_SIZES)(kind._augmentation_space)
    found = object.__new__(Augmenting)
    object.__setattr__(found, "__dict__", transform.__dict__)
    return lambda planned: found.forward(recording(planned))


def _recorded_augmentation(planned: PlannedImage, name: str, magnitude: float, bound: float) -> bool:
    """Record an operation of AutoAugment and similar classes. Return False for geometry and for "Identity"."""
    if name in _FACTORS:
        record_colour(planned, _FACTORS[name], 1.0 + magnitude)
    elif name == "Posterize":
        record_colour(planned, "posterize", int(magnitude))
    elif name == "Solarize":
        record_colour(planned, "solarize", bound * magnitude)
    elif name in ("AutoContrast", "Equalize", "Invert"):
        record_colour(planned, name.lower())
    else:
        return False
    return True


def random_erasing(transform: Any) -> Step:
    torch, value = import_module("torch"), transform.value
    if isinstance(value, (tuple, list)) and len(value) not in (1, 3):
        message = f"value={value!r} has no kernel"
        raise Refused(message)

    def step(planned: PlannedImage) -> None:
        if torch.rand(1) >= transform.p:
            return
        image, value = like(planned), transform.value
        if hasattr(transform, "make_params"):
            found = tuple(transform.make_params([image]).values())
        else:
            values = [float(value)] if isinstance(value, (int, float)) else value
            values = None if isinstance(values, str) else list(map(float, values))
            found = transform.get_params(image, scale=transform.scale, ratio=transform.ratio, value=values)
        if found[4] is not None and found[4] is not image:
            planned.erase(found[:4], found[4].numpy())

    return step
