"""A machine that goes through code with what is known of values in place of values: every branch, and nothing is run.

What there is to know of a value is the matter of who reads: `effects` follows what is from outside, `trace.kinds` what
is text and what is float64. Here is what the instructions of CPython 3.11 to 3.14 do to the stack, in one table.
"""

from __future__ import annotations

import heapq
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any, ClassVar

from penstock.functions.code import Instruction, instructions, parts, words

EVERYWHERE = words(  # what all versions have; what each has beside that
    """BINARY_OP BUILD_LIST BUILD_MAP BUILD_SET BUILD_SLICE BUILD_STRING BUILD_TUPLE CACHE CALL CALL_FUNCTION_EX
    CHECK_EG_MATCH CHECK_EXC_MATCH COMPARE_OP CONTAINS_OP COPY COPY_FREE_VARS DELETE_ATTR DELETE_DEREF DELETE_FAST
    DELETE_GLOBAL DELETE_NAME DELETE_SUBSCR DICT_MERGE DICT_UPDATE END_ASYNC_FOR EXTENDED_ARG FOR_ITER GET_AITER
    GET_ANEXT GET_AWAITABLE GET_ITER GET_LEN GET_YIELD_FROM_ITER IMPORT_FROM IMPORT_NAME IS_OP JUMP_BACKWARD
    JUMP_BACKWARD_NO_INTERRUPT JUMP_FORWARD LIST_APPEND LIST_EXTEND LOAD_ATTR LOAD_BUILD_CLASS LOAD_CONST LOAD_DEREF
    LOAD_FAST LOAD_GLOBAL LOAD_NAME MAKE_CELL MAKE_FUNCTION MAP_ADD MATCH_CLASS MATCH_KEYS MATCH_MAPPING MATCH_SEQUENCE
    NOP POP_EXCEPT POP_TOP PUSH_EXC_INFO PUSH_NULL RAISE_VARARGS RERAISE RESUME RETURN_GENERATOR RETURN_VALUE SEND
    SETUP_ANNOTATIONS SET_ADD SET_UPDATE STORE_ATTR STORE_DEREF STORE_FAST STORE_GLOBAL STORE_NAME STORE_SUBSCR SWAP
    UNARY_INVERT UNARY_NEGATIVE UNARY_NOT UNPACK_EX UNPACK_SEQUENCE WITH_EXCEPT_START YIELD_VALUE"""
)
_SINCE_312 = """BINARY_SLICE CALL_INTRINSIC_1 CALL_INTRINSIC_2 CLEANUP_THROW END_FOR END_SEND INTERPRETER_EXIT
    LOAD_FAST_AND_CLEAR LOAD_FAST_CHECK LOAD_FROM_DICT_OR_DEREF LOAD_FROM_DICT_OR_GLOBALS LOAD_LOCALS LOAD_SUPER_ATTR
    POP_JUMP_IF_FALSE POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE POP_JUMP_IF_TRUE RESERVED STORE_SLICE """
_UNTIL_313 = "BEFORE_ASYNC_WITH BEFORE_WITH BINARY_SUBSCR BUILD_CONST_KEY_MAP LOAD_ASSERTION_ERROR "
_SINCE_313 = """CALL_KW CONVERT_VALUE ENTER_EXECUTOR EXIT_INIT_CHECK FORMAT_SIMPLE FORMAT_WITH_SPEC LOAD_FAST_LOAD_FAST
    SET_FUNCTION_ATTRIBUTE STORE_FAST_LOAD_FAST STORE_FAST_STORE_FAST TO_BOOL """
VERSIONS = {
    (3, 11): words(
        _UNTIL_313
        + """ASYNC_GEN_WRAP FORMAT_VALUE IMPORT_STAR JUMP_IF_FALSE_OR_POP JUMP_IF_TRUE_OR_POP KW_NAMES LIST_TO_TUPLE
        LOAD_CLASSDEREF LOAD_CLOSURE LOAD_METHOD POP_JUMP_BACKWARD_IF_FALSE POP_JUMP_BACKWARD_IF_NONE
        POP_JUMP_BACKWARD_IF_NOT_NONE POP_JUMP_BACKWARD_IF_TRUE POP_JUMP_FORWARD_IF_FALSE POP_JUMP_FORWARD_IF_NONE
        POP_JUMP_FORWARD_IF_NOT_NONE POP_JUMP_FORWARD_IF_TRUE PRECALL PREP_RERAISE_STAR PRINT_EXPR UNARY_POSITIVE"""
    ),
    (3, 12): words(_UNTIL_313 + _SINCE_312 + "FORMAT_VALUE KW_NAMES LOAD_CLOSURE RETURN_CONST"),
    (3, 13): words(_UNTIL_313 + _SINCE_312 + _SINCE_313 + "RETURN_CONST"),
    (3, 14): words(
        _SINCE_312
        + _SINCE_313
        + """BUILD_INTERPOLATION BUILD_TEMPLATE LOAD_COMMON_CONSTANT LOAD_FAST_BORROW LOAD_FAST_BORROW_LOAD_FAST_BORROW
        LOAD_SMALL_INT LOAD_SPECIAL NOT_TAKEN POP_ITER"""
    ),
}
REFUSED = words(  # bodies of classes and modules, coroutines, groups of exceptions, what no compiler writes
    """ASYNC_GEN_WRAP BEFORE_ASYNC_WITH CHECK_EG_MATCH CLEANUP_THROW DELETE_NAME END_ASYNC_FOR END_SEND ENTER_EXECUTOR
    EXIT_INIT_CHECK GET_AITER GET_ANEXT GET_AWAITABLE GET_YIELD_FROM_ITER IMPORT_STAR INTERPRETER_EXIT LOAD_BUILD_CLASS
    LOAD_CLASSDEREF LOAD_FROM_DICT_OR_DEREF LOAD_FROM_DICT_OR_GLOBALS LOAD_LOCALS LOAD_NAME LOAD_SUPER_ATTR
    PREP_RERAISE_STAR PRINT_EXPR RESERVED SEND STORE_NAME"""
)
NOTHING = words(
    """NOP RESUME CACHE EXTENDED_ARG PRECALL MAKE_CELL COPY_FREE_VARS NOT_TAKEN JUMP_FORWARD JUMP_BACKWARD
    JUMP_BACKWARD_NO_INTERRUPT SETUP_ANNOTATIONS DELETE_FAST DELETE_DEREF LIST_TO_TUPLE RAISE_VARARGS RERAISE"""
)
ENDS = words("RETURN_VALUE RETURN_CONST RAISE_VARARGS RERAISE")
EFFECTS: dict[str, tuple[int, int]] = {  # of instructions whose results are not known: how many they take and give
    name: effect
    for effect, names in {
        (0, 1): """GET_LEN MATCH_MAPPING MATCH_SEQUENCE LOAD_ASSERTION_ERROR LOAD_COMMON_CONSTANT RETURN_GENERATOR
            PUSH_EXC_INFO WITH_EXCEPT_START""",
        (1, 0): "POP_TOP POP_EXCEPT POP_ITER",
        (1, 1): "UNARY_POSITIVE UNARY_NEGATIVE UNARY_NOT UNARY_INVERT TO_BOOL CONVERT_VALUE CHECK_EXC_MATCH",
        (2, 1): "IS_OP CALL_INTRINSIC_2 BUILD_TEMPLATE",
        (3, 1): "MATCH_CLASS",
    }.items()
    for name in words(names)
} | {"END_FOR": (2, 0) if sys.version_info < (3, 13) else (1, 0)}
ASKING = words("UNARY_POSITIVE UNARY_NEGATIVE UNARY_NOT UNARY_INVERT TO_BOOL CONVERT_VALUE")
_DEFAULTS, _KEYWORDS, _ANNOTATIONS, _CLOSURE = 1, 2, 4, 8
_CALLS_HAVE_ALL = sys.version_info >= (3, 14)  # CALL_FUNCTION_EX always finds four values


class Machine(ABC):
    """Goes through one piece of code. Values are whatever the reader takes them to be."""

    NULL: ClassVar[Any]  # the empty place that calls have on the stack
    UNKNOWN: ClassVar[Any]
    SLICE: ClassVar[Any]
    BY_PLACE: ClassVar[bool]  # whether variables are known at each place, or once for all of the code

    def __init__(self, code: CodeType, variables: dict[str, Any]) -> None:
        self.code = code
        self.variables = variables
        self.stack: list[Any] = []
        self.steps = instructions(code)
        self.seen: dict[int, tuple[tuple[Any, ...], dict[str, Any]]] = {}
        self.at = 0
        self._waiting: list[int] = []
        self._names: tuple[str, ...] = ()

    def go_through(self) -> None:
        """Take every branch, until nothing new comes of it."""
        self.seen = {}
        self._go(0, (), self.variables)
        while self._waiting:
            offset = heapq.heappop(self._waiting)
            self.step(offset, *self.seen[offset])

    def _go(self, offset: int, stack: tuple[Any, ...], variables: dict[str, Any]) -> None:
        known = self.seen.get(offset)
        if known is not None:
            stack = tuple(map(self.joined, known[0], stack))
            merged = variables
            if self.BY_PLACE:
                merged = {name: self.joined(value, variables.get(name)) for name, value in known[1].items()}
            if all(map(self.equal, stack, known[0])) and (not self.BY_PLACE or merged == known[1]):
                return
            variables = merged
        self.seen[offset] = stack, dict(variables) if self.BY_PLACE else variables
        if offset not in self._waiting:
            heapq.heappush(self._waiting, offset)

    def step(self, offset: int, before: tuple[Any, ...], variables: dict[str, Any]) -> None:
        """One instruction, and where it leads to."""
        self.spend()
        self.at = offset
        step = self.steps.at[offset]
        if self.BY_PLACE:
            variables = dict(variables)
        for handler in self.steps.handlers:
            if handler.start <= offset < handler.end and (self.BY_PLACE or handler.target not in self.seen):
                raised = before[: handler.depth] + (self.UNKNOWN,) * (1 + handler.lasti)
                self._go(handler.target, raised, variables)
        self.variables, self.stack = variables, list(before)
        self._do(step)
        if step.target is not None:
            jumped = before[: step.jump] if step.jump < 0 else before + (self.UNKNOWN,) * step.jump
            self._go(step.target, jumped, self.variables)
        name = step.name
        if name not in ENDS and not (name.startswith("JUMP_") and "_IF_" not in name and step.target is not None):
            self._go(step.after, tuple(self.stack), self.variables)

    def _do(self, step: Instruction) -> None:
        name = step.name
        if name in _MOVES:
            _MOVES[name](self, step)
        elif name in _TAKES:
            count, does = _TAKES[name]
            does(self, step, *self._pop(count))
        elif name in _GIVES:
            wanted, answer = _GIVES[name]
            count = wanted(step.arg) if callable(wanted) else wanted
            self.stack.append(answer(self, step, *self._pop(count)))
        elif name in EFFECTS:
            takes, gives = EFFECTS[name]
            given = self._pop(takes)
            if name in ASKING:
                self.asked(given[-1], step)
            self.stack.extend([self.UNKNOWN] * gives)
        elif name.startswith(("POP_JUMP_", "JUMP_IF_")):  # of the latter, where it does not jump
            if "NONE" not in name:
                self.asked(self.stack[-1], step)
            self.stack.pop()
        elif "_FAST_" in name and isinstance(step.value, tuple):
            for what, variable in zip(parts(name), step.value, strict=True):
                if what == "LOAD":
                    self.stack.append(self.load(variable))
                else:
                    self.store(variable, self.stack.pop())
        elif name not in NOTHING:
            self.refuse(name)

    def _pop(self, count: int) -> list[Any]:
        """The last values of the stack, the lowest first."""
        if not count:
            return []
        found = self.stack[-count:]
        del self.stack[-count:]
        return found

    # -- instructions that do more than to take some values and give one

    def _load_called(self, step: Instruction) -> None:
        """A value that may be called next, with the empty place that a call then has."""
        if step.name == "LOAD_GLOBAL":
            value, null = self.named(step.value), bool(step.arg & 1)
        else:
            value = self.attribute(self.stack.pop(), step.value)
            null = step.name == "LOAD_METHOD" or (sys.version_info >= (3, 12) and bool(step.arg & 1))
        both = (self.NULL, value) if sys.version_info < (3, 13) else (value, self.NULL)
        self.stack.extend(both if null else (value,))

    def _load_special(self, step: Instruction) -> None:
        self.managed(self.stack.pop())
        self.stack.extend((self.UNKNOWN, self.NULL))

    def _before_with(self, step: Instruction) -> None:
        manager = self.stack.pop()
        self.managed(manager)
        self.stack.extend((self.UNKNOWN, manager))

    def _add(self, step: Instruction) -> None:
        values, place = self._pop(2 if step.name == "MAP_ADD" else 1), -step.arg
        self.stack[place] = self.added(self.stack[place], values)

    def _extend(self, step: Instruction) -> None:
        value, place = self.stack.pop(), -step.arg
        self.stack[place] = self.extended(self.stack[place], value, mapping=step.name.startswith("DICT"))

    def _intrinsic(self, step: Instruction) -> None:
        if "PRINT" in step.spelled:
            self.refuse("PRINT_EXPR")

    def _swap(self, step: Instruction) -> None:
        stack = self.stack
        stack[-1], stack[-step.arg] = stack[-step.arg], stack[-1]

    def _unpack(self, step: Instruction) -> None:
        value, starred = self.stack.pop(), step.name == "UNPACK_EX"
        count = (step.arg & 0xFF) + 1 + (step.arg >> 8) if starred else step.arg
        self.stack.extend(self.unpacked(value, count, starred=starred))

    def _make_function(self, step: Instruction) -> None:
        code = self.constant_of(self.stack.pop())
        cells = self.stack.pop() if step.arg & _CLOSURE else None
        self._pop(bool(step.arg & _ANNOTATIONS))
        defaults = self._pop(bool(step.arg & _KEYWORDS) + bool(step.arg & _DEFAULTS))
        self.stack.append(self.function(code, cells, defaults))

    def _set_function_attribute(self, step: Instruction) -> None:
        function, attribute = self.stack.pop(), self.stack.pop()
        if step.arg == _CLOSURE:
            function = self.function_with(function, attribute, [])
        elif step.arg in (_DEFAULTS, _KEYWORDS):
            function = self.function_with(function, None, [attribute])
        self.stack.append(function)

    def _kw_names(self, step: Instruction) -> None:
        self._names = step.value if isinstance(step.value, tuple) else self.code.co_consts[step.arg]

    def _call(self, step: Instruction) -> None:
        names, self._names = self._names, ()
        if step.name == "CALL_KW":
            names = self.constant_of(self.stack.pop())
        given = self._pop(step.arg)
        function, first = self._pop(2)
        if function == self.NULL:
            function = first
        elif first != self.NULL:
            given = [first, *given]
        count = len(given) - len(names)
        self.stack.append(self.called(function, given[:count], dict(zip(names, given[count:], strict=True))))

    def _call_with_all(self, step: Instruction) -> None:
        named = self.stack.pop() if _CALLS_HAVE_ALL or step.arg & 1 else self.NULL
        given = self.stack.pop()
        function, first = self._pop(2)
        function = first if function == self.NULL else function
        self.stack.append(self.called_with_all(function, given, None if named == self.NULL else named))

    def _yield_value(self, step: Instruction) -> None:
        self.returned(self.stack.pop())
        self.stack.append(self.UNKNOWN)

    # -- what the reader knows

    @abstractmethod
    def spend(self) -> None:
        """One more instruction is looked at."""

    @abstractmethod
    def refuse(self, name: str) -> None:
        """An instruction that is not gone through: raises."""

    @abstractmethod
    def joined(self, old: Any, new: Any) -> Any:
        """What holds of a value that is one or the other."""

    def equal(self, one: Any, other: Any) -> bool:
        """Whether as much is known of both."""
        return bool(one == other)

    @abstractmethod
    def constant_of(self, value: Any) -> Any:
        """The constant that the compiler has put there."""

    @abstractmethod
    def named(self, name: str) -> Any:
        """A global name, or a builtin."""

    @abstractmethod
    def attribute(self, owner: Any, name: str) -> Any:
        """An attribute of a value."""

    @abstractmethod
    def load(self, variable: str) -> Any:
        """A local variable."""

    @abstractmethod
    def store(self, variable: str, value: Any) -> None:
        """A local variable is assigned to."""

    @abstractmethod
    def called(self, function: Any, given: list[Any], named: dict[str, Any]) -> Any:
        """What a call gives."""

    @abstractmethod
    def called_with_all(self, function: Any, given: Any, named: Any | None) -> Any:
        """`function(*given, **named)`."""

    @abstractmethod
    def function(self, code: CodeType, cells: Any | None, defaults: Sequence[Any]) -> Any:
        """A function that the code makes."""

    @abstractmethod
    def returned(self, value: Any) -> None:
        """What the code returns, or yields."""

    @abstractmethod
    def unpacked(self, value: Any, count: int, *, starred: bool) -> list[Any]:
        """The values of `a, b = value`."""

    def function_with(self, function: Any, cells: Any | None, defaults: Sequence[Any]) -> Any:
        """The same function with cells, or with more defaults."""
        return function

    def added(self, container: Any, values: Sequence[Any]) -> Any:
        """The container of a comprehension, with one more item."""
        return container

    def extended(self, container: Any, value: Any, *, mapping: bool) -> Any:
        """The container of a display, with all items of a value."""
        return container

    def asked(self, value: Any, step: Instruction) -> None:  # noqa: B027
        """A value is asked whether it is true, for its length, for a text, or for its negative."""

    def managed(self, value: Any) -> None:  # noqa: B027
        """A with block of a value."""

    # the tables below also ask for: constant, load_shared, store_shared, module, change_attribute, change_item,
    # change_global, item, each, iterated, items_matched, combined, compared, contained, built, built_mapping, text


def _each(*tables: tuple[str, Any]) -> dict[str, Any]:
    return {name: entry for names, entry in tables for name in words(names)}


def _text(machine: Any, step: Instruction, *values: Any) -> Any:
    return machine.text(step, values)


def _as_many(number: int) -> int:
    return number


_TAKES: dict[str, tuple[int, Callable[..., None]]] = _each(  # how many values, and what is done with them
    ("STORE_FAST", (1, lambda m, step, value: m.store(step.value, value))),
    ("STORE_DEREF", (1, lambda m, step, value: m.store_shared(step.value, value))),
    ("STORE_ATTR", (2, lambda m, step, value, owner: m.change_attribute(owner, step.value, value))),
    ("DELETE_ATTR", (1, lambda m, step, owner: m.change_attribute(owner, step.value, None))),
    ("STORE_SUBSCR", (3, lambda m, step, value, owner, key: m.change_item(owner, value))),
    ("DELETE_SUBSCR", (2, lambda m, step, owner, key: m.change_item(owner, None))),
    ("STORE_SLICE", (4, lambda m, step, value, owner, start, stop: m.change_item(owner, None))),
    ("STORE_GLOBAL", (1, lambda m, step, value: m.change_global(step.value))),
    ("DELETE_GLOBAL", (0, lambda m, step: m.change_global(step.value))),
    ("RETURN_VALUE", (1, lambda m, step, value: m.returned(value))),
    ("RETURN_CONST", (0, lambda m, step: m.returned(m.constant(step.value)))),
    ("GET_ITER", (0, lambda m, step: m.iterated(m.stack[-1]))),
)
_GIVES: dict[str, tuple[int | Callable[[int], int], Callable[..., Any]]] = _each(  # and what is put in their place
    (
        "LOAD_FAST LOAD_FAST_CHECK LOAD_FAST_BORROW LOAD_FAST_AND_CLEAR LOAD_CLOSURE",
        (0, lambda m, step: m.load(step.value)),
    ),
    ("LOAD_DEREF", (0, lambda m, step: m.load_shared(step.value))),
    ("LOAD_CONST LOAD_SMALL_INT", (0, lambda m, step: m.constant(step.value))),
    ("PUSH_NULL", (0, lambda m, step: m.NULL)),
    ("COPY", (0, lambda m, step: m.stack[-step.arg])),
    ("FOR_ITER", (0, lambda m, step: m.each(m.stack[-1]))),
    ("IMPORT_FROM", (0, lambda m, step: m.attribute(m.stack[-1], step.value))),
    ("MATCH_KEYS", (0, lambda m, step: m.items_matched(m.stack[-2]))),
    (
        "BINARY_OP",
        (2, lambda m, step, a, b: m.item(a, b) if step.spelled == "[]" else m.combined(a, b, step.spelled)),
    ),
    ("COMPARE_OP", (2, lambda m, step, left, right: m.compared(left, right, step.spelled))),
    ("CONTAINS_OP", (2, lambda m, step, value, container: m.contained(value, container))),
    ("BINARY_SUBSCR", (2, lambda m, step, owner, key: m.item(owner, key))),
    ("BINARY_SLICE", (3, lambda m, step, owner, start, stop: m.item(owner, m.SLICE))),
    (
        "IMPORT_NAME",
        (2, lambda m, step, up, names: m.module(step.value if m.constant_of(names) else step.value.partition(".")[0])),
    ),
    ("BUILD_SLICE", (_as_many, lambda m, step, *values: m.SLICE)),
    ("BUILD_TUPLE", (_as_many, lambda m, step, *values: m.built(tuple, values))),
    ("BUILD_LIST", (_as_many, lambda m, step, *values: m.built(list, values))),
    ("BUILD_SET", (_as_many, lambda m, step, *values: m.built(set, values))),
    ("BUILD_MAP", (lambda count: 2 * count, lambda m, step, *values: m.built_mapping(values[::2], values[1::2]))),
    (
        "BUILD_CONST_KEY_MAP",
        (
            lambda count: count + 1,
            lambda m, step, *values: m.built_mapping(tuple(map(m.constant, m.constant_of(values[-1]))), values[:-1]),
        ),
    ),
    ("BUILD_STRING", (_as_many, _text)),
    ("FORMAT_SIMPLE", (1, _text)),
    ("FORMAT_WITH_SPEC", (2, _text)),
    ("FORMAT_VALUE", (lambda flags: 1 + bool(flags & 4), _text)),
    ("BUILD_INTERPOLATION", (lambda flags: 2 + flags % 2, _text)),
)
_MOVES: dict[str, Callable[[Any, Instruction], None]] = _each(
    ("LOAD_GLOBAL LOAD_ATTR LOAD_METHOD", Machine._load_called),
    ("LOAD_SPECIAL", Machine._load_special),
    ("BEFORE_WITH", Machine._before_with),
    ("LIST_APPEND SET_ADD MAP_ADD", Machine._add),
    ("LIST_EXTEND SET_UPDATE DICT_UPDATE DICT_MERGE", Machine._extend),
    ("CALL_INTRINSIC_1", Machine._intrinsic),
    ("SWAP", Machine._swap),
    ("UNPACK_SEQUENCE UNPACK_EX", Machine._unpack),
    ("MAKE_FUNCTION", Machine._make_function),
    ("SET_FUNCTION_ATTRIBUTE", Machine._set_function_attribute),
    ("KW_NAMES", Machine._kw_names),
    ("CALL CALL_KW", Machine._call),
    ("CALL_FUNCTION_EX", Machine._call_with_all),
    ("YIELD_VALUE", Machine._yield_value),
)
