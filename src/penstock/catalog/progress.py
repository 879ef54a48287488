"""Progress of long tasks: bars on a terminal, elsewhere a line every ten seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from penstock import options
from penstock.forked import new_lock
from penstock.hints import size_text
from penstock.profiler.live.progress import LINE_SECONDS, bars_are_seen, rich_bars

T = TypeVar("T")

_REDRAWN = 0.1  # seconds between two updates of a bar, which cost more than an example

_disabled = False


def disable_progress_bar() -> None:
    """Show no progress bars while data sets are downloaded and prepared.

    `PENSTOCK_PROGRESS=0` in the environment does the same.

    Example:
        >>> disable_progress_bar(); enable_progress_bar()
    """
    global _disabled
    _disabled = True


def enable_progress_bar() -> None:
    """Show the progress bars again that `disable_progress_bar` has switched off.

    Example:
        >>> enable_progress_bar()
    """
    global _disabled
    _disabled = False


class ProgressStep:
    """One long task. `advance` counts finished work."""

    def __init__(self, title: str, total: int | None, unit: str, tell: Callable[[ProgressStep], None]) -> None:
        self.title, self.total, self.unit, self.done = title, total, unit, 0
        self.before = 0  # finished by an earlier run
        self.began = 0.0  # on the clock of the progress
        self._tell, self._lock = tell, new_lock()

    def advance(self, amount: int = 1) -> None:
        """Count `amount` more as done. May be called by several threads."""
        with self._lock:
            self.done += amount
        self._tell(self)

    def take_up(self, amount: int) -> None:
        """Count `amount` as finished by an earlier run, so that it does not affect the speed."""
        with self._lock:
            self.done += amount
            self.before += amount
        self._tell(self)

    def expect(self, total: int | None) -> None:
        """Set the total, if it is found out later."""
        self.total = total
        self._tell(self)


class Reporter:
    """Shows the steps of one preparation on stderr.

    On a terminal, and in a notebook with ipywidgets, each step is a bar. Elsewhere (a log, a pipe) it is a line every
    ten seconds, without control characters. `say` then writes a final line.
    """

    def __init__(self, *, stream: Any = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock = stream, clock
        self.is_shown = not _disabled and options.environment("PROGRESS") != "0"
        self.is_terminal = self.is_shown and stream is None and bars_are_seen()
        self._bars: Any = None
        self._open = 0
        self._lock = new_lock()

    @contextmanager
    def step(self, title: str, total: int | None = None, unit: str = "examples") -> Iterator[ProgressStep]:
        """Show a step while the block runs. `unit` is the counted unit; "bytes" are shown as sizes."""
        if not self.is_shown:
            yield ProgressStep(title, total, unit, lambda step: None)
        elif self.is_terminal:
            with self._bar(title, total, unit) as step:
                yield step
        else:
            lines = _StepLines(self._write, self._clock)
            yield ProgressStep(title, total, unit, lines.tell)

    @contextmanager
    def follow(self, items: Iterable[T], title: str, total: int | None) -> Iterator[Iterator[T]]:
        """Yield the same `items`, and count them."""
        with self.step(title, total) as step:
            yield _counted(items, step)

    @contextmanager
    def _bar(self, title: str, total: int | None, unit: str) -> Iterator[ProgressStep]:
        with self._lock:
            if self._bars is None:
                self._bars = rich_bars()
                self._bars.start()
            self._open += 1
        task = self._bars.add_task(title, total=total, text="")
        bars, due = self._bars, 0.0

        def tell(step: ProgressStep) -> None:
            nonlocal due
            now = self._clock()
            if now >= due:
                due = now + _REDRAWN
                show(step)

        def show(step: ProgressStep) -> None:
            text = ", ".join([_amount(step), *_speed(step, self._clock() - step.began)])
            bars.update(task, completed=step.done, total=step.total, text=text)

        step = ProgressStep(title, total, unit, tell)
        step.began = self._clock()
        try:
            yield step
        finally:
            show(step)
            with self._lock:
                self._open -= 1
                if not self._open:
                    self._bars.refresh()  # rich does not refresh when it stops in a notebook: a bar would stay at 94%
                    self._bars.stop()
                    self._bars = None

    def say(self, line: str) -> None:
        """Write one line, unless a bar has shown the same."""
        if self.is_shown and not self.is_terminal:
            self._write(line)

    def note(self, line: str) -> None:
        """Write one line in any case."""
        if self.is_shown:
            self._write(line)

    def _write(self, line: str) -> None:
        print(line, file=self._stream or sys.stderr, flush=True)


class _StepLines:
    """Writes a line for a step every ten seconds."""

    def __init__(self, write: Callable[[str], None], clock: Callable[[], float]) -> None:
        self._write, self._clock = write, clock
        self._began = self._last = clock()
        self._lock = new_lock()

    def tell(self, step: ProgressStep) -> None:
        now = self._clock()
        if now < self._last + LINE_SECONDS:
            return
        with self._lock:
            if now < self._last + LINE_SECONDS:
                return
            self._last = now
        self._write(line_of(step, now - self._began))


def line_of(step: ProgressStep, seconds: float) -> str:
    """Return the progress of a step, `seconds` after it began.

    >>> step = ProgressStep("shapes: generating train", 2000, "examples", lambda step: None)
    >>> step.advance(500)
    >>> line_of(step, 10.0)
    'shapes: generating train: 500 of 2,000 examples (25%), 50 examples/s, 0:00:30 left'
    """
    rate = _rate(step, seconds)
    parts = [f"{step.title}: {_amount(step)}", *_speed(step, seconds)]
    if step.total and rate > 0:
        left = max(round((step.total - step.done) / rate), 0)
        parts.append(f"{left // 3600}:{left // 60 % 60:02d}:{left % 60:02d} left")
    return ", ".join(parts)


def _rate(step: ProgressStep, seconds: float) -> float:
    return (step.done - step.before) / seconds if seconds > 0 else 0.0


def _speed(step: ProgressStep, seconds: float) -> list[str]:
    """Return the speed, if it is known."""
    rate = _rate(step, seconds)
    if rate <= 0:
        return []
    return [f"{size_text(rate)}/s" if step.unit == "bytes" else f"{rate:,.0f} {step.unit}/s"]


def _amount(step: ProgressStep) -> str:
    if step.unit == "bytes":
        return size_text(step.done) + (f" of {size_text(step.total)} ({_share(step)})" if step.total else "")
    of = f" of {step.total:,}" if step.total else ""
    return f"{step.done:,}{of} {step.unit}" + (f" ({_share(step)})" if step.total else "")


def _share(step: ProgressStep) -> str:
    return f"{100 * step.done // (step.total or 1)}%"


def _counted(items: Iterable[T], step: ProgressStep) -> Iterator[T]:
    for item in items:
        yield item
        step.advance()


class Stopwatch:
    """Measures seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start
