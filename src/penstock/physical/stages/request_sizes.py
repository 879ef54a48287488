"""RequestSizes: the number of elements that an interleave requests from each input before its turn."""

from __future__ import annotations

import time
from collections.abc import Sequence

from penstock.physical.inner_inputs import AT_ONCE, HeldBytes

MOST_HELD = 1 << 22  # bytes of available elements above which no more is requested than needed
_MOST_EARLY = 128  # most elements requested from an input before its turn, if they come fast
_PATIENCE = 64  # small requests in a row, with which all inputs run out at the same element
_OF_A_CALL = 5e-5  # seconds that a request to an input may take before its size is no longer increased
_LONG_AHEAD = 0.02  # most seconds of reading small inputs at a time


class RequestSizes:
    """Sizes that grow while requests are fast and the available elements need little memory."""

    def __init__(self, held: HeldBytes) -> None:
        self.want = 1  # elements in the last request to the interleave
        self.ahead = AT_ONCE  # seconds of reading small inputs at a time
        self._held = held
        self._early = 1  # elements to request from an input before its turn
        self._patience = _PATIENCE

    def begin(self, want: int) -> float:
        """Begin a request to the interleave. Return the time after which no further input is joined to the result."""
        self.want = want
        return time.perf_counter() + AT_ONCE

    def share(self, slots: int) -> int:
        """Return the number of elements to request from one of `slots` inputs.

        With the full number, inputs would run out one by one.
        """
        return max(self.want // slots, self._early)

    def even(self, share: int, held: Sequence[int], inputs: int) -> int:
        """Return the number to request from inputs without elements. The others have `held` elements available."""
        if 0 < len(held) < inputs and self._patience:  # all inputs run out together, so that there are many rounds
            self._patience -= 1
            return min(share, *held)
        if not held:
            self._patience = _PATIENCE
        return share

    def learn(self, asked: int, seconds: float) -> None:
        """Request more at a time if that takes little longer.

        Otherwise, each element would need a request to thousands of inputs.
        """
        most = max(4 * AT_ONCE, asked * _OF_A_CALL)
        if seconds < most and self._held.nbytes < MOST_HELD:
            self._early = min(2 * self._early, _MOST_EARLY)
        elif seconds > 2 * most or self._held.nbytes > 2 * MOST_HELD:
            self._early = max(self._early // 2, 1)

    def learn_ahead(self, seconds: float) -> None:
        """Read small inputs for longer at a time if none takes long."""
        if seconds < 2 * self.ahead:
            self.ahead = min(2 * self.ahead, _LONG_AHEAD)
        else:
            self.ahead = max(self.ahead / 2, AT_ONCE)
