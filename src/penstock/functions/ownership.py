"""Ownership: is code the user's own, or does it come with Python, penstock or an installed package?

The folder of the code decides, never its name: a project's `regex.py` is the user's, although a package has the same
name. Code belongs to a library if its file is in penstock, in the standard library, or in a folder of installed
packages (`site-packages`, `dist-packages`, and the folders that `site` and `sysconfig` name). Code that is frozen or
built into the interpreter belongs to a library as well. All other code is the user's: scripts, notebook cells, executed
strings, projects that are installed in place, and namespace packages and zip files in other folders.

In doubt the code is the user's: it is then analysed, and operations that cannot be analysed count as side effects.

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
MAIN = ("__main__", "__mp_main__")  # the main script, and its name in processes that multiprocessing spawns
_INSTALLED = ("site-packages", "dist-packages")
_OURS = str(Path(__file__).parents[1])
_HEAP_TYPE = 1 << 9  # flag of a class that is created at run time, as all classes written in Python are
_TYPED = ("<doctest", "<ipython", "<stdin")  # typed code is the user's, also in a doctest of penstock
_MOST_FILES = 10_000  # most files whose owner is remembered


def is_users(value: Any) -> bool:
    """Return True for a function, class or module of the user, and for an object whose class is the user's."""
    kind = type(value)
    if kind is FunctionType:
        return is_users_code(value.__code__, value.__module__)
    if issubclass(kind, ModuleType):
        return _is_users_module(value)
    if issubclass(kind, type):
        kind = value
    return bool(kind.__flags__ & _HEAP_TYPE) and is_users_path(str(kind.__module__))


def is_users_code(code: CodeType, module: str | None) -> bool:
    """Return True if code is the user's. Code from a string belongs to the owner of its module."""
    file = code.co_filename
    if not file.startswith("<"):
        return is_users_file(file)
    if file.startswith("<frozen "):
        return False
    if file.startswith(_TYPED):
        return True
    return not isinstance(module, str) or is_users_path(module)


def is_users_path(path: str) -> bool:
    """Return True if a dotted path leads to a module or object of the user, or to no module. Nothing is imported."""
    return _lies_with_user(path) is not False


_asked_once = functools.cache(is_users_path)  # for modules of penstock: a record can have 500 features


def is_installed_path(path: str) -> bool:
    """Return True if a dotted path leads to a module or object of a library, or to no module."""
    return _lies_with_user(path) is not True


def _lies_with_user(path: str) -> bool | None:
    """Return True for a path of the user, False for one of a library, and None if the path leads to no module."""
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
    """Return True if a file or folder of code is outside of the folders of libraries."""
    if any(part in _INSTALLED for part in PurePath(file).parts):
        return False
    return not any(file == folder or file.startswith(folder + os.sep) for folder in _library_folders())


def is_penstocks(value: Any) -> bool:
    """Return True for a function or class of penstock, and for a primitive that is called like a function."""
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
    """Return True for a frozen dataclass of penstock. Objects such as feature specs and dtypes are constants."""
    return is_penstocks(kind) and is_dataclass(kind) and kind.__dataclass_params__.frozen  # type: ignore[attr-defined]


def _is_users_module(module: ModuleType) -> bool:
    names = vars(module)  # reading an attribute of the module could run its code
    if names.get("__name__") in MAIN:
        return True
    file = names.get("__file__")
    if isinstance(file, str):
        return is_users_file(file)
    return _is_users_spec(names.get("__spec__"))


def _is_users_inside(module: ModuleType, rest: str) -> bool:
    """Return True if an object in a loaded module is the user's. A submodule may not be loaded yet."""
    names = vars(module)
    if rest and "__path__" in names and rest.partition(".")[0] not in names:
        spec = _found(f"{names.get('__name__')}.", rest, names["__path__"])
        if spec is not None:
            return _is_users_spec(spec)
    return _is_users_module(module)


def _is_users_spec(spec: Any) -> bool:
    """Return True if the spec of a module leads to the user's code. A module without a spec is the user's."""
    if not isinstance(spec, ModuleSpec):
        return True
    if spec.origin in ("built-in", "frozen"):
        return False
    if spec.has_location and spec.origin:
        return is_users_file(spec.origin)
    places = _texts(spec.submodule_search_locations)  # a namespace package can have several folders
    return not places or any(map(is_users_file, places))


def _found(package: str, path: str, places: Any) -> ModuleSpec | None:
    """Return the spec of the longest dotted path that names a module. Nothing is imported; `package` ends in a dot."""
    first, _, rest = path.partition(".")
    try:
        finders = sys.meta_path if places is None else [PathFinder]
        specs = (finder.find_spec(package + first, None if places is None else _texts(places)) for finder in finders)
        spec = next((found for found in specs if found is not None), None)
    except Exception:  # a finder of another library may raise any error
        return None
    if spec is None or not rest or spec.submodule_search_locations is None:
        return spec
    return _found(f"{package}{first}.", rest, spec.submodule_search_locations) or spec


def _texts(places: Any) -> list[str]:
    try:
        return [place for place in places or () if isinstance(place, str)]
    except Exception:  # the parent package of the namespace is gone
        return []


@functools.cache
def _library_folders() -> tuple[str, ...]:
    """Return the folders of the interpreter and of installed packages, as configured and with links resolved."""
    import site
    import sysconfig

    found = [_OURS, str(Path(os.__file__).parent)]
    found += [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    found += [*site.getsitepackages(), site.getusersitepackages()]
    version = f"{sys.version_info.major}{sys.version_info.minor}"
    found += [str(Path(root, sys.platlibdir, f"python{version}.zip")) for root in (sys.prefix, sys.base_prefix)]
    return tuple(dict.fromkeys([*found, *map(os.path.realpath, found)]))
