"""Ownership: whether code is the user's own, or comes with Python, penstock or an installed package.

It follows from where the code lies, never from its name: a project's `regex.py` is the user's, though a package bears
that name. Code counts as a library's where its file lies in penstock, in the standard library, or in a folder that
installers fill (`site-packages`, `dist-packages`, what `site` and `sysconfig` name); and where it is frozen into the
interpreter or built into it. All else is the user's: scripts, notebook cells, text that was executed, projects that are
installed in place, namespace packages and zip files of any other folder.

In doubt the answer is "the user's": that code is looked into, and what cannot be seen there is taken to do anything.

>>> import json
>>> is_users(json.dumps), is_users(lambda x: x), is_users_path("numpy.random")
(False, True, False)
"""

from __future__ import annotations

import functools
import os
import sys
from dataclasses import is_dataclass
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path, PurePath
from types import CodeType, FunctionType, ModuleType
from typing import Any

STANDARD = sys.stdlib_module_names
MAIN = ("__main__", "__mp_main__")  # the main script, and its name in processes that multiprocessing has spawned
_INSTALLED = ("site-packages", "dist-packages")
_OURS = str(Path(__file__).parents[1])
_HEAP_TYPE = 1 << 9  # a class that was made at run time, as all that are written in Python are
_TYPED = ("<doctest", "<ipython", "<stdin")  # wherever it was typed in: an example in penstock is not its code
_MOST_FILES = 10_000  # whose place is remembered


def is_users(value: Any) -> bool:
    """Whether a function, class or module is the user's own; of any other object, whether its class is."""
    kind = type(value)
    if kind is FunctionType:
        return is_users_code(value.__code__, value.__module__)
    if issubclass(kind, ModuleType):
        return _is_users_module(value)
    if issubclass(kind, type):
        kind = value
    return bool(kind.__flags__ & _HEAP_TYPE) and is_users_path(str(kind.__module__))


def is_users_code(code: CodeType, module: str | None) -> bool:
    """Whether code is the user's; what a module has made from text lies where the module lies."""
    file = code.co_filename
    if not file.startswith("<"):
        return is_users_file(file)
    if file.startswith("<frozen "):
        return False
    if file.startswith(_TYPED):
        return True
    return not isinstance(module, str) or is_users_path(module)


def is_users_path(path: str) -> bool:
    """Whether a module, or what a module holds, is the user's, by its dotted path; nothing is imported to find it."""
    return _lies_with_user(path) is not False


_asked_once = functools.cache(is_users_path)  # for penstock's modules, of which one has 500 features of a record


def is_installed_path(path: str) -> bool:
    """Whether a dotted path is of a library, or of no module that can be found."""
    return _lies_with_user(path) is not True


def _lies_with_user(path: str) -> bool | None:
    """Whether it lies with the user, None where no such module is to be found."""
    if path.partition(".")[0] in MAIN:
        return True
    name, rest = path, ""
    while name:
        module = sys.modules.get(name)
        if isinstance(module, ModuleType):
            return _is_users_inside(module, rest)
        name, _, part = name.rpartition(".")
        rest = f"{part}.{rest}" if rest else part
    spec = _found("", path, None)
    return None if spec is None else _is_users_spec(spec)


@functools.lru_cache(_MOST_FILES)
def is_users_file(file: str) -> bool:
    """Whether a file or folder of code lies where the user's lie."""
    if any(part in _INSTALLED for part in PurePath(file).parts):
        return False
    return not any(file == folder or file.startswith(folder + os.sep) for folder in _library_folders())


def is_penstocks(value: Any) -> bool:
    """Whether a function, a class, or an object that stands for a function (a primitive) is penstock's own."""
    module = getattr(value, "__module__", None)
    if not isinstance(module, str) or module.partition(".")[0] != "penstock":
        return False
    return not (is_users(value) if type(value) is FunctionType else _asked_once(module))


def is_plain_object(value: Any) -> bool:
    """Return True for a user's object that stores all its attributes and computes none."""
    kind = type(value)
    return (
        kind.__dictoffset__ != 0
        and vars(object)["__getattribute__"] is getattr(kind, "__getattribute__", None)
        and not hasattr(kind, "__getattr__")
        and not isinstance(value, type)
        and all(map(is_users, kind.__mro__[:-1]))
    )


def is_frozen(kind: type) -> bool:
    """Return whether a class is a frozen dataclass of penstock's: feature specs, dtypes and the like are constants."""
    return is_penstocks(kind) and is_dataclass(kind) and kind.__dataclass_params__.frozen  # type: ignore[attr-defined]


def _is_users_module(module: ModuleType) -> bool:
    names = vars(module)  # what it says of itself: to ask for an attribute may run its code
    if names.get("__name__") in MAIN:
        return True
    file = names.get("__file__")
    if isinstance(file, str):
        return is_users_file(file)
    return _is_users_spec(names.get("__spec__"))


def _is_users_inside(module: ModuleType, rest: str) -> bool:
    """What a loaded module holds is where it is itself, unless it is a module of its folder that is not loaded yet."""
    names = vars(module)
    if rest and "__path__" in names and rest.partition(".")[0] not in names:
        spec = _found(f"{names.get('__name__')}.", rest, names["__path__"])
        if spec is not None:
            return _is_users_spec(spec)
    return _is_users_module(module)


def _is_users_spec(spec: Any) -> bool:
    """Whether a module lies with the user, by how the import found it; one that was made by hand does."""
    if not isinstance(spec, ModuleSpec):
        return True
    if spec.origin in ("built-in", "frozen"):
        return False
    if spec.has_location and spec.origin:
        return is_users_file(spec.origin)
    places = _texts(spec.submodule_search_locations)  # of a namespace package, which may lie in several folders
    return not places or any(map(is_users_file, places))


def _found(package: str, path: str, places: Any) -> ModuleSpec | None:
    """Where the import of a dotted path would find it, as far as it names modules; `package` ends in a dot."""
    first, _, rest = path.partition(".")
    try:
        finders = sys.meta_path if places is None else [PathFinder]
        specs = (finder.find_spec(package + first, None if places is None else _texts(places)) for finder in finders)
        spec = next((found for found in specs if found is not None), None)
    except Exception:  # a finder of somebody's, which may do anything
        return None
    if spec is None or not rest or spec.submodule_search_locations is None:
        return spec
    return _found(f"{package}{first}.", rest, spec.submodule_search_locations) or spec


def _texts(places: Any) -> list[str]:
    try:
        return [place for place in places or () if isinstance(place, str)]
    except Exception:  # a namespace whose parent package is gone
        return []


@functools.cache
def _library_folders() -> tuple[str, ...]:
    """Folders of the interpreter and of installed packages, as they are spelled and as they are without links."""
    import site
    import sysconfig

    found = [_OURS, str(Path(os.__file__).parent)]
    found += [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    found += [*site.getsitepackages(), site.getusersitepackages()]
    version = f"{sys.version_info.major}{sys.version_info.minor}"
    found += [str(Path(root, sys.platlibdir, f"python{version}.zip")) for root in (sys.prefix, sys.base_prefix)]
    return tuple(dict.fromkeys([*found, *map(os.path.realpath, found)]))
