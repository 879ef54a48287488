"""Decides from its bytecode whether a function may run on tracers, for whole Blocks, without observable effects.

Only known operations are allowed: arithmetic, primitives, numpy's exact functions, a few builtins, constants and helper
functions that pass the same test. With any other operation (print, global state, an unknown library) the function runs
per element as written. Branches on data are found later, when the function is traced.
"""

from __future__ import annotations

import builtins
import functools
import re
from abc import ABC, ABCMeta
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Mapping
from enum import Enum, EnumMeta
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np

from penstock.functions.captured import CONTENT, MISSING, OWN, SIZE, Captured, content
from penstock.functions.code import never_ends, steps
from penstock.functions.facts import Reason, facts, scanned
from penstock.functions.libraries import Kind
from penstock.functions.memory import recalled
from penstock.functions.ownership import is_frozen, is_penstocks, is_plain_object, is_users, is_users_code
from penstock.functions.uses import attribute
from penstock.trace.arithmetic import UFUNCS
from penstock.trace.numpy_rows import REDUCTIONS
from penstock.trace.statements import straightened, unmuted
from penstock.trace.tracer import FUNCTIONS

_BUILTINS = {
    len, range, tuple, dict, list, zip, enumerate, abs, int, float, bool, bytes, str, reversed, min, max, all, any,
    chr, divmod, filter, format, frozenset, iter, map, next, ord, pow, round, set, sorted, sum,
    functools.partial, functools.reduce,
}  # fmt: skip
_KNOWN = frozenset(map(id, FUNCTIONS))
_MAKERS: tuple[Any, ...] = (  # create arrays and a pattern from their arguments; tracers refuse to be arguments
    np.zeros, np.ones, np.full, np.eye, np.identity, np.arange, np.linspace, np.array, np.asarray, np.ascontiguousarray,
    re.escape,
)  # fmt: skip
_MAKING = frozenset(map(id, _MAKERS))
METHODS = {
    "astype", "shape", "dtype", "ndim", "get", "items", "keys", "values", "T", "size", "transpose", "swapaxes",
    "reshape", "ravel", "flatten", "squeeze", "copy", "clip", "argsort", "cumsum", "cumprod", "round", "dot", "repeat",
    "take", "trace", "item", "tolist", "tobytes", "append", "extend", "zfill", "startswith", "endswith", "strip",
    "pop", "popitem", "update", "setdefault", "clear", "insert", "remove", "reverse", "index", "count", "fromkeys",
    "set_shape", *REDUCTIONS,
}  # fmt: skip
# These methods may write into an argument or into their object.
_WRITING = {
    "append", "extend", "clip", "cumsum", "cumprod", "round", "dot", "take", "trace", "pop", "popitem", "update",
    "setdefault", "clear", "insert", "remove", "reverse", *REDUCTIONS,
}  # fmt: skip
_CONSTANTS = (bool, int, float, complex, str, bytes, np.generic, np.dtype, type(None), type(Ellipsis), slice)
_PLAIN = ("builtins", "numpy", "numpy.dtypes")  # modules with classes of constants whose operations are known
_FORBIDDEN = {  # by prefix of the name of an instruction
    "STORE_GLOBAL": "it keeps state, in a global",
    "DELETE_GLOBAL": "it keeps state, in a global",
    "STORE_ATTR": "it keeps state, in an attribute",
    "DELETE_ATTR": "it keeps state, in an attribute",
    "STORE_DEREF": "it keeps state, in a variable of the function around it",
    "DELETE_DEREF": "it keeps state, in a variable of the function around it",
    "STORE_NAME": "it keeps state",
    "DELETE_": "it keeps state",
    "IMPORT_": "it imports",
    "YIELD": "it yields",
    "AWAIT": "it waits",
    "SEND": "it waits",
}
_STATEFUL = tuple(_FORBIDDEN)
_OF_ITS_OWN = ("STORE_DEREF", "DELETE_DEREF")
_FREE = ("DELETE_SUBSCR", "DELETE_FAST")
_NONE: Mapping[str, Any] = MappingProxyType({})
_GENERATOR = "<genexpr>"  # the name of a generator expression, which the called function consumes
_HANDLERS = ("PUSH_EXC_INFO", "SETUP_FINALLY")  # a tracer may raise where no element raises
_ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD")
_FIELD = type(vars(namedtuple("_One", "field"))["field"])  # the class of the fields of a named tuple
_WATCHED = 1 << 16  # bytes of a captured array; the digest for each Block takes at most about 30 µs
TOO_LARGE = "an array too large to watch for changes"
HANDLES = "it handles exceptions or leaves a with block"
_WATCHED_ITEMS = 1 << 10  # items of a captured dict; each is compared for each Block
_WRITERS = ("STORE_SUBSCR", "STORE_SLICE", "DELETE_SUBSCR")


def why_impure(function: Callable[..., Any]) -> str | None:
    """Return why a function must run per element, or None if it may be traced.

    >>> why_impure(lambda x: x * 2)
    >>> why_impure(lambda x: print(x))
    'it uses print'
    """
    return _recalled(function)[0][0]


def may_draw(function: Callable[..., Any]) -> bool:
    """Return True if a function may use the random keys of its element: it does so, or it is not known to be pure.

    >>> may_draw(lambda x: x * 2), may_draw(lambda x: print(x))
    (False, True)
    """
    (why, draws), _ = _recalled(function)
    return why is not None or draws


def captured(function: Callable[..., Any]) -> Captured:
    """Return the places outside that a pure function reads, with their present values."""
    return inspected(function)[1]


def inspected(
    function: Callable[..., Any], objects: Mapping[str, Any] = _NONE, held: Mapping[str, Any] = _NONE
) -> tuple[str | None, Captured]:
    """Return the results of `why_impure` and `captured`. `objects` are known arguments by name.

    `held` are known arguments that other code also uses, so that writing into them is a side effect.
    """
    if objects or held:
        (why, _), (seen, *_) = _inspected(function, objects, held)
    else:
        (why, _), seen = _recalled(function)
    return why, seen


def _recalled(function: Callable[..., Any]) -> tuple[tuple[str | None, bool], Captured]:
    return recalled(function, "pure", lambda: _inspected(function), by_value=False)


def _inspected(
    function: Callable[..., Any], objects: Mapping[str, Any] = _NONE, held: Mapping[str, Any] = _NONE
) -> tuple[tuple[str | None, bool], list[Any]]:
    """Return why a function is impure, and whether it is random; and the places that were read."""
    inspection = _Inspection(objects, held)
    why = inspection.verdict(function)
    return (why, inspection.draws), [Captured(tuple(inspection.reads)), *inspection.watched]


def inspected_live(function: Callable[..., Any]) -> tuple[str | None, Captured, list[np.ndarray]]:
    """Return the result of `inspected` for a function without handling of exceptions, and its large arrays.

    These arrays are not watched for changes, so no graph may contain values from them. The graph looks up items in them
    each time it runs. Only the function's own code may use them by name. Helper functions may not, because other code
    could call them with ordinary arrays.
    """
    inspection = _Inspection()
    inspection.live = {}
    if type(function) is FunctionType and is_users(function):
        inspection.top = function
    why = inspection.verdict(function)
    live = list(inspection.live.values())
    return why, Captured((*inspection.reads, *((array, SIZE, len(array)) for array in live))), live


def why_not_movable(function: Callable[..., Any], objects: Mapping[str, Any], held: Mapping[str, Any]) -> str | None:
    """Return why other code can observe when a function is called, or None. It may be random or not pure."""
    inspection = _Inspection(objects, held)
    return inspection.verdict(function) or ("it is random" if inspection.draws else None)


class _Inspection:
    def __init__(self, objects: Mapping[str, Any] = _NONE, held: Mapping[str, Any] = _NONE) -> None:
        self._objects = objects  # known arguments of the function by name
        self._held = held  # likewise; other code also uses them
        self._visiting: set[Any] = set()
        self.reads: list[tuple[Any, Any, Any]] = []
        self._mutable = bool(held)  # True if a captured value can be changed
        self._writes = False  # True if the function may change a value
        self.draws = False
        self.live: dict[int, np.ndarray] | None = None  # large arrays that it uses; None if they are not allowed
        self.top: FunctionType | None = None  # the function that may use them
        self._in_top = False
        self._again = True  # True if `tables` copies the next function for tracers
        self._line: int | None = None  # the last line of the user's code that was read
        self.watched: list[Any] = []  # the places that were read to find writes to captured values
        self._methods: set[str] = set()  # names of methods that are called on unknown objects
        self._passed_on: list[tuple[Any, str]] = []  # objects of the user that may be among the unknown objects

    def verdict(self, function: Any) -> str | None:
        """Return why a function is not pure, or None."""
        why = self.function(function)
        asked = (spelled for one, spelled in self._passed_on if not self._methods.isdisjoint(dir(one)))
        why = why or next((f"it uses {spelled}" for spelled in asked), None)
        if why is None and self._mutable and self._writes:
            found = scanned(function, self._held) if self._held else facts(function)
            self.watched += found.watched
            return found.why(Kind.EFFECT, Kind.RANDOM, Kind.SEEDED, Kind.CLOCK, Kind.ACCELERATOR)
        return None if why is None else Reason.at(self._line, why)

    def function(self, function: Any) -> str | None:
        behind = function.__func__ if type(function) is MethodType else function
        marks = vars(behind) if isinstance(behind, FunctionType) else _NONE  # an object may compute its attributes
        self.draws = self.draws or "__penstock_draws__" in marks
        if "__penstock_primitive__" in marks or (isinstance(function, np.ufunc) and function in UFUNCS):
            return None
        if type(function) is functools.partial:
            return self._partial(function)
        if type(function) is MethodType:
            return self._method(function.__func__, function.__self__)
        if not isinstance(function, FunctionType):
            return self._callable(function)
        objects, self._objects = self._objects, {}
        return self._plain(function, objects)

    def _plain(self, function: FunctionType, objects: Mapping[str, Any]) -> str | None:
        """Return why a function written in Python is not pure. Some of its arguments may be known objects."""
        again, self._again = self._again, False
        visit = (id(function), again, *map(id, objects.values()))
        if visit in self._visiting:
            return "it calls itself" if function is self.top and self.live else None
        self._visiting.add(visit)
        parts = ("__code__", "__defaults__", "__kwdefaults__")
        self.reads.extend((function, part, getattr(function, part)) for part in parts)
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            why = self._value(default, "a default argument")
            if why:
                return why
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        outer, self._in_top = self._in_top, function is self.top
        made = straightened(function) if again and self.live is not None and is_users(function) else unmuted(function)
        why = self._code(made.__code__, function.__globals__, cells, objects)
        self._in_top = outer
        return why

    def _partial(self, function: functools.partial[Any]) -> str | None:
        given = function.keywords
        self.reads.append((given, SIZE, len(given)))
        self.reads.extend((given, name, value) for name, value in given.items())
        values = (*function.args, *given.values())
        why = next((why for why in (self._value(value, "an argument of its partial") for value in values) if why), None)
        return why or self.function(function.func)

    def _callable(self, called: Any) -> str | None:
        """Return None for a known function of Python or numpy, or inspect an object with a plain `__call__`."""
        if id(called) in _KNOWN or (isinstance(called, (type, BuiltinFunctionType)) and called in _BUILTINS):
            return None
        method = self._attribute(called, "__call__") if is_plain_object(called) else MISSING
        if not isinstance(method, FunctionType):
            return f"{type(called).__name__} is no plain function"
        return self._method(method, called)

    def _method(self, method: Any, owner: Any) -> str | None:
        if not isinstance(method, FunctionType) or not is_plain_object(owner) or not method.__code__.co_argcount:
            return f"it is a method of {type(owner).__name__}, whose class may define its own operations"
        name = method.__code__.co_varnames[0]
        self.draws = self.draws or "__penstock_draws__" in vars(method)
        return self._plain(method, {name: owner})

    def _attribute(self, owner: Any, name: str) -> Any:
        """Return an attribute of a plain object and note all places that it depends on; MISSING if it is computed."""
        found = MISSING
        self.reads.append((owner, OWN, (type(owner), vars(owner))))
        for kind in type(owner).__mro__[:-1]:
            held = vars(kind).get(name, MISSING)
            self.reads.append((vars(kind), name, held))
            found = held if found is MISSING else found
        own = vars(owner).get(name, MISSING)
        self.reads.append((vars(owner), name, own))
        if found is not MISSING and hasattr(type(found), "__get__") and not isinstance(found, FunctionType):
            return MISSING  # a property or a static method needs another lookup
        return own if own is not MISSING else found

    def _constant_of(self, owner: Any, name: str) -> Any:
        """Return an attribute of an object that `has_constants`; MISSING if it is computed."""
        if is_member(owner):
            own = {"value": "_value_", "name": "_name_"}.get(name, "")
            if any(name in vars(kind) or own in vars(kind) for kind in type(owner).__mro__ if is_users(kind)):
                return MISSING  # a class of the user computes it
            found = vars(owner).get(own, MISSING)
            self.reads.append((vars(owner), own, found))
            return found
        if isinstance(owner, EnumMeta):
            return vars(owner)["_member_map_"].get(name, MISSING)  # members never change
        found = MISSING
        for kind in (type(owner) if isinstance(owner, tuple) else owner).__mro__[:-1]:
            held = vars(kind).get(name, MISSING)
            self.reads.append((vars(kind), name, held))
            if held is not MISSING:
                found = held
                break
        if isinstance(owner, tuple):
            return found.__get__(owner) if type(found) is _FIELD else MISSING
        if hasattr(type(owner), name):
            return MISSING
        found = found.__func__ if type(found) is staticmethod else found
        return MISSING if hasattr(type(found), "__get__") and type(found) is not FunctionType else found

    def _code(
        self,
        code: CodeType,
        names: dict[str, Any],
        cells: dict[str, CellType],
        objects: Mapping[str, Any] = _NONE,
        around: frozenset[str] = frozenset(),
    ) -> str | None:
        """Return why code is not pure. `around` are variables of enclosing functions that belong to the same call."""
        generates = code.co_name == _GENERATOR
        if code.co_flags & (0x20 | 0x80 | 0x100 | 0x200) and not generates:  # generators and coroutines
            return "it is a generator or coroutine"
        if not objects.keys().isdisjoint(code.co_cellvars):
            return "an inner function uses the object of the method"
        if never_ends(code):
            return "it has a loop that never ends"
        chain: Any = MISSING  # the module or class that the next attribute is looked up in
        spelled = ""
        local = set(code.co_varnames) | set(code.co_cellvars)
        users = is_users_code(code, None)
        for step in steps(code):
            name, self._line = step.name, (users and step.line) or self._line
            if name not in _ATTRIBUTE and chain is not MISSING and not _is_namespace(chain):
                why, chain = self._value(chain, spelled), MISSING
                if why:
                    return why
            if name in _ATTRIBUTE and chain is not MISSING:
                spelled = f"{spelled}.{step.value}"
                chain, why = self._access(chain, step.value, spelled)
            elif name in _ATTRIBUTE:
                why = None if step.value in METHODS else f"it uses .{step.value}"
                self._methods.add(step.value)
                self._writes = self._writes or step.value in _WRITING
            elif _is_namespace(chain):
                return f"it passes on the module {spelled}"
            elif name.startswith("LOAD_FAST") and step.value in objects:
                spelled = step.value
                chain, why = objects[spelled], None
            elif name.startswith(("STORE_FAST", "DELETE_FAST", "LOAD_CLOSURE")) and step.value in objects:
                return "it assigns to its first parameter, the object itself"
            elif name == "LOAD_GLOBAL":
                spelled = step.value
                value = names.get(spelled, getattr(builtins, spelled, MISSING))
                self.reads.append((names, spelled, names.get(spelled, MISSING)))
                if value is MISSING:
                    return f"it uses {spelled}, which is not defined yet"
                chain, why = self._step(value, spelled)
            elif name in ("LOAD_DEREF", "LOAD_CLASSDEREF") and step.value not in (local | around):
                spelled = step.value
                try:
                    value = cells[spelled].cell_contents
                except KeyError:
                    return f"it uses its own {spelled} in an inner function or comprehension"
                except ValueError:
                    return f"it uses {spelled}, which is not defined yet"
                self.reads.append((cells[spelled], None, value))
                chain, why = self._step(value, spelled)
            elif name in _HANDLERS and not generates:
                return HANDLES
            elif name.startswith(_STATEFUL) and not (
                name in _FREE
                or (generates and name == "YIELD_VALUE")
                or (name in _OF_ITS_OWN and step.value in code.co_cellvars)
            ):
                return next(why for begins, why in _FORBIDDEN.items() if name.startswith(begins))
            elif name == "MATCH_CLASS":
                return "it checks types"
            else:
                self._writes = self._writes or name in _WRITERS or (name == "BINARY_OP" and step.spelled.endswith("="))
                why = None
            if why:
                return why
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                why = self._code(constant, names, cells, around=around | frozenset(code.co_cellvars))
                if why:
                    return why
        return None

    def _access(self, owner: Any, name: str, spelled: str) -> tuple[Any, str | None]:
        """Return the object of an attribute in which a following one is looked up, or why it may not be used."""
        if is_plain_object(owner):
            found = self._attribute(owner, name)
            if isinstance(found, FunctionType) and vars(owner).get(name) is not found:
                why = self._method(found, owner)
                return MISSING, f"it calls {spelled}: {why}" if why else None
        elif has_constants(owner):
            found = self._constant_of(owner, name)
        else:
            if _is_namespace(owner) or isinstance(owner, type):  # attributes of frozen objects never change
                self.reads.append((vars(owner), name, vars(owner).get(name, MISSING)))
            try:
                found = getattr(owner, name)
            except AttributeError:
                return MISSING, f"it uses {spelled}, which does not exist"
        if found is MISSING:
            return MISSING, f"it uses {spelled}, which does not exist or is computed on access"
        return self._step(found, spelled)

    def _step(self, value: Any, spelled: str) -> tuple[Any, str | None]:
        """Return the object in which a following attribute is looked up, or why the value itself may not be used."""
        if _is_namespace(value) or (isinstance(value, type) and is_penstocks(value)) or is_plain_object(value):
            return value, None
        if is_frozen(type(value)) or has_constants(value):
            return value, None
        if self.live is not None and self._in_top and "." not in spelled and _is_live(value):
            self.live[id(value)] = value
            self._mutable = True
            return MISSING, None
        return MISSING, self._value(value, spelled)

    def _value(self, value: Any, spelled: str) -> str | None:
        if isinstance(value, _CONSTANTS):
            made_by = type(value)
            plain = made_by.__module__ in _PLAIN or is_penstocks(made_by)
            plain = plain or (issubclass(made_by, Enum) and not _calculates_itself(value))
            return None if plain else f"it uses {spelled}, whose class may define its own operations"
        if type(value) in (tuple, frozenset):
            return next((why for why in (self._value(item, spelled) for item in value) if why), None)
        if type(value) in (list, dict, OrderedDict):
            return self._container(value, spelled)
        if isinstance(value, set):
            return f"it uses {spelled}: a set may change unnoticed; make it a frozenset"
        if (
            _is_live(value)
            or type(value) is np.ndarray
            or (isinstance(value, np.ndarray) and is_penstocks(type(value)))
        ):
            return self._array(value, spelled)
        if isinstance(value, (type, BuiltinFunctionType)) and value in _BUILTINS:
            return None
        plain_type = isinstance(value, type) and (_is_plain_type(value) or is_frozen(value))
        if plain_type or is_frozen(type(value)) or id(value) in _MAKING:
            return None
        if isinstance(value, np.ufunc) or id(value) in _KNOWN:
            self._writes = True  # the argument `out` may name an array to write into
            known = not isinstance(value, np.ufunc) or value in UFUNCS
            return None if known else f"{spelled} has no vectorised form"
        if callable(value) and (
            isinstance(value, FunctionType)
            or type(value) in (functools.partial, MethodType)
            or (is_plain_object(value) and _only_called(value))
        ):
            self._passed_on += [(value, spelled)] if is_plain_object(value) else []
            self._again = type(value) is FunctionType and "." not in spelled
            why = self.function(value)
            self._again = False
            if why and str(attribute(value, "__module__")).partition(".")[0] == "numpy":
                return f"{spelled} has no vectorised form"  # without details of its code
            return f"it calls {spelled}: {why}" if why else None
        return f"it uses {spelled}"

    def _container(self, value: list[Any] | dict[Any, Any], spelled: str) -> str | None:
        if id(value) in self._visiting:
            return None
        self._visiting.add(id(value))
        if len(value) > _WATCHED_ITEMS:
            return f"it uses {spelled}, a {'list' if type(value) is list else 'dict'} too large to watch for changes"
        self._mutable = True
        self.reads.append((value, SIZE, len(value)))
        items = list(value.items() if isinstance(value, dict) else enumerate(value))
        self.reads.extend((value, key, item) for key, item in items)
        return next((why for why in (self._value(item, spelled) for _, item in items) if why), None)

    def _array(self, value: np.ndarray, spelled: str) -> str | None:
        if value.nbytes > _WATCHED:
            return f"it uses {spelled}, {TOO_LARGE}"
        if value.dtype.hasobject and not (
            value.size <= _WATCHED_ITEMS and all(type(item) in (bytes, str) for item in value.flat)
        ):
            return f"it uses {spelled}, an array of Python objects, which may change unnoticed"
        self._mutable = True
        self.reads.append((value, CONTENT, content(value)))
        return None


def _is_namespace(value: Any) -> bool:
    """Return True for a module, and for a group of names in a module of penstock, such as `tf.bitwise`."""
    return isinstance(value, ModuleType) or (is_penstocks(type(value)) and type(value).__name__ == "Namespace")


def _is_live(value: Any) -> bool:
    """Return True for an array that is too large to be watched for changes."""
    known = type(value) in (np.ndarray, np.memmap)
    return known and value.nbytes > _WATCHED and value.ndim > 0 and not value.dtype.hasobject


def has_constants(value: Any) -> bool:
    """Return True for a class, enumeration or named tuple of the user whose attributes are not computed."""
    kind = type(value)
    if kind in (type, ABCMeta):
        return all(is_users(place) or place is ABC for place in value.__mro__[:-1])
    if kind is EnumMeta:
        return is_users(value)
    if issubclass(kind, tuple) and kind is not tuple:
        plain = vars(tuple)["__getattribute__"] is kind.__getattribute__ and not hasattr(kind, "__getattr__")
        return plain and hasattr(kind, "_fields") and all(map(is_users, kind.__mro__[:-2]))
    return is_member(value)


def is_member(value: Any) -> bool:
    """Return True for a member of an enumeration of the user."""
    return type(type(value)) is EnumMeta and is_users(type(value))


def _calculates_itself(member: Any) -> bool:
    """Return True if a member of an enumeration has operators that the user wrote."""
    held = (item for kind in type(member).__mro__ if is_users(kind) for item in vars(kind).items())
    return any(name.startswith("__") and type(value) is FunctionType and is_users(value) for name, value in held)


_UNCALLED = {  # attributes of a class that only a call of an object runs
    "__annotate__", "__annotate_func__", "__annotations__", "__annotations_cache__", "__call__", "__dataclass_fields__",
    "__dataclass_params__", "__dict__", "__doc__", "__firstlineno__", "__init__", "__match_args__", "__module__",
    "__post_init__", "__replace__", "__slotnames__", "__static_attributes__", "__weakref__",
}  # fmt: skip


def _only_called(value: Any) -> bool:
    """Return True if no operator, comparison or conversion of an object runs code of its class."""
    names = {name for kind in type(value).__mro__[:-1] for name in vars(kind)}
    return all(name in _UNCALLED for name in names if name.startswith("__") and name.endswith("__"))


def _is_plain_type(kind: type) -> bool:
    """Return True for str, bytes and numpy's scalar classes, but not for classes derived from them."""
    return issubclass(kind, (np.generic, str, bytes)) and kind.__module__ in _PLAIN
