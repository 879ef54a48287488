"""Stage: the interface of everything that hands on Blocks, and the Cursor that cuts them where a stage needs it.

Contract, for stages and those who drive them:

1. `next(want)` returns a Block of 1 to about `want` elements, or None at the end, and None again after that. An empty
   Block never travels. `want` is a wish that trades latency for overhead; results never depend on it.
2. `state()` describes the elements not yet returned: a stage that is given it by `restore`, in this process or
   another, returns exactly those. It is made of numbers, strings, lists and dicts, and copies no data.
3. `restore(state)` is called at most once, before the first `next`.
4. An error from `next` ends the stage: nobody calls it again but for `close`. What came before the error in the
   defined order has been returned before.
5. A stage is used by one thread at a time. Stages that own threads or files let go of them in `close`, which may be
   called at any time between calls, and more than once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from penstock.block.block import Block, concat_blocks

State = Any


class Stage(ABC):
    """A running step of a plan. `inputs` are the stages it pulls from."""

    def __init__(self, label: str, inputs: tuple[Stage, ...] = (), where: str | None = None) -> None:
        self.label = label
        self.where = where
        self.inputs = inputs

    @abstractmethod
    def next(self, want: int) -> Block | None: ...

    @abstractmethod
    def state(self) -> State: ...

    @abstractmethod
    def restore(self, state: State) -> None: ...

    def close(self) -> None:
        """Let go of what this stage and its inputs hold."""
        for stage in self.inputs:
            stage.close()


class Cursor:
    """Takes exactly as many elements as asked for from a stage, and knows the state between any two of them."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._block: Block | None = None
        self._offset = 0
        self._before: State = None  # the state that returns `_block` first
        self._skip = 0
        self._ended = False

    def available(self) -> int:
        """Elements that can be taken without asking the stage."""
        return 0 if self._block is None else self._block.size - self._offset

    def fill(self, want: int) -> bool:
        """Make at least one element available; False at the end."""
        while self.available() == 0:
            if self._ended:
                return False
            self._before = self.stage.state()
            self._block = self.stage.next(want + self._skip)
            self._offset = 0
            if self._block is None:
                self._ended = True
                return False
            if self._skip:
                dropped = min(self._skip, self._block.size)
                self._skip -= dropped
                self._offset = dropped
        return True

    def peek(self) -> Block:
        """The available elements, still to be taken; there must be one."""
        assert self._block is not None
        return self._block.slice(self._offset, self._block.size)

    def take_available(self, count: int) -> Block:
        """Up to `count` of the available elements; there must be one."""
        assert self._block is not None
        start = self._offset
        self._offset = min(start + count, self._block.size)
        return self._block.slice(start, self._offset)

    def take(self, count: int, ask: int = 0) -> Block | None:
        """The next `count` elements, fewer only at the end; None if there are none.

        The stage is asked for `ask` at a time: asking for what is missing would make Blocks behind a filter ever
        smaller.
        """
        ask = max(ask, count)
        if not self.fill(ask):
            return None
        parts = [self.take_available(count)]
        got = parts[0].size
        while got < count and self.fill(ask):
            parts.append(self.take_available(count - got))
            got += parts[-1].size
        return concat_blocks(parts)

    def state(self) -> State:
        if self.available():
            return [self._before, self._offset]
        return [self.stage.state(), self._skip]

    def restore(self, state: State) -> None:
        below, self._skip = state
        self.stage.restore(below)

    def close(self) -> None:
        self._block = None
        self.stage.close()
