"""The objects that a function captures, names or imports. They are found without calling the function."""

from __future__ import annotations

import dis
import functools
import importlib.util
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from penstock.functions.code import Instruction, codes, names, steps
from penstock.functions.ownership import is_users, is_users_file

_UNKNOWN = object()
_ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD")
_CALL = ("CALL", "CALL_FUNCTION", "CALL_METHOD")
_LOOP = ("FOR_ITER", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
_LEAVES = ("RETURN_VALUE", "RETURN_CONST", "FOR_ITER", "RAISE_VARARGS")
_LOCKS = (type(threading.Lock()), type(threading.RLock()), threading.Semaphore, threading.Condition)
_MOST_FUNCTIONS = 100  # helper functions that are read
ELSEWHERE = (  # packages with functions that wait for another machine
    *("requests", "urllib", "urllib3", "http", "httpx", "aiohttp", "socket", "ssl", "ftplib", "grpc", "paramiko"),
    *("fsspec", "s3fs", "gcsfs", "boto3", "botocore", "redis", "pymongo", "psycopg", "psycopg2", "sqlalchemy"),
)
_ONLY_COMPUTES = ("urllib.parse", "http.cookies")


@dataclass(frozen=True, slots=True)
class HeldValue:
    """An outer value of a function. `kind` is "captured", "default", "global", "module" or "imported"."""

    kind: str
    name: str
    value: Any


def held(function: FunctionType) -> Iterator[HeldValue]:
    """Yield the outer values of a function in a fixed order. Library functions have only defaults and captured values.

    >>> size = 3
    >>> [(one.kind, one.name) for one in held(lambda x, times=2: x * times)]
    [('default', 'times')]
    """
    yield from (HeldValue("default", name, value) for name, value in defaults(function).items())
    yield from (HeldValue("captured", name, value) for name, value in closure(function))
    if is_users(function):
        yield from _global(function.__globals__, names(function.__code__), "", set())
        yield from _imported(function)


def defaults(function: FunctionType) -> dict[str, Any]:
    """Return the default values of parameters by name."""
    parameters = function.__code__.co_varnames[: function.__code__.co_argcount]
    values = function.__defaults__ or ()
    return dict(zip(parameters[len(parameters) - len(values) :], values, strict=True)) | (function.__kwdefaults__ or {})


def closure(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the variables of enclosing functions that a function uses, except those that are not set yet."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        content = _content(cell)
        if content is not _UNKNOWN:
            yield name, content


def plain(function: Any) -> tuple[Any, Any]:
    """Return the Python function that a callable runs, and the object that the function is bound to or None."""
    if isinstance(function, functools.partial):
        return plain(function.func)
    if isinstance(function, MethodType):
        return function.__func__, function.__self__
    if isinstance(function, (FunctionType, type)):
        return function, None
    called = getattr(type(function), "__call__", None)  # noqa: B004
    return (called, function) if isinstance(called, FunctionType) else (function, None)


def _global(values: dict[str, Any], names: set[str], lead: str, seen: set[int]) -> Iterator[HeldValue]:
    """Yield the globals with these names. In a module of the user, also yield its globals with these names."""
    for name in sorted(names & values.keys()):
        value = values[name]
        if not isinstance(value, ModuleType):
            yield HeldValue("global", lead + name, value)
        elif id(value) not in seen:
            seen.add(id(value))
            yield HeldValue("module", lead + name, value.__name__)
            if is_users(value):
                yield from _global(vars(value), names, f"{lead}{name}.", seen)


def _imported(function: FunctionType) -> Iterator[HeldValue]:
    """Yield the sources of the user's modules that the function imports when it runs."""
    package = str(function.__globals__.get("__package__") or "")
    found = {name for code in codes(function.__code__) for name in _imports(code, package)}
    for name in sorted(found):
        file = _source_file(name)
        if file is not None:
            yield HeldValue("imported", name, file.read_bytes())


def _imports(code: CodeType, package: str) -> Iterator[str]:
    loaded: list[Any] = []  # constants before an import: its level, and the names that it imports
    for step in steps(code):
        if step.name == "IMPORT_NAME" and len(loaded) >= 2:
            level, wanted = loaded[-2:]
            module = f"{'.' * level if isinstance(level, int) else ''}{step.value}"
            for name in (module, *(f"{module}.{part}" for part in wanted or () if part != "*")):
                try:
                    yield importlib.util.resolve_name(name, package)
                except ImportError:
                    continue
        elif step.opcode in dis.hasconst or step.name == "LOAD_SMALL_INT":
            loaded.append(step.value)


def _source_file(name: str) -> Path | None:
    """Return the file of a module of the user, or None. Nothing is imported."""
    top, *inner = name.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):  # there is no such module, or it has no spec
        return None
    if spec is None or not spec.origin or not spec.origin.endswith(".py") or not is_users_file(spec.origin):
        return None
    file: Path | None = Path(spec.origin)
    for part in inner:
        if file is None or file.name != "__init__.py":
            return None
        inside = (file.parent / f"{part}.py", file.parent / part / "__init__.py")
        file = next((path for path in inside if path.is_file()), None)
    return file if file is not None and file.is_file() else None


@dataclass(frozen=True, slots=True)
class Use:
    """A name or chain of attributes as it is spelled, with its value.

    `value` is None for a name that is not defined yet. It is also None for an attribute of an unknown object, which is
    spelled with a leading dot. `bare` is True for a call without arguments. `always` is True if each call of the
    function reaches the use, because no branch comes before it.
    """

    spelled: str
    value: Any
    bare: bool = False
    always: bool = False


def uses(function: Callable[..., Any]) -> list[Use]:
    """Return the uses of a function. Instead of a helper of the user, the list has the uses of the helper."""
    return FunctionReading(function).found


def keeps_state(function: Callable[..., Any]) -> bool:
    """Return True if a function assigns to globals, to names of an enclosing function, or to attributes."""
    return FunctionReading(function).keeps_state


def takes_lock(function: Callable[..., Any]) -> bool:
    """Return True if a function uses a lock, a semaphore or a condition, which can make calls wait for each other."""
    return any(isinstance(use.value, _LOCKS) for use in uses(function))


def waits(function: Callable[..., Any]) -> bool:
    """Return True if a function is known to wait for another machine, or for time to pass."""
    return any(use.value is time.sleep or _is_elsewhere(use.value) for use in uses(function))


def _is_elsewhere(value: Any) -> bool:
    """Return True for a module, class or function in `ELSEWHERE`, and for an object such as a session of `requests`."""
    module = value.__name__ if isinstance(value, ModuleType) else attribute(value, "__module__")
    if not isinstance(module, str):
        module = type(value).__module__
    return module.partition(".")[0] in ELSEWHERE and module not in _ONLY_COMPUTES and not is_users(value)


def loops(function: Callable[..., Any]) -> bool:
    """Return True if a function, or a helper of the user, has a loop or comprehension."""
    return FunctionReading(function).loops


def branches(function: Callable[..., Any]) -> bool:
    """Return True if a function, or a helper of the user, has a branch, perhaps on a value of an element."""
    return FunctionReading(function).branches


class FunctionReading:
    """Reads the code of a function and of its helpers. A subclass can read more code and note other facts."""

    most = _MOST_FUNCTIONS

    def __init__(self, function: Callable[..., Any]) -> None:
        self.found: list[Use] = []
        self.keeps_state = False
        self.loops = False
        self.branches = False
        self._seen: set[tuple[int, int]] = set()
        self._branched = False  # True if some calls do not reach this step
        self._function(function)

    def _note(self, use: Use) -> None:
        self.found.append(use)

    def _is_read(self, function: FunctionType) -> bool:
        return is_users(function)

    def _function(self, function: Any) -> None:
        given: dict[str, Any] = {}
        while isinstance(function, functools.partial):
            given = {**function.keywords, **given}
            for value in function.args:
                self._note(Use("an argument", value))
            function = function.func
        behind, instance = plain(function)
        if not isinstance(behind, FunctionType) or not self._is_read(behind):
            self._note(Use(str(attribute(behind, "__name__") or type(behind).__name__), function))
            return
        if (id(behind), id(instance)) in self._seen or len(self._seen) >= self.most:
            return
        self._seen.add((id(behind), id(instance)))
        local = {**defaults(behind), **given}
        if instance is not None and behind.__code__.co_argcount:
            local[behind.__code__.co_varnames[0]] = instance
        cells = dict(zip(behind.__code__.co_freevars, behind.__closure__ or (), strict=False))
        self._code(behind.__code__, _Scope(behind.__globals__, cells, local))

    def _code(self, code: CodeType, scope: _Scope) -> None:
        chain: Any = _UNKNOWN  # the object in which the next attribute is looked up
        spelled = ""
        branched = self._branched
        for step in steps(code):
            name = step.name
            inner = _attribute(chain, step.value) if name in _ATTRIBUTE and chain is not _UNKNOWN else _UNKNOWN
            if inner is not _UNKNOWN:
                chain, spelled = inner, f"{spelled}.{step.value}"
                continue
            if chain is not _UNKNOWN:
                self._ended(spelled, chain, bare=name in _CALL and step.arg == 0)
            if name in _ATTRIBUTE:
                self._note(Use(f".{step.value}", None))
            chain, spelled = scope.value(step), str(step.value)
            if name == "LOAD_GLOBAL" and chain is _UNKNOWN:
                self._note(Use(spelled, None))
            if name in ("STORE_GLOBAL", "STORE_ATTR") or (name == "STORE_DEREF" and step.value in scope.cells):
                self.keeps_state = True
                self._note(Use(f".{step.value}=", None))
            elif name in _LOOP:
                self.loops = True
            if "_IF_" in name:
                self.branches = True
            if name in _LEAVES or "_IF_" in name:
                self._branched = True
        self._branched = True  # inner functions may never be called
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._code(constant, scope.inner())
        self._branched = branched

    def _ended(self, spelled: str, value: Any, *, bare: bool) -> None:
        """Note the value of a name with its attributes, or read it if it is a helper of the user."""
        behind = plain(value)[0] if isinstance(value, (FunctionType, MethodType)) else None
        if isinstance(behind, FunctionType) and self._is_read(behind):
            self._function(value)
        else:
            self._note(Use(spelled, value, bare, always=not self._branched))


class _Scope:
    """The names that a code object may look up: globals, names of enclosing functions, its own imports."""

    def __init__(self, names: dict[str, Any], cells: dict[str, Any], local: dict[str, Any]) -> None:
        self.names = names
        self.cells = cells
        self._local = local
        self._outer: dict[str, Any] = {}  # known values of names in the enclosing code
        self._module = ""
        self._imported: Any = _UNKNOWN

    def inner(self) -> _Scope:
        """Return the scope of a lambda or comprehension in this code."""
        found = _Scope(self.names, self.cells, {})
        found._outer = {**self._outer, **self._local}
        return found

    def value(self, step: Instruction) -> Any:
        """Return the value that a step loads, if it is known. Imports are remembered by the names that they set."""
        name = step.name
        if name == "LOAD_GLOBAL":
            return _named(self.names, step.value)
        if name in ("LOAD_DEREF", "LOAD_CLASSDEREF"):
            if step.value in self.cells:
                return _content(self.cells[step.value])
            return self._local.get(step.value, self._outer.get(step.value, _UNKNOWN))
        if name.startswith("LOAD_FAST") and isinstance(step.value, str):
            return self._local.get(step.value, _UNKNOWN)
        if name == "IMPORT_NAME":
            self._module = step.value
            self._imported = sys.modules.get(step.value.partition(".")[0], _UNKNOWN)
        elif name == "IMPORT_FROM":
            whole = sys.modules.get(self._module, _UNKNOWN)
            found = _attribute(whole, step.value)
            aliased = self._module.endswith(f".{step.value}")  # import a.b as c
            self._imported = whole if found is _UNKNOWN and aliased else found
        elif name == "STORE_FAST":
            self._local[step.value] = self._imported
            self._imported = _UNKNOWN
        return _UNKNOWN


def attribute(value: Any, name: str) -> Any:
    """Return an attribute without calling `__getattr__` or `__getattribute__` of the user's; None if there is none."""
    ask = getattr if type(value) is MethodType else type.__getattribute__ if issubclass(type(value), type) else _plainly
    try:
        return ask(value, name)
    except Exception:  # a property may raise anything
        return None


_plainly = object.__getattribute__


def _named(names: dict[str, Any], name: str) -> Any:
    if name in names:
        return names[name]
    found = names.get("__builtins__")
    values = vars(found) if isinstance(found, ModuleType) else found
    return values.get(name, _UNKNOWN) if isinstance(values, dict) else _UNKNOWN


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _UNKNOWN


def _attribute(value: Any, name: str) -> Any:
    """Return the attribute of a module, class or object, or a method, if no code has to run for the lookup."""
    if isinstance(value, (ModuleType, type)):
        try:
            return getattr(value, name, _UNKNOWN)
        except Exception:  # the module tries to load its parts on access, and fails
            return _UNKNOWN
    held = getattr(value, "__dict__", None)
    if isinstance(held, dict) and name in held:
        return held[name]
    found = next((vars(kind)[name] for kind in type(value).__mro__ if name in vars(kind)), None)
    if isinstance(found, staticmethod):
        return found.__func__
    return MethodType(found, value) if isinstance(found, FunctionType) else _UNKNOWN
