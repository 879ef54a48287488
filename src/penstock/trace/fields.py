"""Fields: items of dicts as separate variables, so that code that uses a few items of a dict gets only these.

    if row["label"] > 3:                →   .row['label'] = row["label"];  .row['kept'] = row["kept"]
        row["kept"] = False             →   if .row['label'] > 3: .row['kept'] = False
    return row                          →   row["kept"] = .row['kept'];  return row

The two forms are equal if no other code uses the dict in the meantime. The dict must be created for this element, and
be used under its own name and with constant keys.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.trace.statements import reads, writes
from penstock.trace.tracer import Tracer


@dataclass(frozen=True, slots=True)
class Load:
    """The statement `to = of[key]`."""

    statement: ast.stmt
    to: str
    of: str
    key: Any


@dataclass(slots=True)
class Fields:
    """Changed statements. `loads` come before them and assign the new variables, which are in `made`."""

    statements: list[ast.stmt]
    loads: list[Load] = field(default_factory=list)
    made: list[str] = field(default_factory=list)


def apart(statements: Sequence[ast.stmt], local: frozenset[str], variables: Mapping[str, Any]) -> Fields:
    """Replace items of dicts by variables of their own. `variables` are the values before the statements."""
    found = Fields(list(statements))
    values = dict(variables)
    left = [name for name in values if type(values[name]) is dict]
    while left:
        name = left.pop()
        one = _Dict(name, values[name], local | frozenset(found.made), values)
        made = one.taken_apart(found) if _is_of_the_element(values[name]) else {}
        for key, variable in made.items():
            found.made.append(variable)
            if key in values[name]:
                values[variable] = values[name][key]
                left += [variable] if type(values[variable]) is dict else []
    return found


class _Dict:
    """A dict that is the value of a variable."""

    def __init__(self, name: str, items: dict[Any, Any], local: frozenset[str], variables: Mapping[str, Any]) -> None:
        self._name = name
        self._items = items
        self._local = local
        self._others = {other for other, value in variables.items() if other != name and _reaches(value, items)}
        self._loaded: dict[Any, None] = {}
        self._stored: dict[Any, None] = {}  # in the order of the stores
        self._sure: set[Any] = set()  # keys that are stored in each case
        self._answers: dict[int, bool] = {}  # whether a key exists, by the id of the comparison

    def taken_apart(self, found: Fields) -> dict[Any, str]:
        """Change the statements. Return the names of the new variables by key."""
        statements, last = found.statements, -1
        for i, statement in enumerate(statements):
            used = reads(statement, self._local)
            if not self._others.isdisjoint(used) or not self._takes(statement):
                break
            last = i if self._name in used else last
        else:
            last = len(statements) if last >= 0 else last
        keys = {**self._loaded, **self._stored}
        if last < 0:
            return {}
        names = {key: f".{self._name}[{key!r}]" for key in keys}
        change = _Change(self._name, names, self._answers)
        end = min(last + 1, len(statements))
        changed = [change.of(statement) for statement in statements[:end]]
        before, behind = statements[0], statements[end - 1]
        puts = [self._put(key, names[key], behind) for key in self._stored] if last < len(statements) else []
        found.statements = [*changed, *puts, *statements[end:]]
        for key in keys:
            if key in self._items and not (key in self._sure and key not in self._loaded):
                store = ast.Name(names[key], ast.Store())
                load = ast.Assign([store], self._item(key, ast.Load()))
                placed = ast.fix_missing_locations(ast.copy_location(load, before))
                found.loads.append(Load(placed, names[key], self._name, key))
        return names

    def _item(self, key: Any, context: ast.expr_context) -> ast.Subscript:
        return ast.Subscript(ast.Name(self._name, ast.Load()), ast.Constant(key), context)

    def _put(self, key: Any, variable: str, where: ast.AST) -> ast.stmt:
        put = ast.Assign([self._item(key, ast.Store())], ast.Name(variable, ast.Load()))
        return ast.fix_missing_locations(ast.copy_location(put, where))

    def _takes(self, statement: ast.stmt) -> bool:
        """Return True if a statement only loads and stores items of the dict. Note these items."""
        items: list[Any] = [node for node in ast.walk(statement) if self._is_item(node)]
        asked: list[Any] = [node for node in ast.walk(statement) if self._is_asked(node)]
        names = [node for node in ast.walk(statement) if isinstance(node, ast.Name) and node.id == self._name]
        hidden = any(isinstance(node, ast.arg) and node.arg == self._name for node in ast.walk(statement))
        if hidden or self._name in writes(statement, self._local) or len(names) != len(items) + len(asked):
            return False
        known = self._items.keys() | self._stored.keys()
        loaded = dict.fromkeys(item.slice.value for item in items if isinstance(item.ctx, ast.Load))
        loaded |= dict.fromkeys(self._added(statement))
        if any(self._is_item(part) for node in ast.walk(statement) for part in _loops_over(node)):
            return False  # the variable would be local to the comprehension
        stored = [item.slice.value for item in items if isinstance(item.ctx, ast.Store)]
        new = set(stored) - known
        sure = self._surely((statement,), new)
        if not loaded.keys() <= known or sure is None or not new <= set(sure):
            return False
        if not new.isdisjoint(node.left.value for node in asked):
            return False  # the answer changes during the statement
        self._answers.update((id(node), node.left.value in known) for node in asked)
        self._loaded |= loaded
        self._sure |= set(sure)
        self._stored |= dict.fromkeys([key for key in sure if key in new])
        self._stored |= dict.fromkeys(stored)
        return True

    def _is_item(self, node: ast.AST) -> bool:
        return (
            isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Name)
            and node.value.id == self._name
            and isinstance(node.slice, ast.Constant)
            and not isinstance(node.ctx, ast.Del)
        )

    def _is_asked(self, node: ast.AST) -> bool:
        """Return True for a comparison that asks if the dict has a key."""
        return (
            isinstance(node, ast.Compare)
            and isinstance(node.left, ast.Constant)
            and len(node.ops) == 1
            and isinstance(node.ops[0], (ast.In, ast.NotIn))
            and isinstance(node.comparators[0], ast.Name)
            and node.comparators[0].id == self._name
        )

    def _added(self, statement: ast.stmt) -> list[Any]:
        """Return the keys of items that are changed in place, which loads them first."""
        nodes: list[Any] = [node.target for node in ast.walk(statement) if isinstance(node, ast.AugAssign)]
        return [node.slice.value for node in nodes if self._is_item(node)]

    def _surely(self, statements: Sequence[ast.stmt], new: set[Any]) -> tuple[Any, ...] | None:
        """Return the keys that are stored in each case, or None if the order of the `new` keys can differ."""
        found: dict[Any, None] = {}
        for statement in statements:
            keys: Sequence[Any] | None = ()
            if isinstance(statement, ast.Assign):
                targets: list[Any] = [part for target in statement.targets for part in _targets(target)]
                keys = [target.slice.value for target in targets if self._is_item(target)]
            elif isinstance(statement, ast.If):
                one, other = self._surely(statement.body, new), self._surely(statement.orelse, new)
                if (
                    one is None
                    or other is None
                    or [*filter(new.__contains__, one)] != [*filter(new.__contains__, other)]
                ):
                    return None
                keys = [key for key in one if key in other]
            if keys is None:
                return None
            found |= dict.fromkeys(keys)
        return tuple(found)


class _Change:
    """Copies statements with variables in place of items."""

    def __init__(self, name: str, variables: Mapping[Any, str], answers: Mapping[int, bool]) -> None:
        self._name, self._variables, self._answers = name, variables, answers

    def of(self, node: Any) -> Any:
        """Return a changed copy of a node."""
        if isinstance(node, list):
            return [self.of(part) for part in node]
        if not isinstance(node, ast.AST):
            return node
        made: Any
        if id(node) in self._answers and isinstance(node, ast.Compare):
            made = ast.Constant(self._answers[id(node)] is isinstance(node.ops[0], ast.In))
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == self._name:
            assert isinstance(node.slice, ast.Constant)
            made = ast.Name(self._variables[node.slice.value], node.ctx)
        else:
            made = type(node)(**{name: self.of(value) for name, value in ast.iter_fields(node)})
        return ast.copy_location(made, node)


def _loops_over(node: ast.AST) -> list[ast.expr]:
    """Return the targets of a `for` in a comprehension."""
    return _targets(node.target) if isinstance(node, ast.comprehension) else []


def _targets(target: ast.expr) -> list[ast.expr]:
    """Return the single targets in a target of an assignment."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return [part for one in target.elts for part in _targets(one)]
    return [target]


def _reaches(value: Any, wanted: Any) -> bool:
    """Return True if a nest is `wanted` itself, or contains it."""
    return value is wanted or any(_reaches(part, wanted) for part in _parts(value))


def leaves_in(value: Any) -> Iterator[Any]:
    """Yield the values in a nest of tuples, lists and dicts."""
    if type(value) in (tuple, list, dict):
        for part in _parts(value):
            yield from leaves_in(part)
    else:
        yield value


def _is_of_the_element(value: Any) -> bool:
    """Return True if a nest contains a tracer. A nest that existed before the call contains none."""
    return any(type(leaf) is Tracer for leaf in leaves_in(value))


def _parts(value: Any) -> Iterable[Any]:
    return value.values() if type(value) is dict else value if type(value) in (tuple, list) else ()
