"""LeftOut: how many elements a step left out because they are too long, for the log."""

from __future__ import annotations

import logging

_LOG = logging.getLogger("penstock.physical")


class LeftOut:
    """A count over one pass, told when the pass ends."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._told = False
        self.count = 0

    def tell(self, of: int) -> None:
        if self.count and not self._told:
            self._told = True
            _LOG.warning("%s: left out %s of %s elements, which are too long", self._label, self.count, of)
