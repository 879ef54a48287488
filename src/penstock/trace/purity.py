"""May a function be run on stand-ins and a Block at a time without anybody noticing? Decided from its bytecode.

Allowed is only what is known: arithmetic, primitives, numpy's exact functions, a few builtins, constants and helper
functions that pass the same test. Anything else (print, global state, an unknown library) and the function runs per
element as written. Whether it branches on data is found when it is traced.
"""

from __future__ import annotations

import builtins
import dis
from collections.abc import Callable
from dataclasses import dataclass
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from penstock.trace.arithmetic import UFUNCS

_BUILTINS = {
    getattr(builtins, name)
    for name in [
        "len",
        "range",
        "tuple",
        "dict",
        "list",
        "zip",
        "enumerate",
        "abs",
        "int",
        "float",
        "bool",
        "bytes",
        "str",
        "reversed",
        "min",
        "max",
    ]
}
_NUMPY_FUNCTIONS = {np.where, np.clip}
_METHODS = {"astype", "shape", "dtype", "ndim", "get", "items", "keys", "values"}
_CONSTANTS = (bool, int, float, complex, str, bytes, np.generic, np.dtype, type(None), type(Ellipsis), slice)
_FORBIDDEN = ("STORE_GLOBAL", "STORE_ATTR", "STORE_DEREF", "STORE_NAME", "DELETE_", "IMPORT_", "YIELD", "AWAIT", "SEND")
_HANDLERS = ("PUSH_EXC_INFO", "SETUP_FINALLY")  # a stand-in may raise where no element does
_SILENT = ("CACHE", "EXTENDED_ARG", "PUSH_NULL", "RESUME", "NOP", "PRECALL")
_ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD")
_MISSING = object()
_SIZE = object()
_CONTENT = object()
_WATCHED = 1 << 16  # bytes of a captured array: its content is digested for every Block, some 30 µs at most


def why_impure(function: Callable[..., Any]) -> str | None:
    """The reason this function must run per element, or None for one that may be traced.

    >>> why_impure(lambda x: x * 2)
    >>> why_impure(lambda x: print(x))
    'it uses print'
    """
    return _Inspection().function(function)


def may_draw(function: Callable[..., Any]) -> bool:
    """Whether a function may be random by the number of its element: true of all that is not known to be pure.

    >>> may_draw(lambda x: x * 2), may_draw(lambda x: print(x))
    (False, True)
    """
    inspection = _Inspection()
    return inspection.function(function) is not None or inspection.draws


def captured(function: Callable[..., Any]) -> Captured:
    """What a pure function reads from outside, as it is now."""
    inspection = _Inspection()
    inspection.function(function)
    return Captured(tuple(inspection.reads))


@dataclass(frozen=True, slots=True)
class Captured:
    """The places a function reads (globals, cells, dicts) with what stood there; a graph is good while it stays."""

    reads: tuple[tuple[Any, Any, Any], ...]

    def unchanged(self) -> bool:
        return all(_stands(place, name, value) for place, name, value in self.reads)


def _stands(place: Any, name: Any, value: Any) -> bool:
    if isinstance(place, CellType):
        try:
            return place.cell_contents is value
        except ValueError:
            return False
    if isinstance(place, FunctionType):
        return bool(getattr(place, name) is value)
    if name is _CONTENT:
        return bool(_content(place) == value)
    if name is _SIZE:
        return bool(len(place) == value)
    return bool(place.get(name, _MISSING) is value)


def _content(array: np.ndarray) -> int:
    """A digest: what a function computed from a captured array is baked into its graph."""
    return hash(array.tobytes())


class _Inspection:
    def __init__(self) -> None:
        self._visiting: set[int] = set()
        self.reads: list[tuple[Any, Any, Any]] = []
        self._mutable = False
        self.draws = False

    def function(self, function: Any) -> str | None:
        self.draws = self.draws or (isinstance(function, FunctionType) and "__penstock_draws__" in vars(function))
        if getattr(function, "__penstock_primitive__", False) or (
            isinstance(function, np.ufunc) and function in UFUNCS
        ):
            return None
        if not isinstance(function, FunctionType):
            return f"{type(function).__name__} is no plain function"
        if id(function) in self._visiting:
            return None
        self._visiting.add(id(function))
        parts = ("__code__", "__defaults__", "__kwdefaults__")
        self.reads.extend((function, part, getattr(function, part)) for part in parts)
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            why = self._value(default, "a default argument")
            if why:
                return why
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        return self._code(function.__code__, function.__globals__, cells)

    def _code(self, code: CodeType, names: dict[str, Any], cells: dict[str, CellType]) -> str | None:
        if code.co_flags & (0x20 | 0x80 | 0x100 | 0x200):  # generators and coroutines
            return "it is a generator or coroutine"
        chain: Any = _MISSING  # the module or class that the next attribute is looked up in
        spelled = ""
        local = set(code.co_varnames) | set(code.co_cellvars)
        for step in dis.get_instructions(code):
            name = step.opname
            if isinstance(chain, type) and name not in _ATTRIBUTE and name not in _SILENT:
                why, chain = self._value(chain, spelled), _MISSING
                if why:
                    return why
            if name in _SILENT:
                continue
            if name in _ATTRIBUTE and chain is not _MISSING:
                spelled = f"{spelled}.{step.argval}"
                place = vars(chain)
                try:
                    chain = getattr(chain, step.argval)
                except AttributeError:
                    return f"it uses {spelled}, which is not there"
                self.reads.append((place, step.argval, place.get(step.argval, _MISSING)))
                chain, why = self._step(chain, spelled)
            elif name in _ATTRIBUTE:
                why = None if step.argval in _METHODS else f"it uses .{step.argval}"
            elif isinstance(chain, ModuleType):
                return f"it passes the module {spelled} on"
            elif name == "LOAD_GLOBAL":
                spelled = step.argval
                value = names.get(spelled, getattr(builtins, spelled, _MISSING))
                if value is _MISSING:
                    return f"it uses {spelled}, which is not defined yet"
                self.reads.append((names, spelled, names.get(spelled, _MISSING)))
                chain, why = self._step(value, spelled)
            elif name in ("LOAD_DEREF", "LOAD_CLASSDEREF") and step.argval not in local:
                spelled = step.argval
                try:
                    value = cells[spelled].cell_contents
                except KeyError:
                    return f"it uses its own {spelled} in an inner function or comprehension"
                except ValueError:
                    return f"it uses {spelled}, which is not defined yet"
                self.reads.append((cells[spelled], None, value))
                chain, why = self._step(value, spelled)
            elif name in _HANDLERS:
                return "it handles exceptions or leaves a with block"
            elif name.startswith(_FORBIDDEN):
                return "it keeps state, imports or yields"
            elif name == "STORE_SUBSCR" and self._mutable:
                return "it may write into something it captured"
            else:
                why = None
            if why:
                return why
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                why = self._code(constant, names, cells)
                if why:
                    return why
        return None

    def _step(self, value: Any, spelled: str) -> tuple[Any, str | None]:
        """What a following attribute is looked up in, or whether the value itself may be used."""
        if isinstance(value, ModuleType) or (isinstance(value, type) and value.__module__.startswith("penstock.")):
            return value, None
        return _MISSING, self._value(value, spelled)

    def _value(self, value: Any, spelled: str) -> str | None:
        if isinstance(value, _CONSTANTS):
            return None
        if isinstance(value, (tuple, frozenset)):
            return next((why for why in (self._value(item, spelled) for item in value) if why), None)
        if isinstance(value, (list, set)):
            kind, instead = ("list", "tuple") if isinstance(value, list) else ("set", "frozenset")
            return f"it uses {spelled}: a {kind} may change unseen; make it a {instead}"
        if isinstance(value, dict):
            self._mutable = True
            self.reads.append((value, _SIZE, len(value)))
            self.reads.extend((value, key, item) for key, item in value.items())
            return next((why for why in (self._value(item, spelled) for item in value.values()) if why), None)
        if isinstance(value, np.ndarray):
            if value.nbytes > _WATCHED:
                return f"it uses {spelled}, an array too large to watch for changes"
            self._mutable = True
            self.reads.append((value, _CONTENT, _content(value)))
            return None
        if isinstance(value, (type, BuiltinFunctionType)) and value in _BUILTINS:
            return None
        if isinstance(value, type) and (issubclass(value, (np.generic, str, bytes)) or _is_frozen(value)):
            return None
        if _is_frozen(type(value)) or any(value is known for known in _NUMPY_FUNCTIONS):
            return None
        if isinstance(value, np.ufunc):
            return (
                None if value in UFUNCS else f"{spelled} may differ in the last bit between an array and its elements"
            )
        if callable(value) and (isinstance(value, FunctionType) or getattr(value, "__penstock_primitive__", False)):
            why = self.function(value)
            return f"it calls {spelled}: {why}" if why else None
        return f"it uses {spelled}"


def _is_frozen(kind: type) -> bool:
    """Frozen dataclasses of our own: feature specs and the like."""
    params = getattr(kind, "__dataclass_params__", None)
    return params is not None and params.frozen and kind.__module__.startswith("penstock.")
