"""Kernels: the compiled functions of one module, which take numpy arrays.

A library is loaded when it is first needed. It names its kernels and has a digest of its sources. If a library is
missing or does not fit, the plain versions run and a warning is issued. Nothing is compiled here.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import warnings
import weakref
from collections.abc import Callable, Iterable
from functools import cache
from operator import itemgetter
from pathlib import Path
from struct import Struct
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from penstock.forked import new_lock

FORMAT = 1  # format of libraries and calls; a new number makes older libraries unusable
# written by `tools/build_kernels.py`, with one folder per level of processors
BUILT = Path(__file__).with_name("built")
_PACKAGE = Path(__file__).parents[1]
_ARRAYS = tuple.__basicsize__  # offset in bytes of the addresses of a tuple's items
_PROCESSOR = "penstock.native.processor_native"
_LEVELS = "x86-64-v4", "x86-64-v3", "x86-64-v2"


class Kernels:
    """The kernels of the module `name`, which defines them in Python. That module is not imported here. Thread-safe."""

    ASKED: ClassVar[weakref.WeakSet[Kernels]] = weakref.WeakSet()  # kernels without a usable library

    def __init__(self, name: str) -> None:
        self.name = name
        self.reason = ""  # the reason why plain versions run
        self._lock = new_lock()
        self._functions: Any = None

    def loaded(self) -> Any:
        """Return the kernels as attributes of an object, or None if the plain version must run."""
        if self._functions is None and not self.reason:
            with self._lock:
                if self._functions is None and not self.reason:
                    self._load()
        return self._functions

    def _load(self) -> None:
        try:
            self._functions = _functions(self.name, level())
        except OSError as error:
            self.reason = str(error)
            self.ASKED.add(self)
            _warn_once(self.reason)


def plain_versions() -> list[str]:
    """List the kernels that are missing in this process, each with the reason. Their plain versions run.

    >>> plain_versions()
    []
    """
    return sorted(f"{kernels.name}: {kernels.reason}" for kernels in Kernels.ASKED)


def serving() -> str:
    """Describe the libraries that this process uses, and the missing ones.

    >>> serving().startswith("compiled for")
    True
    """
    try:
        best = level()
    except OSError as error:
        return f"plain versions, which are slower: {error}"
    names, missing = [file.stem for file in sorted((folder() / best).glob("*.so"))], []
    for name in names:
        try:
            _functions(name, best)
        except OSError as error:
            missing.append(str(error))
    there = f"compiled for {best}, {len(names) - len(missing)} of {len(names)} libraries in {folder() / best}"
    return ". ".join([there, *missing])


@cache
def _warn_once(reason: str) -> None:
    message = (
        f"penstock runs without some of its compiled kernels, and slower: {reason} Installing a wheel of penstock "
        f"brings them; in a clone `make demo`, `make test` or `python tools/build_kernels.py` builds them."
    )
    warnings.warn(message, RuntimeWarning, stacklevel=5)


def folder() -> Path:
    """Return the folder of the libraries. It has a folder for each level of processors."""
    return Path(os.environ.get("PENSTOCK_KERNELS", BUILT))


@cache
def level() -> str:
    """Return the best level that this processor supports and that libraries exist for.

    Raises OSError if there are no libraries, or if the libraries cannot read arrays of this numpy.
    """
    if not np.__version__.startswith("2."):
        message = f"Kernels read arrays of numpy 2, this is numpy {np.__version__}."
        raise OSError(message)
    base = next((each for each in ("generic", _LEVELS[-1]) if _file(_PROCESSOR, each).exists()), None)
    if base is None:
        message = f"There are no kernels for this machine in {folder()}."
        raise OSError(message)
    known, found = np.arange(6, dtype=np.int32).reshape(2, 3), np.zeros(1, np.int64)
    look = _functions(_PROCESSOR, base).look
    try:
        number = look(known, found)
    except TypeError:  # the layout of arrays differs
        number = 0
    if number != 15:
        message = f"Kernels do not read the arrays of numpy {np.__version__}."
        raise OSError(message)
    usable = _LEVELS[4 - int(found[0]) :] if base != "generic" else (base,)
    best = next((each for each in usable if (folder() / each).exists()), None)
    if best is None:
        message = f"No kernels were built for a processor like this one, of level {found[0]}."
        raise OSError(message)
    return best


def _file(name: str, level: str) -> Path:
    return folder() / level / f"{name}.so"


def _functions(name: str, level: str) -> Any:
    """Return the functions of one library. Raises OSError if the library is missing or does not fit."""
    file = _file(name, level)
    if not file.exists():
        message = f"There is no {file}."
        raise OSError(message)
    library, holding = ctypes.CDLL(str(file)), ctypes.PyDLL(str(file))
    try:
        text = ctypes.string_at(ctypes.addressof(ctypes.c_char.in_dll(library, "penstock_manifest")))
    except ValueError as error:
        message = f"{file} is no library of penstock."
        raise OSError(message) from error
    manifest = json.loads(text)
    made = manifest["made"]
    if made["format"] != FORMAT or digest_of(_PACKAGE / each for each in made["files"]) != made["digest"]:
        message = f"{file} was built of other sources than those in {_PACKAGE}."
        raise OSError(message)
    ctypes.c_int64.in_dll(library, "penstock_array_type").value = id(np.ndarray)
    ctypes.c_int64.in_dll(library, "penstock_head").value = object.__basicsize__
    functions = {}
    for function, what in manifest["functions"].items():
        entry = getattr(holding if what["holds_gil"] else library, f"penstock_{function}")
        functions[function] = _function(function, entry, what["arguments"], what["results"])
    return SimpleNamespace(**functions)


def digest_of(files: Iterable[Path]) -> str:
    """Return a digest of the contents of files. A missing file counts as empty."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes() if file.exists() else b"")
    return digest.hexdigest()


def _function(name: str, entry: Any, arguments: list[Any], results: list[str]) -> Callable[..., Any]:
    """Return the Python function that calls an entry of a library. The entry checks the arrays."""
    entry.argtypes, entry.restype = (ctypes.c_void_p, ctypes.c_void_p), ctypes.c_int32
    count, many = len(arguments), len(results)
    arrays = [i for i in range(count) if arguments[i][2]]
    numbers = [i for i in range(count) if not arguments[i][2]]
    kinds = "".join("d" if arguments[i][1][0] == "f" else "q" for i in numbers)
    words_of = Struct(f"={kinds}{8 * many}x").pack
    results_of = Struct(f"={8 * len(numbers)}x{many}q").unpack
    arrays_of, numbers_of = _taking(arrays), _taking(numbers)

    def call(*given: Any) -> Any:
        if len(given) != count:
            message = f"{name} takes {count} arguments, got {len(given)}."
            raise TypeError(message)
        held, words = arrays_of(given), words_of(*numbers_of(given))
        # The entry writes the results into `words`. This is safe: no other object has these bytes.
        status = entry(id(held) + _ARRAYS, words)
        # the array may be of a subclass, such as np.memmap
        if status >= 1000 and isinstance(held[status - 1000], np.ndarray):
            held = tuple(each.view(np.ndarray) if isinstance(each, np.ndarray) else each for each in held)
            status = entry(id(held) + _ARRAYS, words)
        if status:
            raise _error(name, status, [arguments[i] for i in arrays], held)
        return results_of(words) if many > 1 else results_of(words)[0] if many else None

    call.__name__ = name
    return call


def _taking(places: list[int]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Return a function that selects the items of a tuple at some positions."""
    if len(places) > 1:
        return itemgetter(*places)
    return lambda given: tuple(given[i] for i in places)


def _error(name: str, status: int, arrays: list[Any], given: tuple[Any, ...]) -> Exception:
    if status < 1000:
        return MemoryError(f"{name} found no memory (or, built with checks, left the bounds of an array).")
    argument, kind, ndim, written = arrays[status - 1000]
    got = given[status - 1000]
    if isinstance(got, np.ndarray):
        flags = got.flags
        is_it = f"{got.dtype} of {got.ndim} axes, contiguous: {flags.c_contiguous}, writable: {flags.writeable}"
    else:
        is_it = f"a {type(got).__name__}"
    wanted = f"{'a writable ' if written else 'an '}array of {kind} with {ndim} axes, contiguous and aligned"
    return TypeError(f"{name} takes as {argument!r} {wanted}; it is {is_it}.")
