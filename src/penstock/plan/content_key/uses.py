"""What a function uses from outside: values it captured, defaults, globals, parts of the user's modules, imports."""

from __future__ import annotations

import dis
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from penstock.ownership import is_users, is_users_file


@dataclass(frozen=True, slots=True)
class Use:
    """A value that a function uses; `kind` is "captured", "default", "global", "module" or "imported"."""

    kind: str
    name: str
    value: Any


def uses(function: FunctionType) -> Iterator[Use]:
    """What a function uses, in an order of its own; of code that is not the user's, captured values and defaults."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    defaults = function.__defaults__ or ()
    for name, value in zip(names[len(names) - len(defaults) :], defaults, strict=True):
        yield Use("default", name, value)
    for name, value in (function.__kwdefaults__ or {}).items():
        yield Use("default", name, value)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield Use("captured", name, cell.cell_contents)
        except ValueError:  # not set yet
            continue
    if is_users(function):
        codes = list(_codes(function.__code__))
        names_used = {name for code in codes for name in code.co_names}
        yield from _global(function.__globals__, names_used, "", set())
        yield from _imported(codes, function.__globals__)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A piece of code, and those of the functions and comprehensions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _global(values: dict[str, Any], names: set[str], lead: str, seen: set[int]) -> Iterator[Use]:
    """The globals that bear one of these names; of a module of the user's what in it does, too."""
    for name in sorted(names & values.keys()):
        value = values[name]
        if not isinstance(value, ModuleType):
            yield Use("global", lead + name, value)
        elif id(value) not in seen:
            seen.add(id(value))
            yield Use("module", lead + name, value.__name__)
            if is_users(value):
                yield from _global(vars(value), names, f"{lead}{name}.", seen)


def _imported(codes: list[CodeType], names: dict[str, Any]) -> Iterator[Use]:
    """The sources of the user's modules that are imported when the function runs."""
    found = {name for code in codes for name in _imports(code, str(names.get("__package__") or ""))}
    for name in sorted(found):
        file = _source_file(name)
        if file is not None:
            yield Use("imported", name, file.read_bytes())


def _imports(code: CodeType, package: str) -> Iterator[str]:
    loaded: list[Any] = []  # the constants in front: how many packages up, and what is wanted of the module
    for step in dis.get_instructions(code):
        if step.opname == "IMPORT_NAME" and len(loaded) >= 2:
            level, wanted = loaded[-2:]
            module = f"{'.' * level if isinstance(level, int) else ''}{step.argval}"
            for name in (module, *(f"{module}.{part}" for part in wanted or () if part != "*")):
                try:
                    yield importlib.util.resolve_name(name, package)
                except ImportError:
                    continue
        elif step.opcode in dis.hasconst or step.opname == "LOAD_SMALL_INT":
            loaded.append(step.argval)


def _source_file(name: str) -> Path | None:
    """The file of a module of the user's; nothing is imported to find it."""
    top, *inner = name.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):  # there is none, or it was made by hand
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
