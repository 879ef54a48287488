"""`tf.autograph`: nothing is translated, Python runs as it is written."""

from __future__ import annotations

from typing import Any


class experimental:
    """`tf.autograph.experimental`."""

    @staticmethod
    def do_not_convert(func: Any = None) -> Any:
        """The function itself."""
        return func if func is not None else lambda decorated: decorated


def set_verbosity(level: Any, alsologtostdout: Any = False) -> None:
    """Nothing to do."""
