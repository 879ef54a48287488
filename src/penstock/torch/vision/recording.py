"""RecordingImage: an image of Pillow without pixels, for torchvision's own code; and a test of operations."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np

from penstock.image.colour.pillow import IDENTITY
from penstock.image.resizing.pillow import BICUBIC, BILINEAR, BOX
from penstock.torch.vision.planned import PlannedImage, Refused, pillow_image

FILTERS = {4: BOX, 2: BILINEAR, 3: BICUBIC}  # by Pillow's numbers
_FACTORS = [(0.0,), (0.6,), (1.7,)]
COLOURS: dict[str, list[Any]] = {  # arguments for the test, by the names of torchvision's functions
    "brightness": _FACTORS,
    "contrast": _FACTORS,
    "saturation": _FACTORS,
    "hue": [(-0.4,), (0.1,)],
    "sharpness": _FACTORS,
    "posterize": [(3,), (8,)],
    "solarize": [(0,), (100.5,)],
    "invert": [()],
    "autocontrast": [()],
    "equalize": [()],
}
WARPS: dict[str, tuple[Any, ...]] = {
    "affine": (20.0, [3, -5], 1.2, [10.0, 4.0]),
    "rotate": (33.0,),
    "perspective": ([[0, 0], [40, 0], [40, 30], [0, 30]], [[2, 3], [38, 1], [35, 29], [1, 26]]),
}


@cache
def _recording_type() -> Any:
    image = import_module("PIL.Image")
    turn = image.Transpose

    class RecordingImage(image.Image):  # type: ignore[misc, name-defined]
        """The size and the mode of a planned image. The geometry of Pillow is recorded, anything else is an error."""

        def __init__(self, planned: PlannedImage) -> None:
            super().__init__()
            self._size, self._mode = (planned.width, planned.height), "L" if planned.channels == 1 else "RGB"
            self.planned = planned

        def load(self) -> Any:
            message = "it needs an operation of Pillow that has no kernel"
            raise Refused(message)

        def copy(self) -> Any:
            return self

        def resize(self, size: Any, resample: Any) -> Any:
            if resample not in FILTERS:
                self.load()
            self.planned.resize(size[1], size[0], FILTERS[resample])
            return RecordingImage(self.planned)

        def transform(
            self, size: Any, method: Any, data: Any, resample: Any = 0, fill: Any = 1, fillcolor: Any = 0
        ) -> Any:
            count = 6 if method == image.Transform.AFFINE else 8
            colour = [min(max(each, 0), 255) for each in (fillcolor if isinstance(fillcolor, tuple) else (fillcolor,))]
            self.planned.warp(size[1], size[0], data[:count], int(resample), colour)
            return RecordingImage(self.planned)

        def transpose(self, method: Any) -> Any:
            width, height = self._size
            if method == turn.ROTATE_180:
                self.planned.flip(upside=False)
                self.planned.flip(upside=True)
            elif method == turn.ROTATE_90:
                self.planned.warp(width, height, (0, -1, width, 1, 0, 0), 0)
            elif method == turn.ROTATE_270:
                self.planned.warp(width, height, (0, 1, 0, -1, 0, height), 0)
            else:
                self.load()
            return RecordingImage(self.planned)

    return RecordingImage


def recording(planned: PlannedImage) -> Any:
    """Return an image of Pillow that records geometry on `planned`."""
    return _recording_type()(planned)


def record_colour(planned: PlannedImage, name: str, number: float = 0) -> None:
    """Record a function of torchvision: an operation on colours by its name."""
    planned.colour(name, int(number * 255) % 256 if name == "hue" else number)


@cache
def agrees(name: str) -> bool:
    """Return True if an operation gives the pixels of torchvision on this machine."""
    functional = import_module("torchvision.transforms.functional")
    function = getattr(functional, name, None) or getattr(functional, f"adjust_{name}")
    tests: list[tuple[Any, dict[str, Any]]] = [(arguments, {}) for arguments in COLOURS.get(name, ())]
    if name in WARPS:
        modes = [functional.InterpolationMode(mode) for mode in ("nearest", "bilinear", "bicubic")]
        tests = [(WARPS[name], {"interpolation": mode, "fill": 9}) for mode in modes]
    for channels, (arguments, options) in product((1, 3), tests):
        pixels = np.random.default_rng(0).integers(0, 256, (33, 43, channels), np.uint8)
        pixels[:9] = pixels[:9] // 3 + 60
        planned = PlannedImage(*pixels.shape)
        if name in WARPS:
            function(recording(planned), *arguments, **options)
        else:
            record_colour(planned, name, *arguments)
        painted = np.empty((planned.height, planned.width, channels), np.uint8)
        planned.paint(pixels, IDENTITY[channels], painted, planes=False, vertical_first=True)
        wanted = np.asarray(function(pillow_image(pixels), *arguments, **options))
        if wanted.tobytes() != painted.tobytes():
            return False
    return True
