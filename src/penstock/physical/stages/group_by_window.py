"""GroupByWindow: windows of elements with one key, each given to a function that makes a data set of it."""

from __future__ import annotations

from collections.abc import Callable

from penstock.block.block import Block
from penstock.errors import Context, annotate
from penstock.physical.stage import Stage, State
from penstock.physical.stages.keyed_windows import KeyedWindow, KeyedWindows


class GroupByWindow(Stage):
    """The elements of the data sets made of windows, one data set after the other.

    The state is that of the windows, and while a data set is open, the state that gives its window once more and the
    data set's own.
    """

    def __init__(
        self,
        upstream: Stage,
        windows: KeyedWindows,
        open_window: Callable[[KeyedWindow], Stage],
        label: str,
        where: str | None,
    ) -> None:
        super().__init__(label, (upstream,), where)
        self._windows = windows
        self._open_window = open_window
        self._open: Stage | None = None
        self._acts_inside = self._acts_below = False  # as `seen` and `seen_below`, of the data sets made of windows
        self._looked: object = None  # when these were looked at
        self._resume: list[State] = []  # the state of the data set that an earlier run had open

    @property
    def seen(self) -> bool:
        return self._acts_inside or super().seen

    @property
    def seen_below(self) -> bool:
        return self._acts_below or super().seen_below

    def _look_at(self, opened: Stage) -> None:
        seen, below = opened.seen, opened.seen_below
        if (seen and not self._acts_inside) or (below and not self._acts_below):
            self._acts_inside, self._acts_below = self._acts_inside or seen, True
            self.look_again()
        self._looked = Stage._look

    def next(self, want: int) -> Block | None:
        while True:
            if self._open is None:
                self._windows.singly = self.acts
                window = self._windows.next(want)
                if window is None:
                    return None
                self._open = self._opened(window)
                self._looked = None
            block = self._open.next(1 if self._open.seen else want)
            if self._looked is not Stage._look:  # it is new, or has opened data sets itself
                self._look_at(self._open)
            if block is not None:
                return block
            self._open.close()
            self._open = None

    def _opened(self, window: KeyedWindow) -> Stage:
        resume, self._resume = self._resume, []
        try:
            found = self._open_window(window)
        except Exception as raised:
            annotate(raised, Context(self.label, self.where, window.number))
            raise
        for state in resume:
            found.restore(state)
        return found

    def state(self) -> State:
        if self._open is not None:
            return [self._windows.state_of_last(), [self._open.state()]]
        return [self._windows.state(), list(self._resume)]

    def restore(self, state: State) -> None:
        windows, self._resume = state
        self._windows.restore(windows)

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
        self._windows.close()
