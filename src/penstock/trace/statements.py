"""Statements: a function cut into statements that can run separately.

    return resize(flip(image), size) / 255.0, int(label)
        →   .0 = flip(image);  .1 = resize(.0, size);  .2 = .1 / 255.0;  .3 = int(label);  return .2, .3

Each call and operation that Python certainly evaluates becomes a statement of its own, in the order of evaluation and
with its line in the file. Expressions that are evaluated on a condition, or that cannot be split, stay in one piece.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import copy
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, TypeGuard, TypeVar

import numpy as np

from penstock.functions.code import Instruction, codes, steps
from penstock.functions.definition import FoundDefinition, compiled, definition, remember
from penstock.functions.ownership import is_users
from penstock.functions.uses import closure

N = TypeVar("N", bound=ast.AST)

# These functions read the variables of their caller, or stop in it: some builtins, everything in these modules, and
# library functions with these names. No other objects are looked up under the names.
_SEES_ALL = {id(getattr(builtins, name)) for name in ("breakpoint", "dir", "eval", "exec", "locals", "super", "vars")}
_SEE_ALL = {"builtins", "inspect", "pdb"}
_FRAMES = {
    "_getframe", "currentframe", "exc_info", "extract_stack", "getframeinfo", "getinnerframes", "getouterframes",
    "set_trace",
}  # fmt: skip
_UNCUT = (
    ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith,
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef,
)  # fmt: skip
# These functions consume their only argument and its `key`, and store neither.
_GOES_THROUGH = {"all", "any", "frozenset", "list", "max", "min", "set", "sorted", "sum", "tuple"}


@dataclass(frozen=True, slots=True)
class Cut:
    """The statements of a function. A statement comes after the statements that compute its parts."""

    function: FunctionType
    found: FoundDefinition
    statements: tuple[ast.stmt, ...]
    local: frozenset[str]
    declared: tuple[ast.stmt, ...] = ()  # global and nonlocal statements, repeated in each part
    is_straight: bool = False  # True if the statements handle no exceptions, unlike the original function

    def part(self, statements: list[ast.stmt], takes: list[str], gives: list[str] | None) -> FunctionType:
        """Return a function of these statements, with some variables as parameters and others as results."""
        body = list(statements)
        if gives is not None:
            given = ast.Tuple([ast.Name(name, ast.Load()) for name in gives], ast.Load())
            last = body[-1] if body else self.found.node
            body.append(_placed(ast.Return(given), last))
        arguments = ast.arguments(
            posonlyargs=[], args=[_placed(ast.arg(name), self.found.node) for name in takes],
            kwonlyargs=[], kw_defaults=[], defaults=[],
        )  # fmt: skip
        return self._function(arguments, body, self.function)

    def straight(self, statements: list[ast.stmt], takes: list[str], gives: list[str] | None) -> FunctionType:
        """Return `part` without handling of exceptions. It does the same while nothing raises."""
        return self.part([part for one in statements for part in _straight(one, self.function)], takes, gives)

    def bound(self) -> FunctionType:
        """Return a function with the same parameters that returns all of them in a tuple."""
        arguments = self.found.node.args
        given = ast.Tuple([ast.Name(name, ast.Load()) for name in self.arguments()], ast.Load())
        plain = ast.arguments(
            posonlyargs=arguments.posonlyargs, args=arguments.args, vararg=arguments.vararg,
            kwonlyargs=arguments.kwonlyargs, kwarg=arguments.kwarg,
            defaults=[], kw_defaults=[None] * len(arguments.kwonlyargs),
        )  # fmt: skip
        made = self._function(_without_annotations(plain), [_placed(ast.Return(given), self.found.node)], self.function)
        made.__defaults__, made.__kwdefaults__ = self.function.__defaults__, self.function.__kwdefaults__
        return made

    def arguments(self) -> list[str]:
        arguments = self.found.node.args
        named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        return [argument.arg for argument in (*named, arguments.vararg, arguments.kwarg) if argument is not None]

    def _function(self, arguments: ast.arguments, body: list[ast.stmt], like: FunctionType) -> FunctionType:
        code = like.__code__
        node = _placed(ast.FunctionDef(code.co_name, arguments, [*self.declared, *body], []), self.found.node)
        if "type_params" in ast.FunctionDef._fields:
            node.type_params = []  # type: ignore[attr-defined, unused-ignore]
        found = FoundDefinition(ast.fix_missing_locations(node), self.found.imports)
        made = next(compiled(found, code))
        made = _called_alike(made, made.co_qualname, code.co_qualname).replace(co_firstlineno=code.co_firstlineno)
        remember(made, found)
        cells = dict(zip(code.co_freevars, like.__closure__ or (), strict=True))
        closure = tuple(cells[name] for name in made.co_freevars)
        return FunctionType(made, like.__globals__, like.__name__, None, closure)


def cut(function: FunctionType, *, straight: bool = False) -> Cut | None:
    """Split a function into statements. Return None if its source is unknown or the split has a side effect.

    With `straight`, return the statements that run while nothing raises, or None if these are all statements.
    """
    code = function.__code__
    if code.co_flags & (0x20 | 0x80 | 0x100 | 0x200) or _sees_all(function):
        return None
    found = definition(function)
    if found is None:
        return None
    node = found.node
    body = [_placed(ast.Return(node.body), node.body)] if isinstance(node, ast.Lambda) else _without_docstring(node)
    declared = tuple(statement for statement in body if isinstance(statement, (ast.Global, ast.Nonlocal)))
    body = [statement for statement in body if statement not in declared]
    if any(isinstance(part, _UNCUT) or _unbinds(part) for statement in body for part in ast.walk(statement)):
        return None
    names = {*function.__globals__, *code.co_varnames, *code.co_cellvars, *code.co_freevars}
    if code.co_cellvars and not all(_done_at_once(statement, names) for statement in body):
        return None
    if straight:
        written, body = body, [part for statement in body for part in _straight(statement, function)]
        if body == written:
            return None
    linear = _Linear()
    for statement in body:
        linear.add(statement)
        if isinstance(statement, ast.Return):  # nothing after it is reached, such as code after the handlers of a `try`
            break
    local = frozenset({*code.co_varnames, *code.co_cellvars, *linear.temporary})
    return Cut(function, found, tuple(linear.found), local, declared, straight)


def straightened(function: FunctionType, kind: type[_Straight] | None = None) -> FunctionType:
    """Return the function without its handling of exceptions, where possible. It does the same while nothing raises."""
    found = definition(function) if function.__code__.co_exceptiontable else None
    if found is None or isinstance(found.node, ast.Lambda):
        return function
    body = [part for statement in found.node.body for part in _straight(statement, function, kind)]
    return Cut(function, found, (), frozenset())._function(found.node.args, body, function)


def unmuted(function: FunctionType) -> FunctionType:
    """Return the function without `with np.errstate(all="ignore")`, which changes warnings but no results."""
    return straightened(function, _Unmuted) if "errstate" in function.__code__.co_names else function


def _straight(statement: ast.stmt, function: FunctionType, kind: type[_Straight] | None = None) -> list[ast.stmt]:
    if not any(isinstance(part, (ast.Try, ast.With)) for part in ast.walk(statement)):
        return [statement]
    found = (kind or _Straight)(function).visit(copy.deepcopy(statement))
    return found if isinstance(found, list) else [found]


class _Straight(ast.NodeTransformer):
    def __init__(self, function: FunctionType) -> None:
        self._names = {**function.__globals__, **dict(closure(function))}
        self._own = {*function.__code__.co_varnames, *function.__code__.co_cellvars}

    def visit_Try(self, node: ast.Try) -> Any:
        self.generic_visit(node)
        leaves = any(isinstance(part, _LEAVING) for one in (*node.body, *node.finalbody) for part in ast.walk(one))
        return node if node.finalbody and leaves else [*node.body, *node.orelse, *node.finalbody]

    def visit_With(self, node: ast.With) -> Any:
        self.generic_visit(node)
        return node.body if all(map(self._does_nothing, node.items)) else node

    def _does_nothing(self, item: ast.withitem) -> bool:
        made = item.context_expr
        if item.optional_vars is not None or not isinstance(made, ast.Call):
            return False
        name, _, attribute = ast.unparse(made.func).partition(".")
        value = None if name in self._own else self._names.get(name)
        return self._is_quiet(made, vars(value).get(attribute) if isinstance(value, ModuleType) else value)

    def _is_quiet(self, made: ast.Call, kind: Any) -> bool:
        """Return True for a context manager of existing objects that does nothing unless its block raises."""
        quiet = any(kind is one for one in (contextlib.suppress, contextlib.nullcontext))
        return quiet and not made.keywords and all(map(_dotted, made.args))


class _Unmuted(_Straight):
    visit_Try = ast.NodeTransformer.generic_visit  # a handler stays

    def _is_quiet(self, made: ast.Call, kind: Any) -> bool:
        """Return True for a context manager in which numpy does not warn."""
        modes = (word.value.value for word in made.keywords if isinstance(word.value, ast.Constant))
        return kind is np.errstate and not made.args and [*modes] == ["ignore"] * len(made.keywords)


_LEAVING = ast.Return, ast.Break, ast.Continue


def _unbinds(node: ast.AST) -> bool:
    """Return True if a node deletes a variable, and not only an item."""
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del)


def _done_at_once(node: ast.AST, names: Collection[str]) -> bool:
    """Return True if no lambda or generator in a node outlives its statement and reads variables later."""
    parts: list[ast.AST]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Lambda):
        parts = [node.func.body, node.func.args, *node.args, *node.keywords]
    elif _calls(node, _GOES_THROUGH, names):
        alone = node.args if len(node.args) == 1 or _calls(node, ("sum",), names) else []  # max(a, b) returns one
        gone: list[ast.AST] = [keyword.value for keyword in node.keywords if keyword.arg == "key"]
        for first in alone[:1]:
            gone += [*first.args, *first.keywords] if _calls(first, ("map", "filter"), names) else [first]
        parts = [*node.args[len(alone[:1]) :], *[keyword for keyword in node.keywords if keyword.arg != "key"]]
        parts += [part for one in gone for part in (ast.iter_child_nodes(one) if isinstance(one, _LATE) else (one,))]
    elif isinstance(node, _LATE):
        return False
    else:
        parts = list(ast.iter_child_nodes(node))
    return all(_done_at_once(part, names) for part in parts)


_LATE = ast.Lambda, ast.GeneratorExp


def _calls(node: ast.AST, builtin: Collection[str], names: Collection[str]) -> TypeGuard[ast.Call]:
    """Return True if a node calls one of these builtin functions."""
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Name) and called.id in builtin and called.id not in names


def _called_alike(code: CodeType, own: str, name: str) -> CodeType:
    """Return code with its name in the whole function, also for the code inside it."""
    consts = [_called_alike(item, own, name) if isinstance(item, CodeType) else item for item in code.co_consts]
    return code.replace(co_qualname=name + code.co_qualname.removeprefix(own), co_consts=tuple(consts))


def _sees_all(function: FunctionType) -> bool:
    """Return True if a function may inspect its variables. Objects decide: any function may have the name `stack`."""
    code = function.__code__
    if "__class__" in code.co_freevars:  # super() reads it
        return True
    held = (value for _, value in closure(function))
    return any(map(_is_seeing, held)) or any(_step_sees(step, function) for one in codes(code) for step in steps(one))


def _step_sees(step: Instruction, function: FunctionType) -> bool:
    if step.name in ("LOAD_GLOBAL", "LOAD_NAME"):
        return _is_seeing(function.__globals__.get(step.value, getattr(builtins, step.value, None)))
    if step.name == "IMPORT_NAME":
        return step.value.partition(".")[0] in _SEE_ALL
    return step.name in ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM") and step.value in _FRAMES


def _is_seeing(value: Any) -> bool:
    if type(value) is ModuleType:
        return value.__name__ in _SEE_ALL
    value = value.__func__ if type(value) is MethodType else value
    if id(value) in _SEES_ALL or type(value) not in (FunctionType, BuiltinFunctionType):
        return id(value) in _SEES_ALL
    return value.__module__ == "inspect" or (value.__name__ in _FRAMES and not is_users(value))


def _without_docstring(node: ast.FunctionDef) -> list[ast.stmt]:
    first = node.body[0]
    plain = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return node.body[1:] if plain else node.body


def _without_annotations(arguments: ast.arguments) -> ast.arguments:
    for name in ("posonlyargs", "args", "kwonlyargs"):
        setattr(arguments, name, [_placed(ast.arg(item.arg), item) for item in getattr(arguments, name)])
    for name in ("vararg", "kwarg"):
        item = getattr(arguments, name)
        setattr(arguments, name, None if item is None else _placed(ast.arg(item.arg), item))
    return arguments


def reads(statement: ast.AST, local: frozenset[str]) -> set[str]:
    """Return the function's variables that a statement reads or changes in place."""
    found = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    found |= {
        node.target.id
        for node in ast.walk(statement)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
    }
    return found & local


def writes(statement: ast.AST, local: frozenset[str]) -> set[str]:
    """Return the function's variables to which a statement may assign."""
    found = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for node in ast.walk(statement):
        if isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        if isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)  # the name has no value after the handler
        if isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
            found.add(node.name)
        if isinstance(node, ast.MatchMapping) and node.rest:
            found.add(node.rest)
    return found & local


def returns(statement: ast.AST) -> bool:
    return any(isinstance(node, ast.Return) for node in ast.walk(statement))


def inlined(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return statements as they were written, with the temporary values put back."""
    values: dict[str, ast.expr] = {}
    found: list[ast.stmt] = []
    back = _Back(values)
    for statement in statements:
        if isinstance(statement, _Temporary):
            values[statement.targets[0].id] = back.visit(copy.deepcopy(statement.value))  # type: ignore[attr-defined]
        else:
            found.append(back.visit(copy.deepcopy(statement)))
    return found


def text_of(statements: Sequence[ast.stmt], at: int) -> str:
    """Return the line number and the source of a statement, as it was written."""
    statement = statements[at]
    if isinstance(statement, _Temporary):
        last = ast.copy_location(ast.Expr(statement.value), statement)
        found = inlined([*statements[:at], last])[-1]
    else:
        found = inlined(statements[: at + 1])[-1]
    first = ast.unparse(found).splitlines()[0].removesuffix(":")
    return f"line {statement.lineno}, {first}"


_HELD = (
    ast.Call, ast.BinOp, ast.Subscript, ast.UnaryOp, ast.Compare, ast.Attribute,
    ast.IfExp, ast.BoolOp, ast.JoinedStr, ast.ListComp, ast.SetComp, ast.DictComp,
)  # fmt: skip


class _Temporary(ast.Assign):
    """An assignment of a value that was cut out of its statement."""


class _Back(ast.NodeTransformer):
    def __init__(self, values: dict[str, ast.expr]) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._values.get(node.id, node)

    def visit_Dict(self, node: ast.Dict) -> ast.Dict:
        """Put the items of a temporary dict back in place of `**dict`."""
        keys: list[ast.expr | None] = []
        values: list[ast.expr] = []
        for key, item in zip(node.keys, node.values, strict=True):
            held = self._values.get(item.id) if key is None and isinstance(item, ast.Name) else None
            if isinstance(held, ast.Dict):
                keys += held.keys
                values += held.values
            else:
                keys.append(key)
                values.append(self.visit(item))
        return ast.copy_location(ast.Dict(keys, values), node)


class _Linear:
    def __init__(self) -> None:
        self.found: list[ast.stmt] = []
        self.temporary: list[str] = []

    def add(self, statement: ast.stmt) -> None:
        value: Any = getattr(statement, "value", None)
        simple = isinstance(statement, (ast.Return, ast.Expr, ast.Assign)) and value is not None
        simple = simple and not any(isinstance(node, ast.NamedExpr) for node in ast.walk(statement))
        if simple and all(_plain_target(target) for target in getattr(statement, "targets", ())):
            statement = _copied(statement)
            into_items = any(isinstance(target, ast.Subscript) for target in getattr(statement, "targets", ()))
            taken = self._name(value) if into_items else self._taken_apart(value)
            statement.value = taken  # type: ignore[attr-defined]
        self.found.append(statement)

    def _name(self, value: ast.expr) -> ast.expr:
        """Return a variable with the value, which is computed at this point."""
        if isinstance(value, (ast.Name, ast.Constant)):
            return value
        taken = self._taken_apart(value)
        if not isinstance(value, _HELD):
            return taken
        return value if _dotted(value) else self._held(value, taken)

    def _held(self, value: ast.expr, taken: ast.expr) -> ast.expr:
        """Return a new variable for a value whose parts are in variables."""
        name = f".{len(self.temporary)}"
        self.temporary.append(name)
        store = ast.copy_location(ast.Name(name, ast.Store()), value)
        self.found.append(ast.copy_location(_Temporary([store], taken), value))
        return ast.copy_location(ast.Name(name, ast.Load()), value)

    def _taken_apart(self, value: ast.expr) -> ast.expr:
        """Return a value with its parts in variables, as far as they are certainly computed, in order."""
        if isinstance(value, (ast.Tuple, ast.List)):
            if any(isinstance(item, ast.Starred) for item in value.elts):
                return value
            return ast.copy_location(type(value)([self._name(item) for item in value.elts], value.ctx), value)
        if isinstance(value, ast.Dict):
            return self._dict(value)
        if isinstance(value, ast.Compare) and len(value.ops) == 1:
            compared = [self._name(item) for item in (value.left, *value.comparators)]
            return ast.copy_location(ast.Compare(compared[0], value.ops, compared[1:]), value)
        if isinstance(value, ast.BinOp):
            return ast.copy_location(ast.BinOp(self._name(value.left), value.op, self._name(value.right)), value)
        if isinstance(value, ast.UnaryOp):
            return ast.copy_location(ast.UnaryOp(value.op, self._name(value.operand)), value)
        if isinstance(value, (ast.Subscript, ast.Attribute)) and not _dotted(value):
            taken = _copied(value)
            taken.value = self._name(value.value)
            if isinstance(taken, ast.Subscript):
                taken.slice = self._name(taken.slice)
            return taken
        if isinstance(value, ast.Call):
            return self._call(value)
        return value

    def _dict(self, value: ast.Dict) -> ast.expr:
        if not all(key is None or isinstance(key, ast.Constant) for key in value.keys):
            return value
        items = []
        for key, item in zip(value.keys, value.values, strict=True):
            if key is None:  # the items now, before later items are computed
                alone = ast.copy_location(ast.Dict([None], [self._name(item)]), item)
                items.append(self._held(item, alone))
            else:
                items.append(self._name(item))
        return ast.copy_location(ast.Dict(value.keys, items), value)

    def _call(self, value: ast.Call) -> ast.expr:
        if any(isinstance(item, ast.Starred) for item in value.args) or any(k.arg is None for k in value.keywords):
            return value
        function = value.func
        if isinstance(function, ast.Attribute) and not _dotted(function):
            function = _copied(function)
            function.value = self._name(function.value)
        elif not _dotted(function):
            return value
        arguments = [self._name(item) for item in value.args]
        keywords = [ast.copy_location(ast.keyword(k.arg, self._name(k.value)), k) for k in value.keywords]
        return ast.copy_location(ast.Call(function, arguments, keywords), value)


def _dotted(value: ast.expr) -> bool:
    """Return True for a name, or a name with attributes."""
    while isinstance(value, ast.Attribute):
        value = value.value
    return isinstance(value, ast.Name)


def _plain_target(target: ast.expr) -> bool:
    """Return True for one or several variables, or an item of a variable with a constant key."""
    if isinstance(target, ast.Subscript):
        return isinstance(target.value, ast.Name) and isinstance(target.slice, ast.Constant)
    return isinstance(target, ast.Name) or (
        isinstance(target, (ast.Tuple, ast.List)) and all(isinstance(item, ast.Name) for item in target.elts)
    )


def _copied(node: N) -> N:
    made = type(node)(**{name: getattr(node, name) for name in node._fields if hasattr(node, name)})
    return ast.copy_location(made, node)


def _placed(node: N, where: ast.AST) -> N:
    return ast.fix_missing_locations(ast.copy_location(node, where))


class PutOff:
    """Statements that are postponed until others have run, and the variables that they use."""

    def __init__(self) -> None:
        self.statements: list[ast.stmt] = []
        self._held: set[str] = set()  # variables that they read or write, and that must keep their values until then
        self._open: set[str] = set()  # variables whose values are not known until then
        self._fixed: set[str] = set()  # names that are also parameters of inner functions

    def add(self, statement: ast.stmt, read: set[str], written: set[str], changed: set[str]) -> None:
        self.statements.append(statement)
        self._held |= read | written
        self._open |= written | changed
        self._fixed |= {node.arg for node in ast.walk(statement) if isinstance(node, ast.arg)}

    def concerns(self, read: set[str], written: set[str]) -> bool:
        """Return True if a statement that reads and writes these variables depends on the postponed statements."""
        return bool(read & self._open or written & (self._open | self._fixed))

    def reads(self, names: set[str]) -> set[str]:
        """Return the variables among `names` whose present values the postponed statements still need."""
        return names & self._held

    def renamed(self, name: str, to: str) -> None:
        """Let the postponed statements read a variable under another name, because the variable changes."""
        self.statements = [_Renamed(name, to).visit(copy.deepcopy(statement)) for statement in self.statements]
        self._held = {to if held == name else held for held in self._held}


class _Renamed(ast.NodeTransformer):
    def __init__(self, name: str, to: str) -> None:
        self._name, self._to = name, to

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.copy_location(ast.Name(self._to, node.ctx), node) if node.id == self._name else node
