"""Data sets whose own code runs: kernels take the place of their transforms and of their decoders.

During a batch, the variables that hold transforms and decoders hold other objects, which give the same results and use
the same random numbers. These are attributes of the data set, and globals and closures of its `__getitem__`.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import copy
from importlib import import_module
from importlib.util import find_spec
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np

from penstock.forked import new_lock
from penstock.store.content_key.made_of import function_text
from penstock.torch.vision.huggingface import decoder_of, image_features, is_huggingface, transforming
from penstock.torch.vision.plan import SIZES, Plan, Prefix, check_versions, recognised
from penstock.torch.vision.planned import Pixels, Refused
from penstock.torch.vision.settings import TransformSettings
from penstock.torch.vision.table import flat
from penstock.trace.drawing import is_worker

_MOST = 16  # transforms whose kernels are stored
_LATEST: dict[int, KernelTransform] = {}  # by their addresses
_LOCK = new_lock()
_ARRAY = "array"  # in the place of the mode of an image
_NAMES = ("transform", "transforms", "loader")


class Attribute(NamedTuple):
    """A variable that holds a transform or a decoder, and the object that replaces its value, or None.

    `owner` is a data set, a feature of Hugging Face, or globals or a cell with a variable of `function`.
    """

    owner: Any
    name: str
    value: Any  # None if the variable does not exist
    function: Any = None
    replacement: Any = None

    def holds(self, value: Any) -> bool:
        return _namespace(self.owner).get(self.name) is value

    def set(self, value: Any) -> None:
        if value is None:
            del _namespace(self.owner)[self.name]
        else:
            _namespace(self.owner)[self.name] = value


class _Cell:
    """The variable of a closure, as a namespace."""

    def __init__(self, cell: CellType) -> None:
        self._cell = cell

    def get(self, _: str) -> Any:
        try:
            return self._cell.cell_contents
        except ValueError:  # the variable has no value yet
            return None

    def __setitem__(self, _: str, value: Any) -> None:
        self._cell.cell_contents = value


def _namespace(owner: Any) -> Any:
    return _Cell(owner) if type(owner) is CellType else owner if type(owner) is dict else getattr(owner, "__dict__", {})


class OwnCode:
    """The transforms and loaders that kernels replace, in a data set and in the data sets inside it.

    Attributes:
        report: A line for each transform.
        whole: False, because the code of the data set runs.
    """

    whole = False

    def __init__(self, dataset: Any, reason: str | None) -> None:
        self._dataset, self._seen = dataset, _attributes(dataset)
        self.report: list[str] = []
        self._known: dict[int, Any] = {}  # replacements, by value
        self._kernels: list[KernelTransform] = []
        found = [each._replace(replacement=self._replacement(each)) for each in self._seen]
        self._replaced = [each for each in found if each.replacement is not None]
        self._lock, self._users = new_lock(), 0  # threads for which the values are replaced
        self._mine: list[Attribute] = []  # what they replaced
        if reason or (self.report and reason is not None):
            self.report.insert(0, f"The code of the data set runs as written{reason and f': {reason}'}.")

    def __bool__(self) -> bool:
        return bool(self._replaced)

    def _replacement(self, attribute: Attribute) -> Any:
        value, key = attribute.value, id(attribute.value)
        if value is None:
            return self._decoder(attribute)
        if key not in self._known:
            make = {"transforms": self._pair, "loader": self._loader}.get(attribute.name, self._transform)
            self._known[key] = make(value, attribute)
        return self._known[key]

    def _decoder(self, attribute: Attribute) -> Any:
        found = decoder_of(attribute.owner)
        way = "as written, because simplejpeg is not installed" if found is None else "in kernels"
        self.report.append(f"Decoding of the column {attribute.function!r}: {way}.")
        return found

    def _transform(self, transform: Any, attribute: Attribute) -> Any:
        kernels, owner = kernels_of(transform), attribute.owner
        name, used_by = type(owner).__qualname__, _called(type(owner))
        if attribute.function is not None:
            name, used_by = attribute.name, attribute.function
        self.report.append(f"{name} ({function_text(used_by)}):")
        self.report += kernels.report
        if not kernels.ways:
            return None
        self._kernels.append(kernels)
        return kernels.like()

    def _pair(self, transforms: Any, attribute: Attribute) -> Any:
        """Return a StandardTransform with the replaced transform."""
        if _is_transform(transforms):
            return self._transform(transforms, attribute)
        kind = import_module("torchvision.datasets.vision").StandardTransform
        replaced = self._known.get(id(transforms.transform)) if type(transforms) is kind else None
        return None if replaced is None else kind(replaced, transforms.target_transform)

    def _loader(self, loader: Any, _: Attribute) -> Any:
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
        """Replace the values. Several threads may do so at the same time: the last one restores the values."""
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._mine = [each for each in self._replaced if each.holds(each.value)]
                for each in self._mine:
                    each.set(each.replacement)
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                for each in () if self._users else self._mine:
                    if each.holds(each.replacement):
                        each.set(each.value)


class KernelTransform:
    """A transform in kernels, for images of Pillow that are RGB or L, and arrays of their pixels.

    It runs as written for other arguments.
    """

    def __init__(self, transform: Any) -> None:
        self._transform, self.settings = transform, TransformSettings(transform)
        transforms = flat(transform)
        self.ways: dict[str, tuple[Prefix, list[Any]]] = {}  # by mode: the kernels, and the transforms after them
        self.report: list[str] = []
        for mode, name, channels in (("RGB", "", 3), ("L", "Mode L: ", 1), (_ARRAY, "Arrays: ", 3)):
            shapes = [(*size, channels) for size in SIZES]
            prefix, taken, report = recognised(transforms, shapes, array=mode == _ARRAY)
            if taken:
                self.ways[mode] = prefix, transforms[taken:]
            if mode == _ARRAY:
                self.array_report = report
            if taken or mode != _ARRAY:
                self.report += [name + line for line in report if line not in self.report]

    def like(self) -> Any:
        """Return an object like the transform, with the same attributes, whose calls take the kernels."""
        transform, kind = self._transform, type(self._transform)
        members = {"__call__": lambda _, *args, **kwargs: self(*args, **kwargs), "__module__": kind.__module__}
        members["__reduce_ex__"] = lambda _, protocol: (copy, (transform,))  # copies run as written
        found: Any = object.__new__(type(kind.__name__, (kind,), members))
        object.__setattr__(found, "__dict__", vars(transform))
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        image = args[0] if len(args) == 1 and not kwargs else None
        way = self.ways.get(_ARRAY if type(image) is np.ndarray else getattr(image, "mode", ""))
        if way is None or not self.settings.hold():
            return self._transform(*args, **kwargs)
        torch, prefix = import_module("torch"), way[0]
        kept = (torch.get_rng_state(), random.getstate()) if prefix.steps else ()
        try:
            value = _computed(prefix, _pixels(image))
        except Exception:  # of another class than that of torchvision, or after other random numbers
            if kept:
                torch.set_rng_state(kept[0])
                random.setstate(kept[1])
            return self._transform(*args, **kwargs)
        for transform in way[1]:
            value = transform(value)
        return value


def kernels_of(transform: Any) -> KernelTransform:
    """Return the kernels of a transform. Those of the latest transforms are stored: the self-test takes time."""
    with _LOCK:
        found = _known(transform) or KernelTransform(transform)
        _LATEST.pop(id(transform), None)
        _LATEST[id(transform)] = found
        if len(_LATEST) > _MOST:
            del _LATEST[next(iter(_LATEST))]
        return found


def _known(transform: Any) -> KernelTransform | None:
    found = _LATEST.get(id(transform))
    return found if found is not None and found.settings.transform is transform and found.settings.hold() else None


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


def around(dataset: Any) -> tuple[Callable[[], AbstractContextManager[None]], str]:
    """Return a function that puts kernels in place while a data set is read, and a report of what runs in kernels."""
    try:
        check_versions()
    except Refused as why:
        return nullcontext, f"The data set runs as written: {why}."
    found = OwnCode(dataset, "")
    return found.in_place, "\n".join(found.report)


def in_kernels(function: Callable[..., Any]) -> tuple[Callable[..., Any], str]:
    """Return a function with the same results, for which kernels run transforms; and a report of what runs in kernels.

    The function is a transform, or calls transforms. Other functions are returned as they are, with an empty report.
    """
    alone = _is_transform(function)
    transforms = [function] if alone else [each.value for each in _attributes(function) if _is_transform(each.value)]
    if not transforms:
        return function, ""
    try:
        check_versions()
        if is_worker() and not all(map(_known, transforms)):
            message = "their self-test would use random generators in a worker thread"
            raise Refused(message)
    except Refused as why:
        return function, f"Transforms of torchvision run as written: {why}."
    if alone:
        kernels = kernels_of(function)
        return kernels if _ARRAY in kernels.ways else function, "\n".join(kernels.array_report)
    own = OwnCode(function, None)

    def called(*args: Any) -> Any:
        with own.in_place():
            return function(*args)

    return called if own else function, "\n".join(own.report)


def _pixels(image: Any) -> Pixels:
    """Return the pixels of an image of Pillow, or of an array of RGB pixels.

    Raises:
        Refused: If it is another object.
    """
    if type(image) is np.ndarray and image.dtype == np.uint8 and image.shape[2:] == (3,):
        return np.ascontiguousarray(image)
    from penstock.torch.vision.opened import DecodedImage, pixels_of

    own = type(image) is DecodedImage or type(image).__module__.startswith("PIL.")
    if not own or not isinstance(image, import_module("PIL.Image").Image) or "transparency" in image.info:
        message = "it is no plain image of Pillow"
        raise Refused(message)
    return pixels_of(image)


def _attributes(dataset: Any) -> list[Attribute]:
    """Return the variables that may be replaced, of a data set, its functions and the data sets inside it."""
    owners, known = [dataset], {id(dataset)}
    found: list[Attribute] = []
    for owner in owners:  # the list grows
        held = getattr(owner, "__dict__", {})
        names = [*_NAMES, *(name for name, value in held.items() if name not in _NAMES and _is_transform(value))]
        found += [Attribute(owner, name, held[name]) for name in names if held.get(name) is not None]
        found += _used(owner if isinstance(owner, FunctionType) else _called(type(owner)))
        lists = [value if type(value) is list and value else [value] for value in held.values()]
        inside = [each for items in lists if _is_dataset(items[0]) for each in items]
        if isinstance(owner, MethodType):
            inside = [owner.__self__, owner.__func__]
        if is_huggingface(owner):
            found += [Attribute(each, "decode_example", None, column) for column, each in image_features(owner)]
            inside = transforming(owner)
        for each in inside:
            if id(each) not in known:
                owners.append(each)
                known.add(id(each))
    return found


def _is_dataset(value: Any) -> bool:
    return isinstance(value, import_module("torch.utils.data").Dataset) or is_huggingface(value)


def _is_transform(value: Any) -> bool:
    return callable(value) and type(value).__module__.startswith("torchvision.transforms.")


def _called(kind: type) -> Any:
    return getattr(kind, "__getitem__", None) or getattr(kind, "__call__", None)  # noqa: B004 - its function


def _used(function: Any) -> list[Attribute]:
    """Return the globals and closures of a function that hold transforms of torchvision."""
    if not isinstance(function, FunctionType):
        return []
    names, cells = function.__code__.co_freevars, function.__closure__ or ()
    found = [Attribute(cell, name, _Cell(cell).get(name), function) for name, cell in zip(names, cells, strict=True)]
    used = function.__globals__
    found += [Attribute(used, name, used.get(name), function) for name in _global_names(function.__code__)]
    return [each for each in found if _is_transform(each.value)]


def _global_names(code: CodeType) -> dict[str, None]:
    """Return the names in a function and in the functions inside it, in order."""
    found = dict.fromkeys(code.co_names)
    for each in code.co_consts:
        if isinstance(each, CodeType):
            found |= _global_names(each)
    return found
