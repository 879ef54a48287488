"""progress: a progress bar for a training loop, with the length of the iteration and the share of waiting time."""

from __future__ import annotations

import importlib.util
import operator
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

from penstock import options
from penstock.errors import InvalidArgumentError, InvalidTypeError, MissingDependencyError
from penstock.plan.node import check_int
from penstock.profiler.analysis.figures import number, percent

T = TypeVar("T")

_BARS = ("auto", "rich", "tqdm", "lines", "off")
_DRAWN = 0.1  # seconds between two updates of a bar
LINE_SECONDS = 10.0  # seconds between two lines in a log
_RECENTLY = 50  # updates from which rate and waiting are computed


class Progress(Generic[T]):
    """The result of `progress`: iterates over the data, once for each `for`."""

    def __init__(self, data: Iterable[T], desc: str, total: int | None, bar: str) -> None:
        self._data, self.desc, self.total, self._bar = data, desc, total, bar
        self.count = 0  # elements of the latest iteration
        self.waited = 0.0  # seconds of the latest iteration in which the loop waited

    def __iter__(self) -> Iterator[T]:
        clock = time.perf_counter
        self.count, self.waited = 0, 0.0
        elements = iter(self._data)
        shown = _SHOWN[self._bar](self)
        try:
            asked = clock()
            for element in elements:
                got = clock()
                self.count += 1
                self.waited += got - asked
                shown.tell(got)
                yield element
                asked = clock()
            self.waited += clock() - asked
        finally:
            shown.close(clock())

    def __len__(self) -> int:
        if self.total is None:
            raise InvalidTypeError("The number of elements is not known.", hint="Pass it: ps.progress(ds, total=1000).")
        return self.total


def progress(data: Iterable[T], *, desc: str = "", total: int | None = None, bar: str = "auto") -> Progress[T]:
    """Iterate over a data set, an iterator or any iterable, and show a progress bar.

    The bar shows the number of elements and their total, the elements per second and the remaining time, and the share
    of the time that your loop waited for data. `PENSTOCK_PROGRESS=0` in the environment switches all bars off.

    Args:
        data: The iterable.
        desc: Text before the bar.
        total: Number of elements. Default: `cardinality()` or `len()` of `data`.
        bar: `"rich"`, `"tqdm"`, `"lines"` (one line every ten seconds, for a log) or `"off"`. `"auto"` uses tqdm if the
            program has imported it, lines if stderr is not a terminal, and otherwise rich. Default: `"auto"`.

    Returns:
        An iterator over the elements of `data`, with the attributes of the iterator of `data`, such as `state_dict`.

    Raises:
        InvalidTypeError: If `data` is not iterable.
        InvalidArgumentError: If `bar` is another string.
        MissingDependencyError: If `bar` is `"tqdm"` and tqdm is not installed.

    Example:
        >>> import penstock as ps
        >>> for batch in ps.progress(ps.Dataset.range(6).batch(2), desc="epoch 1", bar="off"):
        ...     print(batch)
        [0 1]
        [2 3]
        [4 5]
    """
    if not isinstance(data, Iterable):
        message = f"progress needs a data set or another iterable, got {type(data).__name__}."
        raise InvalidTypeError(message, hint="Write: for batch in ps.progress(ds):")
    if bar not in _BARS:
        raise InvalidArgumentError(f"bar must be one of {', '.join(map(repr, _BARS))}, got bar={bar!r}.")
    if bar == "tqdm" and importlib.util.find_spec("tqdm") is None:
        message = "bar='tqdm' needs tqdm, which is not installed."
        raise MissingDependencyError(message, hint="pip install tqdm, or leave bar out.")
    if total is not None:
        check_int("total", total, least=0, hint="total is the number of elements (batches).")
    return Progress(data, desc, _length(data) if total is None else total, _chosen(bar))


def in_notebook() -> bool:
    """Return True if this program runs in a notebook."""
    shell = sys.modules.get("IPython")
    found = shell.get_ipython() if shell is not None and hasattr(shell, "get_ipython") else None
    return found is not None and "IPKernelApp" in getattr(found, "config", {})


def has_widgets() -> bool:
    """Return True if a notebook can show changing output. Otherwise rich shows nothing there."""
    return importlib.util.find_spec("ipywidgets") is not None


def rich_bars(*, redrawn: bool = True) -> Any:
    """Return rich bars, not started, on stderr or in a notebook. The `text` of a task is shown after its bar.

    With `redrawn=False`, they change only on request.
    """
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    told = (TextColumn("{task.description}"), BarColumn(24), TextColumn("{task.fields[text]}"))
    times, console = (TimeElapsedColumn(), TimeRemainingColumn()), Console(stderr=not in_notebook())
    return Bars(*told, *times, console=console, auto_refresh=redrawn)


def bars_are_seen() -> bool:
    """Return True if a bar on stderr is visible: on a terminal, or in a notebook that can show changing output."""
    return has_widgets() if in_notebook() else sys.stderr.isatty()


def _chosen(bar: str) -> str:
    if options.environment("PROGRESS") == "0":
        return "off"
    if bar != "auto":
        return bar
    if not bars_are_seen():
        return "line" if in_notebook() else "lines"
    return "tqdm" if "tqdm" in sys.modules else "rich"


def _length(data: Any) -> int | None:
    cardinality = getattr(data, "cardinality", None)
    if callable(cardinality):
        return count if (count := int(cardinality())) >= 0 else None
    try:
        return operator.length_hint(data) or None
    except TypeError:
        return None


# -- display classes


class _Shown:
    """Shows nothing. Base of the other display classes."""

    every = float("inf")

    def __init__(self, of: Progress[Any]) -> None:
        self.of = of
        begun = time.perf_counter()
        self._due = begun + self.every
        self._marks = deque([(begun, 0, 0.0)], maxlen=_RECENTLY)
        self.per_second = self.share = 0.0

    def tell(self, now: float) -> None:
        if now >= self._due:
            self._due = now + self.every
            self._measure(now)
            self.draw()

    def close(self, now: float) -> None:
        self._measure(now)
        self.draw()

    def draw(self) -> None:
        """Show the progress."""

    def _measure(self, now: float) -> None:
        at, count, waited = self._marks[0]
        passed = max(now - at, 1e-9)
        self.per_second = (self.of.count - count) / passed
        self.share = min((self.of.waited - waited) / passed, 1.0)
        self._marks.append((now, self.of.count, self.of.waited))

    def text(self) -> str:
        return f"{number(self.per_second)}/s, waits {percent(self.share)}"


class _Lines(_Shown):
    every = LINE_SECONDS
    before, after = "", "\n"

    def draw(self) -> None:
        of = f" of {self.of.total:,} ({100 * self.of.count // self.of.total} %)" if self.of.total else ""
        title = f"{self.of.desc}: " if self.of.desc else ""
        sys.stderr.write(f"{self.before}{title}{self.of.count:,}{of}, {self.text()}{self.after}")
        sys.stderr.flush()


class _Line(_Lines):
    """One line that is overwritten again and again, for notebooks without ipywidgets."""

    every = 5 * _DRAWN
    before, after = "\r", " " * 8  # overwrites the end of a longer line

    def close(self, now: float) -> None:
        super().close(now)
        sys.stderr.write("\n")


class _Rich(_Shown):
    every = _DRAWN

    def __init__(self, of: Progress[Any]) -> None:
        super().__init__(of)
        self._bars = rich_bars(redrawn=False)
        self._task = self._bars.add_task(of.desc, total=of.total, text="")
        self._bars.start()

    def draw(self) -> None:
        total = "?" if self.of.total is None else f"{self.of.total:,}"
        text = f"{self.of.count:,}/{total} {self.text()}"
        self._bars.update(self._task, completed=self.of.count, text=text, refresh=True)

    def close(self, now: float) -> None:
        super().close(now)
        self._bars.stop()


class _Tqdm(_Shown):
    every = _DRAWN

    def __init__(self, of: Progress[Any]) -> None:
        from tqdm.auto import tqdm  # type: ignore[import-untyped,unused-ignore]

        super().__init__(of)
        self._made = tqdm(total=of.total, desc=of.desc or None, mininterval=0.0)

    def draw(self) -> None:
        self._made.set_postfix_str(f"waits {percent(self.share)}", refresh=False)
        self._made.update(self.of.count - self._made.n)

    def close(self, now: float) -> None:
        super().close(now)
        self._made.close()


_SHOWN: dict[str, type[_Shown]] = {"rich": _Rich, "tqdm": _Tqdm, "lines": _Lines, "line": _Line, "off": _Shown}
