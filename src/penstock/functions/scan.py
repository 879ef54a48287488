"""`FunctionScan`: a walk over the syntax tree of a function, which finds its side effects.

Nothing is called. Each expression has `Origins`: the outer objects that its value can be or be a part of. All other
values belong to the call: its arguments, and the objects that it creates. Only these may be changed.

A local variable can be any value that is assigned to it anywhere. Inner functions and comprehensions share the
variables of the function. The walk is therefore repeated until it adds no possible value to any variable.

Unknown statements, library functions and methods count as side effects. Storing an outer object in an object of the
call counts as one as well. The objects of the call therefore contain no outer objects.

`Lookups` finds outer objects, `CallLookups` judges calls, `FunctionScan` walks over statements and expressions.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, CO_ITERABLE_COROUTINE
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from penstock.functions.calls import CallLookups, bound
from penstock.functions.definition import FoundDefinition, definition
from penstock.functions.libraries import Kind
from penstock.functions.lookups import parameters
from penstock.functions.objects import contents, fields, is_imported, watch
from penstock.functions.origins import NOTHING, OWN, Arguments, CallFrame, KnownObject, Origins, SideEffect, union
from penstock.functions.ownership import is_users
from penstock.functions.uses import closure, defaults

_MOST_STEPS = 20_000  # expressions that are examined, in all functions
_MOST_CALLS = 30  # nested calls
_MOST_WALKS = 12  # walks until the possible values are complete
_COROUTINE = CO_COROUTINE | CO_ITERABLE_COROUTINE | CO_ASYNC_GENERATOR
_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.BitOr: "|", ast.BitAnd: "&", ast.Mod: "%", ast.Div: "/"}


class FunctionScan(CallLookups):
    """The walk over a function and over the functions of the user that it calls."""

    def __init__(self) -> None:
        super().__init__()
        self._steps = 0
        self._definitions: dict[FunctionType, FoundDefinition] = {}
        self._frames: dict[Any, CallFrame] = {}  # frames by function and arguments
        self._walked: set[CallFrame] = set()  # frames that this walk has entered

    def start(self, function: Any, given: Mapping[str, Any]) -> None:
        """Walk through a function. The arguments in `given` are outer objects; other arguments belong to the call."""
        named = {
            name: Origins((KnownObject(value, name if name.isidentifier() else "a value"),))
            for name, value in given.items()
        }
        try:
            for _ in range(_MOST_WALKS):
                self._changed = False
                self._steps = 0
                self._walked.clear()
                self._walk(function, Arguments(named=named, rest=OWN))
                if not self._changed:
                    return
            self.refuse("has variables with too many possible values")
        except SideEffect as why:
            self._add((Kind.EFFECT,), str(why))

    def _walk(self, function: Any, arguments: Arguments) -> None:
        function = fields(function).get("__penstock_called__", function)  # compat wraps the user's function
        if type(function) is FunctionType and is_users(function):
            if function.__code__.co_flags & CO_GENERATOR:
                self.refuse("is a generator")
            self._enter(function, arguments, imported=is_imported(function))
        else:
            self._call(self._reached(function, _name_of(function)), arguments)

    # -- functions

    def _users(self, function: Any, spelled: str, arguments: Arguments, *, imported: bool = False) -> Origins:
        if type(function) is not FunctionType or not is_users(function):
            return self._call(Origins((KnownObject(function, spelled),)), arguments)
        if len(self._calls) > _MOST_CALLS:
            self.refuse("has too many nested calls")
        outer = self._frame
        self._calls.append(spelled)
        result = self._enter(function, arguments, imported=imported or (outer is not None and outer.imported))
        self._calls.pop()
        self._frame = outer
        return result

    def _enter(self, function: FunctionType, arguments: Arguments, *, imported: bool) -> Origins:
        """Return the result of a user function. Its body is walked through once in each walk."""
        code = function.__code__
        if code.co_flags & _COROUTINE:
            self.refuse("is a coroutine")
        self.watched[id(function), None] = watch(function)
        found = self._definitions.get(function) or definition(function)
        if found is None:
            self.refuse("has no source text that can be read")
            return OWN
        left_out = {name: Origins((KnownObject(value, name),)) for name, value in defaults(function).items()}
        self._definitions[function] = found
        variables = bound(found.node.args, arguments, left_out)
        imported = imported or is_imported(function)
        frame = self._frames.get((function, *variables.items(), imported))
        if frame is None:
            shared = [each for each in ast.walk(found.node) if isinstance(each, (ast.Global, ast.Nonlocal))]
            refused = {
                name for each in shared for name in each.names if type(each) is ast.Global or name in code.co_freevars
            }
            inner = [each for each in ast.walk(found.node) if isinstance(each, ast.FunctionDef)]
            frame = CallFrame(function, imported, dict(closure(function)), frozenset(refused), dict(variables))
            frame.locals |= {
                node.name: Origins((KnownObject(node, node.name),)) for node in inner if node is not found.node
            }
            self._frames[function, *variables.items(), imported] = frame
        if frame not in self._walked:
            self._walked.add(frame)
            self._frame = frame
            self._body(found.node)
        return frame.returned

    def _body(self, node: ast.FunctionDef | ast.Lambda) -> None:
        self._here.inside.append(node)
        if isinstance(node, ast.Lambda):
            self._return(self._value(node.body))
        else:
            self._statements(node.body)
        self._here.inside.pop()

    def _return(self, value: Origins) -> None:
        frame = self._here
        if len(frame.inside) > 1:
            self._grow(self._returned, frame.inside[-1], value)
        elif frame.returned != union(frame.returned, value):
            frame.returned = union(frame.returned, value)
            self._changed = True

    def _inner(self, node: ast.FunctionDef | ast.Lambda) -> Origins:
        """Return an inner function. Its body is walked through with the arguments of all its calls."""
        given = node.args
        places = [one.arg for one in (*given.posonlyargs, *given.args)]
        with_default = [*places[len(places) - len(given.defaults) :], *(one.arg for one in given.kwonlyargs)]
        for name, default in zip(with_default, (*given.defaults, *given.kw_defaults), strict=True):
            if default is not None:
                self._assign(name, self._value(default))
        for name in parameters(given):
            self._assign(name, union(OWN, self._given.get((node, name), NOTHING)))
        self._body(node)
        return Origins((KnownObject(node, getattr(node, "name", "a lambda")),))

    # -- statements

    def _statements(self, *bodies: Any) -> None:
        for body in bodies:
            for each in body:
                self._statement(each)

    def _statement(self, node: ast.AST) -> None:
        if not self._calls:
            self._line = getattr(node, "lineno", self._line)
        match node:
            case ast.Assign() | ast.AnnAssign():
                value = OWN if node.value is None else self._value(node.value)
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    self._store(target, value)
            case ast.AugAssign():
                old, value = self._value(node.target), self._value(node.value)
                self._operated(union(old, value))
                self._change(old, f"changes {{}} ({_SIGNS.get(type(node.op), 'in place')}=)")
                if isinstance(node.op, (ast.Add, ast.BitOr)):
                    self._keep(self._items(value))
                self._store(node.target, OWN)
            case ast.Return():
                self._return(OWN if node.value is None else self._value(node.value))
            case ast.For():
                self._store(node.target, self._items(self._value(node.iter)))
                self._statements(node.body, node.orelse)
            case ast.With():
                for item in node.items:
                    manager = self._value(item.context_expr)
                    if manager.outside:
                        self.refuse(f"uses `{manager.outside}` in a with statement")
                    if item.optional_vars is not None:
                        self._store(item.optional_vars, OWN)
                self._statements(node.body)
            case ast.Import() | ast.ImportFrom():
                self._import(node)
            case ast.FunctionDef(decorator_list=[]):
                self._inner(node)
            case ast.Delete():
                for target in node.targets:
                    self._store(target, OWN)
            case ast.ExceptHandler():
                if node.name:
                    self._assign(node.name, OWN)
                self._statements([] if node.type is None else [node.type], node.body)
            case ast.expr():
                self._operated(self._value(node))
            case ast.Raise():
                for value in self._values(node.exc, node.cause):
                    self._keep(value)
            case ast.Expr() | ast.If() | ast.While() | ast.Assert() | ast.Try():
                self._statements(ast.iter_child_nodes(node))
            case ast.Pass() | ast.Break() | ast.Continue() | ast.Global() | ast.Nonlocal():
                pass
            case _:
                self.refuse(f"has a statement that is not analysed ({type(node).__name__})")

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            if isinstance(node, ast.Import):
                found = self._module(alias.name)
                self._assign(name, found if alias.asname else self._module(name))
            elif node.level or node.module is None or alias.name == "*":
                self.refuse("imports from its own package")
            else:
                self._assign(alias.asname or alias.name, self._attribute(self._module(node.module), alias.name))

    def _assign(self, name: str, value: Origins) -> None:
        frame = self._here
        if name in frame.refused:
            around = " of the function around it" if name in frame.function.__code__.co_freevars else ", a global"
            self.refuse(f"assigns to `{name}`{around}")
        self._grow(frame.locals, name, value)

    def _store(self, target: ast.expr, value: Origins) -> None:
        match target:
            case ast.Name(id=name):
                self._assign(name, value)
            case ast.Tuple() | ast.List():
                for each in target.elts:
                    self._store(each, self._items(value))
            case ast.Starred():
                self._store(target.value, value.part)
            case ast.Attribute(attr=name):
                self._change(self._value(target.value), f"assigns to an attribute, {name}, of {{}}")
                self._keep(value)
            case ast.Subscript():
                self._operated(self._value(target.slice))
                self._change(self._value(target.value), "writes into {}")
                self._keep(self._items(value) if isinstance(target.slice, ast.Slice) else value)
            case _:
                self.refuse("has an assignment that is not analysed")

    # -- expressions

    def _values(self, *nodes: ast.AST | None) -> list[Origins]:
        return [self._value(each) for each in nodes if isinstance(each, ast.expr)]

    def _value(self, node: ast.expr) -> Origins:
        """Return the origins of an expression."""
        self._steps += 1
        if self._steps > _MOST_STEPS:
            self.refuse("is too long to be analysed")
        match node:
            case ast.Constant():
                return Origins((KnownObject(None, "None"),)) if node.value is None else OWN
            case ast.Name(id=name):
                return self._name(name)
            case ast.Attribute(value=owner, attr=name):
                return self._attribute(self._value(owner), name)
            case ast.Subscript():
                return self._subscript(node, *self._values(node.value, node.slice))
            case ast.Call():
                return self._called(node)
            case ast.Lambda():
                return self._inner(node)
            case ast.BoolOp() | ast.IfExp():
                parts = self._values(*ast.iter_child_nodes(node))
                self._operated(union(*parts))
                return union(*parts)
            case ast.Compare() | ast.UnaryOp() | ast.JoinedStr() | ast.FormattedValue() | ast.Slice():
                return union(OWN, self._operated(union(*self._values(*ast.iter_child_nodes(node)))))
            case ast.BinOp():
                left, right = self._values(node.left, node.right)
                lists = [one for one in (*left.objects, *right.objects) if contents(one.object) is not None]
                inside = self._items(Origins(tuple(lists), left.held or right.held))
                return union(self._operated(union(left, right)), inside.part)
            case ast.List() | ast.Tuple() | ast.Set():
                return union(*map(self._escape, self._values(*node.elts))).part
            case ast.Dict():
                values = self._values(*node.keys, *node.values)
                if None in node.keys:  # `**` adds the values of another mapping
                    values += [self._items(value, values=True) for value in values]
                return union(*map(self._escape, values)).part
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                for one in node.generators:
                    self._store(one.target, self._items(self._value(one.iter)))
                    self._statements(one.ifs)
                items = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
                return union(*map(self._escape, self._values(*items))).part
            case ast.NamedExpr():
                value = self._value(node.value)
                self._store(node.target, value)
                return value
            case ast.Starred():
                return self._items(self._value(node.value))
            case ast.Yield():
                self._return(self._escape(union(*self._values(node.value))).part)
                return OWN
        self.refuse(f"has an expression that is not analysed ({type(node).__name__})")
        return OWN

    def _called(self, node: ast.Call) -> Origins:
        arguments = Arguments()
        for each in node.args:
            if isinstance(each, ast.Starred) or arguments.rest is not None:
                arguments.rest = union(arguments.rest or NOTHING, self._value(each))
            else:
                arguments.positional.append(self._value(each))
        for keyword in node.keywords:
            value = self._value(keyword.value)
            if keyword.arg is None:
                arguments.rest = union(arguments.rest or NOTHING, self._items(value, values=True))
            else:
                arguments.named[keyword.arg] = value
        if isinstance(node.func, ast.Attribute):
            return self._method(self._value(node.func.value), node.func.attr, arguments, node)
        return self._call(self._value(node.func), arguments, node)


def _name_of(function: Any) -> str:
    if type(function) is MethodType:
        function = function.__func__
    if type(function) is functools.partial:
        function = function.func
    return str(function.__name__) if type(function) in (FunctionType, BuiltinFunctionType) else type(function).__name__
