"""Data sets whose own code runs: kernels take the place of their transforms and of torchvision's loader.

During a batch, the attributes `transform`, `transforms` and `loader` of a data set hold other objects, which give the
same results and use the same random numbers.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

from penstock.store.content_key.made_of import function_text
from penstock.torch.vision.plan import SIZES, Plan, Prefix, check_versions, recognised
from penstock.torch.vision.planned import Pixels, Refused
from penstock.torch.vision.settings import TransformSettings
from penstock.torch.vision.table import flat

_NAMES = ("transform", "transforms", "loader")


class Attribute(NamedTuple):
    """An attribute of a data set, and the object that replaces its value, or None."""

    owner: Any
    name: str
    value: Any
    replacement: Any = None


class OwnCode:
    """The transforms and loaders that kernels replace, in a data set and in the data sets inside it.

    Attributes:
        report: A line for each transform.
        whole: False, because the code of the data set runs.
    """

    whole = False

    def __init__(self, dataset: Any, reason: str) -> None:
        self._dataset, self._seen = dataset, _attributes(dataset)
        self.report: list[str] = []
        self._known: dict[int, Any] = {}  # replacements, by value
        self._kernels: list[KernelTransform] = []
        found = [each._replace(replacement=self._replacement(each)) for each in self._seen]
        self._replaced = [each for each in found if each.replacement is not None]
        if reason or self.report:
            self.report.insert(0, f"The code of the data set runs as written{reason and f': {reason}'}.")

    def __bool__(self) -> bool:
        return bool(self._replaced)

    def _replacement(self, attribute: Attribute) -> Any:
        value, key = attribute.value, id(attribute.value)
        if key not in self._known:
            make = {"transform": self._transform, "transforms": self._pair, "loader": self._loader}[attribute.name]
            self._known[key] = make(value, attribute.owner)
        return self._known[key]

    def _transform(self, transform: Any, owner: Any) -> Any:
        kernels = KernelTransform(transform)
        read_by: Any = getattr(type(owner), "__getitem__", None)
        self.report.append(f"{type(owner).__qualname__} ({function_text(read_by)}):")
        self.report += kernels.report
        if not kernels.ways:
            return None
        self._kernels.append(kernels)
        return kernels.like()

    def _pair(self, transforms: Any, owner: Any) -> Any:
        """Return a StandardTransform with the replaced transform."""
        kind = import_module("torchvision.datasets.vision").StandardTransform
        replaced = self._known.get(id(transforms.transform)) if type(transforms) is kind else None
        return None if replaced is None else kind(replaced, transforms.target_transform)

    def _loader(self, loader: Any, owner: Any) -> Any:
        torchvision, folder = import_module("torchvision"), import_module("torchvision.datasets.folder")
        if loader is not folder.default_loader or torchvision.get_image_backend() != "PIL":
            return None
        if find_spec("simplejpeg") is None:
            self.report.append("default_loader: as written, because simplejpeg is not installed.")
            return None
        from penstock.torch.vision.opened import decoded_image

        def load(path: Any) -> Any:
            image = decoded_image(path)
            return loader(path) if image is None else image

        self.report.append("default_loader: in kernels.")
        return load

    def holds(self) -> bool:
        """Return True if neither the data set nor its transforms have changed."""
        seen = [(id(each.owner), each.name, id(each.value)) for each in self._seen]
        now = [(id(each.owner), each.name, id(each.value)) for each in _attributes(self._dataset)]
        return seen == now and all(each.settings.hold() for each in self._kernels)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Replace the attributes. Several threads may do so at the same time."""
        mine = [each for each in self._replaced if vars(each.owner).get(each.name) is each.value]
        for each in mine:
            vars(each.owner)[each.name] = each.replacement
        try:
            yield
        finally:
            for each in mine:
                if vars(each.owner).get(each.name) is each.replacement:
                    vars(each.owner)[each.name] = each.value


class KernelTransform:
    """A transform in kernels, for images of Pillow that are RGB or L. It runs as written for other arguments."""

    def __init__(self, transform: Any) -> None:
        self._transform, self.settings = transform, TransformSettings(transform)
        transforms = flat(transform)
        self.ways: dict[str, tuple[Prefix, list[Any]]] = {}  # by mode: the kernels, and the transforms after them
        self.report: list[str] = []
        for mode, channels in (("RGB", 3), ("L", 1)):
            prefix, taken, report = recognised(transforms, [(*size, channels) for size in SIZES])
            self.report += [line if mode == "RGB" else f"Mode L: {line}" for line in report if line not in self.report]
            if taken:
                self.ways[mode] = prefix, transforms[taken:]

    def like(self) -> Any:
        """Return an object like the transform, with the same attributes, whose calls take the kernels."""
        transform, kind = self._transform, type(self._transform)
        members = {"__call__": lambda _, *args, **kwargs: self(*args, **kwargs), "__module__": kind.__module__}
        members["__reduce_ex__"] = lambda _, protocol: (copy, (transform,))  # copies run as written
        found: Any = object.__new__(type(kind.__name__, (kind,), members))
        object.__setattr__(found, "__dict__", vars(transform))
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        way = self.ways.get(getattr(args[0], "mode", "")) if len(args) == 1 and not kwargs else None
        if way is None or not self.settings.hold():
            return self._transform(*args, **kwargs)
        torch, prefix = import_module("torch"), way[0]
        kept = torch.get_rng_state(), random.getstate()
        try:
            value = _computed(prefix, _pixels(args[0]))
        except Exception:  # of another class than that of torchvision, or after other random numbers
            torch.set_rng_state(kept[0])
            random.setstate(kept[1])
            return self._transform(*args, **kwargs)
        for transform in way[1]:
            value = transform(value)
        return value


def _computed(prefix: Prefix, pixels: Pixels) -> Any:
    planned = prefix.planned(pixels)
    painted = prefix.empty(planned)
    prefix.paint(planned, pixels, painted)
    return prefix.value(painted)


def plan_of(dataset: Any) -> tuple[Plan | OwnCode | None, str]:
    """Return the plan of a data set, or None; and a report of what runs in kernels, and why not."""
    if "torchvision" not in sys.modules:
        return None, ""
    plan: Plan | OwnCode
    try:
        check_versions()
        try:
            plan = Plan(dataset)
        except Refused as why:
            plan = OwnCode(dataset, str(why))
    except Refused as why:
        return None, f"The data set runs as written: {why}."
    return plan if isinstance(plan, Plan) or plan else None, "\n".join(plan.report)


def _pixels(image: Any) -> Pixels:
    """Return the pixels of an image of Pillow.

    Raises:
        Refused: If it is another object.
    """
    from penstock.torch.vision.opened import DecodedImage, pixels_of

    own = type(image) is DecodedImage or type(image).__module__.startswith("PIL.")
    if not own or not isinstance(image, import_module("PIL.Image").Image) or "transparency" in image.info:
        message = "it is no plain image of Pillow"
        raise Refused(message)
    return pixels_of(image)


def _attributes(dataset: Any) -> list[Attribute]:
    """Return the attributes that may be replaced, of a data set and of the data sets inside it."""
    kind, owners, known = import_module("torch.utils.data").Dataset, [dataset], {id(dataset)}
    found: list[Attribute] = []
    for owner in owners:  # the list grows
        held = getattr(owner, "__dict__", {})
        found += [Attribute(owner, name, held[name]) for name in _NAMES if held.get(name) is not None]
        for value in held.values():
            for each in value if type(value) is list and value and isinstance(value[0], kind) else [value]:
                if isinstance(each, kind) and id(each) not in known:
                    owners.append(each)
                    known.add(id(each))
    return found
