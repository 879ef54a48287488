"""The registry: the only list of builders, by name."""

from __future__ import annotations

import difflib
import importlib
from importlib.metadata import entry_points
from typing import Any, TypeVar, cast

from penstock.catalog.builder import Builder, Reading
from penstock.catalog.data_dir import Given, data_dirs
from penstock.catalog.folder import FolderBuilder, configs_in, find_folder, found_in, prepared_in, versions_in
from penstock.catalog.in_place import InPlace
from penstock.catalog.names import matches, parse_name, snake_case
from penstock.errors import InvalidArgumentError, InvalidTypeError

# Name → "module:class". A builder is imported on first use.
_BUILDERS = {
    "ag_news_subset": "penstock.catalog.builders.ag_news_subset:AGNewsSubset",
    "caltech101": "penstock.catalog.builders.caltech101:Caltech101",
    "cats_vs_dogs": "penstock.catalog.builders.cats_vs_dogs:CatsVsDogs",
    "cifar10": "penstock.catalog.builders.cifar10:Cifar10",
    "cifar100": "penstock.catalog.builders.cifar100:Cifar100",
    "emnist": "penstock.catalog.builders.emnist:EMNIST",
    "fashion_mnist": "penstock.catalog.builders.fashion_mnist:FashionMNIST",
    "food101": "penstock.catalog.builders.food101:Food101",
    "imagenette": "penstock.catalog.builders.imagenette:Imagenette",
    "imdb_reviews": "penstock.catalog.builders.imdb_reviews:IMDBReviews",
    "kmnist": "penstock.catalog.builders.kmnist:KMNIST",
    "mnist": "penstock.catalog.builders.mnist:MNIST",
    "oxford_flowers102": "penstock.catalog.builders.oxford_flowers102:OxfordFlowers102",
    "oxford_iiit_pet": "penstock.catalog.builders.oxford_iiit_pet:OxfordIIITPet",
    "shapes": "penstock.catalog.builders.shapes:Shapes",
    "speech_commands": "penstock.catalog.builders.speech_commands:SpeechCommands",
    "stl10": "penstock.catalog.builders.stl10:Stl10",
    "svhn_cropped": "penstock.catalog.builders.svhn_cropped:SvhnCropped",
    "tf_flowers": "penstock.catalog.builders.tf_flowers:TfFlowers",
}
# Folders of the user, which are read without a copy.
_IN_PLACE = {
    "coco_folder": "penstock.catalog.builders.coco_folder:CocoFolder",
    "csv_folder": "penstock.catalog.builders.table_folder:CsvFolder",
    "image_folder": "penstock.catalog.builders.image_folder:ImageFolder",
    "parquet_folder": "penstock.catalog.builders.table_folder:ParquetFolder",
}
ENTRY_POINTS = "penstock.builders"

Kind = TypeVar("Kind", bound=type[Builder])
_registered: dict[str, type[Builder]] = {}


def register(kind: Kind) -> Kind:
    """Register a builder class of your own, so that `load` and `builder` know its name. Use it as a decorator.

    An installed package may instead name its builders as entry points of the group `penstock.builders`.

    Args:
        kind: The builder class.

    Returns:
        The same class.

    Example:
        >>> from penstock.catalog import Builder, register
        >>> @register
        ... class Squares(Builder):  # doctest: +SKIP
        ...     VERSION = "1.0.0"
    """
    if not (isinstance(kind, type) and issubclass(kind, Builder)):
        message = f"register decorates a class derived from Builder, got {kind!r}."
        raise InvalidTypeError(message, hint="class MyData(penstock.catalog.Builder): …")
    _registered[snake_case(kind.__name__)] = kind
    return kind


def list_builders() -> list[str]:
    """Return the sorted names of all builders, registered ones too.

    Returns:
        A list of names.

    Example:
        >>> "shapes" in list_builders()
        True
    """
    return sorted({*_BUILDERS, *_registered, *_installed()})


def builder(
    name: str, *, data_dir: Given = None, config: Any = None, version: str | None = None, **builder_kwargs: Any
) -> Reading:
    """Return the builder of a data set.

    A name without a builder is looked for among the prepared data in `data_dir`, and by default also in tfds's folder.
    The builders "image_folder", "coco_folder", "csv_folder" and "parquet_folder" read the files in `data_dir` as they
    are.

    Args:
        name: "name", "name/config", "name:1.*.*" or "name/config:1.2.3".
        data_dir: As in `load`.
        config: Name of the variant.
        version: Version of the data set.
        **builder_kwargs: Further arguments of the builder.

    Returns:
        The builder.

    Raises:
        InvalidArgumentError: If there is no data set of this name, config or version.

    Example:
        >>> builder("shapes", num_examples=100).info.supervised_keys
        ('image', 'label')
    """
    parsed = parse_name(name)
    config = config if config is not None else parsed.config
    version = version if version is not None else parsed.version
    arguments = {**parsed.arguments, **builder_kwargs}
    dirs = data_dirs(data_dir)
    kind = builder_class(parsed.name)
    if kind is None and parsed.name in _IN_PLACE and config is None and matches(InPlace.VERSION, version):
        return _named(_IN_PLACE[parsed.name])(data_dir, **arguments)
    if kind is not None and matches(kind.VERSION, version) and _makes(kind, config):
        if config is not None:
            arguments["config"] = config
        return kind(data_dir=data_dir, **arguments)
    folder = find_folder(dirs, parsed.name, config if isinstance(config, str) else None, version)
    if folder is not None:
        return FolderBuilder(folder)
    if kind is None:
        there = found_in(dirs, parsed.name)
        raise _not_as_asked(name, there) if there else _unknown(parsed.name, dirs)
    if not matches(kind.VERSION, version):
        there = [kind.VERSION, *versions_in(dirs, parsed.name, config)]
        message = f"there is no version {version} of {parsed.name!r}."
        hint = f"There is {', '.join(dict.fromkeys(there))}; * stands for any number."
        raise InvalidArgumentError(message, hint=hint)
    raise _no_config(parsed.name, config, kind, dirs)


def _makes(kind: type[Builder], config: Any) -> bool:
    return not isinstance(config, str) or any(one.name == config for one in kind.BUILDER_CONFIGS)


def builder_class(name: str) -> type[Builder] | None:
    """Return the class that builds the data set `name`, also for "module:Class", or None."""
    if name in _registered:
        return _registered[name]
    if name in _BUILDERS:
        return class_at(_BUILDERS[name])
    found = _installed().get(name)
    return None if found is None else cast(type[Builder], found.load())


def class_at(path: str) -> type[Builder]:
    """Return the builder at "module:Class".

    Raises:
        InvalidArgumentError: If there is no such module or class.
        InvalidTypeError: If the class is not a Builder.
    """
    module_name, _, class_name = path.partition(":")
    try:
        kind = _named(path)
    except ModuleNotFoundError as error:
        message = f"there is no module {error.name!r}, which {path!r} names."
        raise InvalidArgumentError(
            message, hint="It must be importable: installed, or in the current folder."
        ) from error
    except AttributeError as error:
        message = f"the module {module_name!r} has no class {class_name!r}."
        raise InvalidArgumentError(message, hint="Write it as module:Class.") from error
    if not (isinstance(kind, type) and issubclass(kind, Builder)):
        message = f"{path!r} is not a Builder but {kind!r}."
        raise InvalidTypeError(message, hint="Derive it from penstock.catalog.Builder.")
    return kind


def _named(path: str) -> Any:
    """Return the object at "module:name"."""
    module_name, _, name = path.partition(":")
    return getattr(importlib.import_module(module_name), name)


def _installed() -> dict[str, Any]:
    return {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}


def _unknown(name: str, dirs: list[Any]) -> InvalidArgumentError:
    names = [*list_builders(), *_IN_PLACE, *prepared_in(dirs)]
    near = difflib.get_close_matches(name, names, n=3)
    message = f"There is no data set {name!r} in the catalog."
    known = f"It holds {', '.join(list_builders())}."
    prepared = [one for one in prepared_in(dirs) if one not in list_builders()]
    if prepared:
        known += f" Prepared on disk: {', '.join(prepared)}."
    known += f" Folders of yours are read as {', '.join(_IN_PLACE)}. Labelled photographs without a download: 'shapes'."
    return InvalidArgumentError(message, hint=f"Did you mean {_or(near)}? {known}" if near else known)


def _not_as_asked(name: str, there: list[str]) -> InvalidArgumentError:
    message = f"the data set {name!r} is not prepared, and there is no builder here that could."
    return InvalidArgumentError(message, hint=f"Prepared on disk: {', '.join(there)}.")


def _no_config(name: str, config: Any, kind: type[Builder], dirs: list[Any]) -> InvalidArgumentError:
    known = [one.name for one in kind.BUILDER_CONFIGS]
    hint = f"Its configs are {', '.join(map(repr, known))}." if known else "Its builder has none."
    prepared = [one for one in configs_in(dirs, name) if one not in known]
    if prepared:
        hint += f" Prepared on disk: {', '.join(map(repr, prepared))}."
    return InvalidArgumentError(f"the data set {name!r} has no config {config!r}.", hint=hint)


def _or(names: list[str]) -> str:
    return " or ".join(map(repr, dict.fromkeys(names)))
