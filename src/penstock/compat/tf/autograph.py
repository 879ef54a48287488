"""`tf.autograph`: Python code runs unchanged."""

from __future__ import annotations

from typing import Any

from penstock.compat.teaching import Namespace, missing_in


def do_not_convert(func: Any = None) -> Any:
    """Return the function unchanged."""
    return func if func is not None else lambda decorated: decorated


def set_verbosity(level: Any, alsologtostdout: Any = False) -> None:
    """Do nothing."""


experimental = Namespace("tf.autograph.experimental", do_not_convert=do_not_convert)

__getattr__ = missing_in("tf.autograph", globals())
