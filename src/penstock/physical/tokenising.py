"""Tokenising: for a function that calls a tokeniser per text, the tokeniser gets all texts of a Block in one call.

The function has no side effects, so it may be called twice for each element, with placeholders for its tokenisers. In
the first call, a placeholder records the text and aborts the call. Then the library gets all texts at once. In the
second call, the placeholder returns the result of the library. For the first elements, the results are also computed as
written and compared.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

from penstock.block.block import Block
from penstock.block.structure import components
from penstock.functions.memory import notes_of
from penstock.functions.ownership import is_plain_object
from penstock.functions.tokenisers import LIBRARIES, LOCK, SingleCalls, Tokeniser, tokeniser_of
from penstock.physical.vectorise import PartTrial, equal_blocks
from penstock.trace.drawing import Element
from penstock.trace.tables import Among

_NOTE = "tokenising"
_MOST = 64  # items of a container that may contain tokenisers


class _Noted(BaseException):
    """Aborts the function at its first text."""


class Tokenising:
    """A function that calls tokenisers and has no side effects."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._trial = PartTrial()
        self.by_block = True  # True if the library got the texts of the last Block in one call

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Tokenising | None:
        """Return a Tokenising, or None for functions that call no known tokeniser or have side effects."""
        return cls(function) if tokenisers_in(function) and _why_seen(function) is None else None

    def calls(self, block: Block, now: Element) -> TokeniserCalls | None:
        """Return the calls for the rows of a Block, or None if the function has to be called as written."""
        if self._trial.failed or block.size == 1:
            return None  # a batch of one text gains nothing
        calls = TokeniserCalls(self._function, block, now)
        for row in () if calls.why else range(block.size):
            if self._trial.over:
                break
            self._trial.checked += 1
            if not calls.as_written(row):
                self._trial.failed, calls.why = True, "some of its results differed from those of single calls"
        self.by_block = not calls.why
        notes = notes_of(self._function)
        if notes is not None:
            notes[_NOTE] = calls.why
        return calls if self.by_block else None


class TokeniserCalls:
    """The calls for the rows of one Block. `why` is the reason if the library got the texts one by one."""

    given = None

    def __init__(self, function: Callable[..., Any], block: Block, now: Element) -> None:
        self.why = ""
        self._plain, self._now = function, now
        self._function = _TokenisersAmong(self).called(function)
        self._elements = block.elements()
        self._unpacks = block.structure.unpacks
        self._asks: dict[int, tuple[Any, ...]] = {}  # by row
        self._answers: dict[int, Any] = {}
        self._row, self._noting = 0, True
        for row in range(block.size):
            now.begin(row)
            try:
                self(row)
            except (_Noted, Exception):  # a call that fails here fails again when its result is needed
                continue
        self._noting = False
        self._ask_for_all()

    def __call__(self, row: int, function: Callable[..., Any] | None = None) -> Any:
        """Call the function for the element in a row."""
        self._row, element = row, self._elements[row]
        function = function or self._function
        return function(*element) if self._unpacks else function(element)

    def _ask_for_all(self) -> None:
        left = dict(self._asks)
        while left:
            own, kind, method, _, options = next(iter(left.values()))
            same = [row for row, ask in left.items() if (ask[0], ask[2], ask[4]) == (own, method, options)]
            texts = [left.pop(row)[3] for row in same]
            try:
                with LOCK if kind.name.endswith("transformers") else nullcontext():
                    answers = kind.many(own, method, [text[0] if len(text) == 1 else text for text in texts], options)
                self._answers.update(zip(same, answers, strict=True))
            except SingleCalls as error:
                self.why = f"{kind.name} is called for each text, as {error}"
            except Exception:  # an error for one of the texts: its own call raises it again
                continue

    def as_written(self, row: int) -> bool:
        """Return True if the result for an element equals the result as written. It uses up the stored answer."""
        made: list[Block] = []
        for function in (self._plain, self._function):
            self._now.begin(row)
            try:
                made.append(Block.from_elements([components(self(row, function))]))
            except Exception:
                break
        return not made or (len(made) == 2 and equal_blocks(made[1], made[0]))

    def asked(self, own: Any, kind: Tokeniser, method: str, call: Any, /, *texts: Any, **options: Any) -> Any:
        """Handle the call of a tokeniser."""
        ask = own, kind, method, texts, options
        known = all(type(text) is str for text in texts) and 0 < len(texts) <= (2 if "tokenizers." in kind.name else 1)
        if self._noting and known:
            self._asks[self._row] = ask
            raise _Noted
        answer = self._answers.pop(self._row, None)
        if answer is not None and ask == self._asks[self._row]:
            return answer
        with LOCK if kind.name.endswith("transformers") else nullcontext():
            return call(*texts, **options)


class _TokeniserPlaceholder:
    """Replaces a tokeniser and intercepts its calls."""

    def __init__(self, own: Any, kind: Tokeniser, calls: TokeniserCalls) -> None:
        self._own, self._kind, self._calls = own, kind, calls

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._own, name)
        return partial(self._calls.asked, self._own, self._kind, name, found) if name in self._kind.methods else found

    def __call__(self, *texts: Any, **options: Any) -> Any:
        return self.__getattr__("__call__")(*texts, **options)


class _TokenisersAmong(Among):
    """Replaces the tokenisers of functions. `found` lists them."""

    def __init__(self, calls: TokeniserCalls | None) -> None:
        super().__init__({})
        self._calls = calls
        self.found: list[Tokeniser] = []

    def _found(self, value: Any) -> Any:
        large = type(value) in (tuple, list, dict) and len(value) > _MOST
        return value if large else super()._found(value)

    def owner(self, value: Any) -> Any:
        if not is_plain_object(value):
            return value
        own = vars(value)
        held = {name: self.of(item) for name, item in own.items()}
        if all(held[name] is item for name, item in own.items()):
            return value
        made = object.__new__(type(value))
        vars(made).update(held)
        return made

    def leaf(self, value: Any) -> Any:
        kind = tokeniser_of(value)
        if kind is None:
            return value
        self.found.append(kind)
        return value if self._calls is None else _TokeniserPlaceholder(value, kind, self._calls)


def tokenisers_in(function: Callable[..., Any]) -> list[Tokeniser]:
    """Return the known tokenisers that a user's function may call."""
    among = _TokenisersAmong(None)
    if not LIBRARIES.isdisjoint(sys.modules):
        among.called(function)
    return among.found


def described(function: Callable[..., Any]) -> str:
    """Return a sentence about the calls of a function's tokenisers; empty for a function without tokenisers."""
    if not (found := tokenisers_in(function)):
        return ""
    if (seen := _why_seen(function)) is not None:
        return f"{found[0].name} is called for each text, because the function has side effects: {seen}"
    return (notes_of(function) or {}).get(_NOTE) or f"{found[0].name} gets the texts of a Block in one call"


def _why_seen(function: Callable[..., Any]) -> str | None:
    from penstock.plan.visible import why_seen_of  # loaded here: a worker process starts without plans

    return why_seen_of(function)
