"""Reserved: bytes that something holds, with some on top, so that it may grow a little unnoticed."""

from __future__ import annotations


class Reserved:
    """`nbytes` are held, `reserved` are taken off the budget: never less, as soon as those told have looked again."""

    nbytes = 0
    reserved = 0
    _least = 0

    def move(self, nbytes: int) -> bool:
        """Note that `nbytes` are held; whether that has to be reserved anew. Any thread, without a lock.

        Nobody holds less than nothing: a count below 0, as of a damaged file, is one of nothing.
        """
        self.nbytes = nbytes = max(nbytes, 0)
        return not self._least <= nbytes <= self.reserved

    def reserve(self, grain: int) -> int:
        """Reserve anew; may grow by an eighth and `grain` bytes before `move` says so.

        It comes to an end, since what is reserved is never less than the count it was made of.
        """
        while True:
            nbytes = self.nbytes
            self.reserved = nbytes + (nbytes >> 3) + grain if nbytes else 0
            self._least = nbytes - (nbytes >> 2) - 2 * grain
            if self.nbytes <= self.reserved:  # else `move` came between, and compared with what was reserved before
                return self.reserved
