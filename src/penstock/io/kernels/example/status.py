"""What the parser says about the record at which it stopped."""

from __future__ import annotations

DONE, REJECTED, NO_ROOM = 0, 1, 2
