"""Plan: the way of each image of a data set through kernels, and the transforms that run as written."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.errors import PenstockError
from penstock.image.colour.pillow import IDENTITY
from penstock.image.resizing.pillow import compiled
from penstock.torch.generators import set_states, states
from penstock.torch.vision.planned import Pixels, PlannedImage, Refused, Step, pillow_image
from penstock.torch.vision.settings import TransformSettings
from penstock.torch.vision.sources import source_of
from penstock.torch.vision.table import entry_of, flat, is_table, step_of, uses_random

TESTED = {"torchvision": ("0.26", "0.29"), "Pillow": ("13",)}  # versions without their last numbers
SIZES = (97, 140), (131, 97), (261, 300)  # height and width of the images of the self-test


@dataclass(frozen=True)
class Prefix:
    """The recognised transforms at the begin of a pipeline, and the form of their result."""

    steps: tuple[Step, ...]
    table: npt.NDArray[Any]  # (channels, 256): the result of each byte
    vertical_first: bool
    like: Any  # a tensor of the result's class; None: an image of Pillow
    interleaved: bool = False  # strides of a tensor with interleaved channels

    def planned(self, image: Pixels) -> PlannedImage:
        """Get the parameters of an image."""
        height, width, channels = image.shape
        found = PlannedImage(height, width, channels)
        for step in self.steps:
            step(found)
        return found

    def paint(self, planned: PlannedImage, image: Pixels, out: npt.NDArray[Any]) -> None:
        """Compute a result: channels first, if it is a tensor."""
        table = self.table if self.like is not None else IDENTITY[planned.channels]
        planned.paint(image, table, out, planes=self.like is not None, vertical_first=self.vertical_first)

    def empty(self, planned: PlannedImage) -> npt.NDArray[Any]:
        """Return memory for a result."""
        parts = (len(planned.crops),) if planned.crops else ()
        if self.like is None:
            return np.empty((*parts, planned.height, planned.width, planned.channels), np.uint8)
        return np.empty((*parts, planned.channels, planned.height, planned.width), self.table.dtype)

    def value(self, painted: npt.NDArray[Any]) -> Any:
        """Return the result as torchvision does: an image of Pillow, or a tensor of the same class and strides.

        Several images are a tuple.
        """
        if painted.ndim > 3:
            return tuple(map(self.value, painted))
        if self.like is None:
            return pillow_image(painted)
        torch = import_module("torch")
        if self.interleaved:
            found = torch.from_numpy(painted.transpose(1, 2, 0).copy()).permute(2, 0, 1)
        else:
            found = torch.from_numpy(painted)
        return found if type(self.like) is torch.Tensor else found.as_subclass(type(self.like))


class Plan:
    """The recognised part of a data set.

    Attributes:
        report: A line for each transform.
        rest: The transforms that run as written.
    """

    def __init__(self, dataset: Any) -> None:
        self.source, self._owner = source_of(dataset)
        if self._owner.transform is None:
            message = "it has no transform"
            raise Refused(message)
        self.target_transform = self._owner.target_transform
        transforms = flat(self._owner.transform)
        data = self.source.data
        shapes = [(*size, 3) for size in SIZES] if data is None else [data.shape[1:]] * len(SIZES)
        self.prefix, taken, self.report = recognised(transforms, shapes)
        self.rest = transforms[taken:]
        self._given = self._asked()
        self.settings = TransformSettings(self._owner.transform)

    @property
    def whole(self) -> bool:
        """Return True if kernels do all, so that only torch's generator is used, and only by torchvision."""
        alone = not self.rest and self.target_transform is None and self.prefix.like is not None
        return alone and not any(map(uses_random, flat(self._owner.transform)))

    def is_current(self) -> bool:
        """Return True if no transform was replaced, in microseconds."""
        owner = self._owner
        given = owner.transform is self.settings.transform and owner.target_transform is self.target_transform
        return given and self.settings.hold()

    def holds(self) -> bool:
        """Return True if neither the data set nor its transforms have changed."""
        return self._given is not None and self._given == self._asked()

    def _asked(self) -> Any:
        owner = self._owner
        transforms = flat(owner.transform)
        try:
            settings = pickle.dumps(transforms[: len(transforms) - len(self.rest)])
        except Exception:
            return None
        objects = [owner.transform, owner.target_transform, getattr(owner, "data", None), *transforms]
        return [id(each) for each in objects], settings


def check_versions() -> None:
    """Check that the kernels are tested with these versions.

    Raises:
        Refused: If they are not.
    """
    if not compiled():
        message = "the compiled kernels are missing"
        raise Refused(message)
    for package, name in (("torchvision", "torchvision"), ("PIL", "Pillow")):
        found: str = import_module(package).__version__
        if not found.startswith(tuple(f"{version}." for version in TESTED[name])):
            message = f"{name} {found} is not a tested version ({', '.join(TESTED[name])})"
            _log_once(message)
            raise Refused(message)


@cache
def _log_once(message: str) -> None:
    _LOG.info("Transforms of torchvision run as written: %s.", message)


class _Trial:
    """An image of the self-test, as torchvision and as the kernels have it so far."""

    def __init__(self, shape: tuple[int, int, int], seed: int, *, array: bool) -> None:
        self.pixels = np.random.default_rng(seed).integers(0, 256, shape, np.uint8)
        self.value: Any = self.pixels if array else pillow_image(self.pixels)
        self.planned = PlannedImage(*shape)
        import_module("torch").default_generator.manual_seed(seed)  # of the CPU: others cost 1 ms
        self._states = states()

    def run(self, transform: Any, step: Step | None) -> bool:
        """Run a transform in both ways. Return False if it raises an error.

        Raises:
            Refused: If the generators have other states afterwards.
        """
        set_states(self._states)
        try:
            self.value = transform(self.value)
        except Exception:
            return False
        wanted = states()
        set_states(self._states)
        if step is not None:
            step(self.planned)
        self._states = states()
        if self._states != wanted:
            message = "on this machine, the self-test found other random numbers"
            raise Refused(message)
        return True

    def check(self, prefix: Prefix) -> None:
        """Compare the results.

        Raises:
            Refused: If they differ.
        """
        painted = prefix.empty(self.planned)
        prefix.paint(self.planned, self.pixels, painted)
        value = np.stack(self.value) if type(self.value) is tuple else np.asarray(self.value)
        if prefix.like is None:
            value = value.reshape(painted.shape)
        bits = f"u{painted.itemsize}"
        if value.dtype != painted.dtype or not np.array_equal(value.view(bits), painted.view(bits)):
            message = "on this machine, the self-test found other pixels"
            raise Refused(message)


def recognised(
    transforms: list[Any], shapes: list[tuple[int, int, int]], *, array: bool = False
) -> tuple[Prefix, int, list[str]]:
    """Return the longest recognised prefix, the number of its transforms, and a line for each transform.

    With `array`, the first transform gets an array of numpy, and otherwise an image of Pillow.
    """
    trials: list[_Trial] = []
    prefix = Prefix((), IDENTITY[3], vertical_first=_vertical_first(), like=None)
    by_pixel: list[Any] = []  # transforms that the table replaces
    report: list[str] = []
    tested = True
    with _own_states():
        for taken, transform in enumerate(transforms):
            try:
                kind = "array" if array and not taken else "pillow" if prefix.like is None else "tensor"
                step = step_of(transform, kind)
                trials = trials or [_Trial(shape, seed, array=array) for seed, shape in enumerate(shapes)]
                last = entry_of(transform).last
                late = any(entry_of(each).last > last for each in transforms[:taken])
                if step and any(entry_of(each).several for each in transforms[:taken]):
                    message = "it has no kernel for several images"
                    raise Refused(message)
                if late or (last and prefix.table.dtype != np.float32):
                    message = "it has a kernel for floats only" if last else "values were erased before it"
                    raise Refused(message)
                trials = [trial for trial in trials if trial.run(transform, step)]
                if not trials:
                    message = "it raises an error for the images of the self-test"
                    raise Refused(message)
                by_pixel = by_pixel if step else [*by_pixel, transform]
                longer = _longer(prefix, step, by_pixel, trials[0])
                tested = bool(step) or not any(map(is_table, transforms[taken + 1 : taken + 2]))
                for trial in trials if tested else ():  # a test of the last of several tables tests all of them
                    trial.check(longer)
                prefix = longer
            except (Refused, PenstockError) as error:
                why = error if isinstance(error, Refused) else "the kernels do not take its arguments"
                left = [f"{_named(each)}: as written, like all after it." for each in transforms[taken:]]
                if not tested:
                    prefix, count, report = recognised(transforms[:taken], shapes, array=array)
                    if count < taken:
                        return prefix, count, report + left
                return prefix, taken, [*report, f"{_named(transform)}: as written, because {why}.", *left[1:]]
            report.append(f"{_named(transform)}: in kernels.")
    return prefix, len(transforms), report


def _longer(prefix: Prefix, step: Step | None, by_pixel: list[Any], trial: _Trial) -> Prefix:
    """Return the prefix with one more transform, of which `trial` has the result."""
    steps = (*prefix.steps, step) if step else prefix.steps
    if not by_pixel:
        return replace(prefix, steps=steps)
    torch, channels = import_module("torch"), trial.planned.channels
    value: Any = pillow_image(np.ascontiguousarray(IDENTITY[channels].T[None]))
    for transform in by_pixel:
        value = transform(value)
    if value.dtype not in (torch.uint8, torch.float32) or value.shape != (channels, 1, 256):
        message = f"it gives {value.dtype}"
        raise Refused(message)
    table = np.ascontiguousarray(value.numpy()[:, 0])
    one = trial.value[0] if trial.planned.crops else trial.value
    interleaved = one.stride(0) == 1
    return replace(prefix, steps=steps, table=table, like=value, interleaved=interleaved)


def _vertical_first() -> bool:
    return int(import_module("PIL").__version__.partition(".")[0]) >= 13


def _named(transform: Any) -> str:
    kind = type(transform)
    return f"{'v2.' if '.v2' in kind.__module__ else ''}{kind.__qualname__}"


@contextmanager
def _own_states() -> Iterator[None]:
    """Restore the states of the generators afterwards."""
    kept = states()
    try:
        yield
    finally:
        set_states(kept)


_LOG = logging.getLogger("penstock.torch")
