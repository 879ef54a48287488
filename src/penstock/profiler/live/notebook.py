"""Notebook: the live table in a cell's output, updated while the notebook continues."""

from __future__ import annotations

import sys
import threading
from typing import Any

from penstock.errors import FailedPreconditionError, InvalidArgumentError
from penstock.plan.node import Node
from penstock.profiler.live.html import body, style
from penstock.profiler.live.snapshot import no_longer, snapshot, want


class Notebook:
    """The result of `ds.monitor()`: the table is updated until `stop()`."""

    def __init__(self, plan: Node, seconds: float) -> None:
        if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0.1 <= seconds <= 3600:
            message = f"seconds must be a number from 0.1 to 3600, got seconds={seconds!r}."
            raise InvalidArgumentError(message, hint="Leave it out to refresh once a second.")
        display: Any = _display()
        self._plan, self._seconds = plan, seconds
        self._over = threading.Event()
        want()
        self._handle = display(_Html(self._page()), display_id=True)
        self._thread = threading.Thread(target=self._refresh, name="penstock-notebook", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the updates; the table stays. Idempotent."""
        if not self._over.is_set():
            self._over.set()
            self._thread.join()
            no_longer()

    def __enter__(self) -> Notebook:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return "<the table above; stopped>" if self._over.is_set() else "<the table above is refreshed until .stop()>"

    def _refresh(self) -> None:
        while not self._over.wait(self._seconds):
            self._show()
        self._show()

    def _show(self) -> None:
        if self._handle is not None:
            self._handle.update(_Html(self._page()))

    def _page(self) -> str:
        """Return the table in a frame, which separates its style from that of the notebook."""
        from html import escape

        whole = f"<!doctype html><meta charset=utf-8><style>{style()}body{{margin:.5rem}}</style>"
        # the command line of a notebook is IPython's
        whole += body(snapshot(self._plan) | {"program": "this notebook"})
        height = 18 * whole.count("<tr") + 260
        frame = "style='width:100%;border:0' sandbox='' title='penstock'"
        return f'<iframe {frame} height={height} srcdoc="{escape(whole)}"></iframe>'


class _Html:
    """An object that a notebook shows as HTML."""

    def __init__(self, text: str) -> None:
        self._text = text

    def _repr_html_(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "<a table that is shown as HTML>"


def _display() -> Any:
    """Return IPython's `display`, or raise an error if there is no notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None:
        message = "ds.monitor() shows a table in a notebook, but IPython does not run here."
        raise FailedPreconditionError(message, hint="Call ps.monitor(), and run `penstock top` in a terminal.")
    from IPython.display import display

    return display
