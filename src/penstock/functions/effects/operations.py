"""What single instructions do to the stack: those that move values, those that read and write them, and calls."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.functions.code import Instruction
from penstock.functions.effects.values import (
    NULL,
    OWN,
    Arguments,
    Cell,
    Cells,
    Inner,
    Known,
    Made,
    Null,
    Value,
    Visible,
    change,
    holding,
    outside,
    union,
)

if TYPE_CHECKING:
    from penstock.functions.effects.interpreter import Frame


def pop(stack: list[Value], count: int) -> list[Value]:
    """The last values of a stack, the lowest first."""
    if not count:
        return []
    found = stack[-count:]
    del stack[-count:]
    return found


def is_null(value: Value) -> bool:
    return len(value) == 1 and isinstance(value[0], Null)


_NEW_CALLS = sys.version_info >= (3, 14)  # CALL_FUNCTION_EX always finds four values
_DEFAULTS, _KEYWORDS, _ANNOTATIONS, _CLOSURE = 1, 2, 4, 8


def make_function(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    code = stack.pop()
    cells: Value = stack.pop() if step.arg & _CLOSURE else ()
    pop(stack, bool(step.arg & _ANNOTATIONS))
    defaults = pop(stack, bool(step.arg & _KEYWORDS) + bool(step.arg & _DEFAULTS))
    known = next(atom.object for atom in code if isinstance(atom, Known))
    stack.append((Inner(known, _closure(cells), outside(union((), *defaults))),))


def set_function_attribute(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    function, attribute = stack.pop(), stack.pop()
    (inner,) = function
    assert isinstance(inner, Inner)
    if step.arg == _CLOSURE:
        inner = Inner(inner.code, _closure(attribute), inner.defaults)
    elif step.arg in (_DEFAULTS, _KEYWORDS):
        inner = Inner(inner.code, inner.cells, union(inner.defaults, outside(attribute)))
    stack.append((inner,))


def keyword_names(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    frame.keywords = step.value if isinstance(step.value, tuple) else frame.code.co_consts[step.arg]


def call(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    names = frame.keywords
    frame.keywords = ()
    if step.name == "CALL_KW":
        names = next(atom.object for atom in stack.pop() if isinstance(atom, Known))
    given = pop(stack, step.arg)
    function, first = pop(stack, 2)
    if is_null(function):
        function = first
    elif not is_null(first):
        given = [first, *given]
    count = len(given) - len(names)
    arguments = Arguments(given[:count], dict(zip(names, given[count:], strict=True)))
    stack.append(frame.world.call(frame, function, arguments))


def call_with_all(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    named = stack.pop() if _NEW_CALLS or step.arg & 1 else ()
    given = stack.pop()
    function, first = pop(stack, 2)
    if is_null(function):
        function = first
    rest = union(OWN, frame.world.each(frame, given))
    if named and not is_null(named):
        rest = union(rest, frame.world.each(frame, named, values=True))
    stack.append(frame.world.call(frame, function, Arguments(rest=rest)))


def gives(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    frame.given = union(frame.given, stack.pop())
    if step.name == "YIELD_VALUE":
        stack.append(OWN)


def gives_constant(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    frame.given = union(frame.given, OWN)


def _closure(value: Value) -> tuple[Cell, ...]:
    return next((atom.cells for atom in value if isinstance(atom, Cells)), ())


_KINDS: dict[str, type] = {"TUPLE": tuple, "LIST": list, "SET": set, "MAP": dict}


def load_fast(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    frame.load(step.value, stack)


def store_fast(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    frame.store(step.value, stack.pop())


def load_deref(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    cell = frame.cells[step.value]
    stack.append(cell.value or OWN)


def store_deref(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    cell = frame.cells[step.value]
    if not cell.own:
        message = f"assigns to `{step.value}` of the function around it"
        raise Visible(message)
    new = union(cell.value, stack.pop())
    if set(new) != set(cell.value):
        cell.value = new
        frame.changed = True


def load_const(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    stack.append((Known(step.value, "a constant"),))


def load_global(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    value = frame.world.named(frame, step.value)
    if not step.arg & 1:
        stack.append(value)
    elif sys.version_info < (3, 13):
        stack.extend((NULL, value))
    else:
        stack.extend((value, NULL))


def load_attr(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    value = frame.world.attribute(frame, stack.pop(), step.value)
    if step.name == "LOAD_ATTR" and (sys.version_info < (3, 12) or not step.arg & 1):
        stack.append(value)
    elif sys.version_info < (3, 13):
        stack.extend((NULL, value))
    else:
        stack.extend((value, NULL))


def load_special(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    frame.world.managed(frame, stack.pop())
    stack.extend((OWN, NULL))


def before_with(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    frame.world.managed(frame, stack[-1])
    manager = stack.pop()
    stack.extend((OWN, manager))


def store_attr(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    owner = stack.pop()
    change(owner, lambda spelled: f"assigns to an attribute, {step.value}, of {spelled}")
    if step.name == "STORE_ATTR":
        frame.world.put(frame, stack.pop())


def store_subscript(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    taken = {"STORE_SUBSCR": 3, "DELETE_SUBSCR": 2, "STORE_SLICE": 4}[step.name]
    values = pop(stack, taken)
    owner = values[0] if step.name == "DELETE_SUBSCR" else values[1]
    change(owner, lambda spelled: f"writes into {spelled}")
    if step.name == "STORE_SUBSCR":
        frame.world.put(frame, values[0])


def store_global(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    message = f"assigns to the global `{step.value}`"
    raise Visible(message)


def binary_op(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    left, right = pop(stack, 2)
    if step.spelled == "[]":
        stack.append(frame.world.item(frame, left, right))
        return
    if step.spelled.endswith("="):
        change(left, lambda spelled: f"changes {spelled} ({step.spelled})")
        stack.append(left)
        return
    stack.append(frame.world.combined(left, right))


def contains(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    _, container = pop(stack, 2)
    frame.world.operator(frame, container, "__contains__")
    stack.append(OWN)


def subscript(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    owner, key = pop(stack, 2)
    stack.append(frame.world.item(frame, owner, key))


def part(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    owner, _, _ = pop(stack, 3)
    stack.append(frame.world.item(frame, owner, (Made(slice),)))


def build_slice(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    pop(stack, step.arg)
    stack.append((Made(slice),))


def build(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    kind = _KINDS[step.name.removeprefix("BUILD_")]
    values = pop(stack, 2 * step.arg if kind is dict else step.arg)
    cells = [value[0] for value in values if len(value) == 1 and type(value[0]) is Cell]
    if kind is tuple and values and len(cells) == len(values):
        stack.append((Cells(tuple(cell for cell in cells if isinstance(cell, Cell))),))
        return
    stack.append(holding(kind, values))


def build_const_key_map(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    stack.append(holding(dict, pop(stack, step.arg + 1)))


def text(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    more = {
        "BUILD_STRING": step.arg,
        "FORMAT_VALUE": 1 + bool(step.arg & 4),
        "BUILD_INTERPOLATION": 2 + step.arg % 2,
    }
    pop(stack, more[step.name])
    stack.append(OWN)


def add(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    values = pop(stack, 2 if step.name == "MAP_ADD" else 1)
    place = -step.arg
    stack[place] = frame.world.filled(stack[place], outside(union(*values)))


def extend(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    value = stack.pop()
    inner = frame.world.each(frame, value, values=step.name.startswith("DICT"))
    place = -step.arg
    stack[place] = frame.world.filled(stack[place], outside(inner))


def intrinsic(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    if "PRINT" in step.spelled:
        message = "prints"
        raise Visible(message)


def copy(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    stack.append(stack[-step.arg])


def swap(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    stack[-1], stack[-step.arg] = stack[-step.arg], stack[-1]


def push_null(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    stack.append(NULL)


def iterate(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    frame.world.operator(frame, stack[-1], "__iter__")
    frame.world.ordered(stack[-1])


def unpack(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    item = frame.world.each(frame, stack.pop())
    count = step.arg if step.name == "UNPACK_SEQUENCE" else (step.arg & 0xFF) + 1 + (step.arg >> 8)
    stack.extend([item] * count)


def match_keys(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    stack.append(holding(tuple, [frame.world.each(frame, stack[-2], values=True)]))


def import_name(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    _, names = pop(stack, 2)
    whole = any(isinstance(atom, Known) and atom.object for atom in names)
    stack.append(frame.world.module(step.value if whole else step.value.partition(".")[0]))


def import_from(frame: Frame, step: Instruction, stack: list[Value]) -> None:
    stack.append(frame.world.attribute(frame, stack[-1], step.value))


OPERATIONS: dict[str, Callable[[Frame, Instruction, list[Value]], None]] = {
    **dict.fromkeys(("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_FAST_AND_CLEAR"), load_fast),
    "LOAD_CLOSURE": load_fast,
    "STORE_FAST": store_fast,
    "LOAD_DEREF": load_deref,
    "STORE_DEREF": store_deref,
    "LOAD_CONST": load_const,
    "LOAD_CONST_IMMORTAL": load_const,
    "LOAD_GLOBAL": load_global,
    **dict.fromkeys(("LOAD_ATTR", "LOAD_METHOD"), load_attr),
    "LOAD_SPECIAL": load_special,
    "BEFORE_WITH": before_with,
    **dict.fromkeys(("STORE_ATTR", "DELETE_ATTR"), store_attr),
    **dict.fromkeys(("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE"), store_subscript),
    **dict.fromkeys(("STORE_GLOBAL", "DELETE_GLOBAL"), store_global),
    "BINARY_OP": binary_op,
    "CONTAINS_OP": contains,
    "BINARY_SUBSCR": subscript,
    "BINARY_SLICE": part,
    "BUILD_SLICE": build_slice,
    **dict.fromkeys(("BUILD_TUPLE", "BUILD_LIST", "BUILD_SET", "BUILD_MAP"), build),
    "BUILD_CONST_KEY_MAP": build_const_key_map,
    **dict.fromkeys(("BUILD_STRING", "FORMAT_VALUE", "BUILD_INTERPOLATION"), text),
    **dict.fromkeys(("LIST_APPEND", "SET_ADD", "MAP_ADD"), add),
    **dict.fromkeys(("LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE", "DICT_MERGE"), extend),
    "CALL_INTRINSIC_1": intrinsic,
    "COPY": copy,
    "SWAP": swap,
    "PUSH_NULL": push_null,
    "GET_ITER": iterate,
    **dict.fromkeys(("UNPACK_SEQUENCE", "UNPACK_EX"), unpack),
    "MATCH_KEYS": match_keys,
    "IMPORT_NAME": import_name,
    "IMPORT_FROM": import_from,
    "MAKE_FUNCTION": make_function,
    "SET_FUNCTION_ATTRIBUTE": set_function_attribute,
    "KW_NAMES": keyword_names,
    **dict.fromkeys(("CALL", "CALL_KW"), call),
    "CALL_FUNCTION_EX": call_with_all,
    **dict.fromkeys(("RETURN_VALUE", "YIELD_VALUE"), gives),
    "RETURN_CONST": gives_constant,
}
