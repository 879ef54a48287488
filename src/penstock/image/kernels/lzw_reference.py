"""What GIF's LZW codes mean, in plain Python."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def unpack(packed: npt.NDArray[np.uint8], bits: int, out: npt.NDArray[np.uint8]) -> bool:
    """Fill `out` with the numbers of `bits` bits that `packed` stands for; False if it does not hold so many.

    >>> out = np.empty(1, np.uint8)
    >>> unpack(np.array([0x44, 0x01], np.uint8), 2, out), out.tolist()
    (True, [0])
    """
    clear = 1 << bits
    start = [bytes([number & 255]) for number in range(clear)] + [b"", b""]
    table, width, before = list(start), bits + 1, b""
    done = bytearray()
    waiting, count = 0, 0
    following = iter(packed.tobytes())
    while len(done) < out.size:
        while count < width:
            byte = next(following, None)
            if byte is None:
                return False
            waiting |= byte << count
            count += 8
        code = waiting & ((1 << width) - 1)
        waiting >>= width
        count -= width
        if code == clear:
            table, width, before = list(start), bits + 1, b""
            continue
        if code == clear + 1 or code > len(table) or (code == len(table) and not (before and len(table) < 4096)):
            return False
        entry = table[code] if code < len(table) else before + before[:1]
        if before and len(table) < 4096:
            table.append(before + entry[:1])
        if len(table) == 1 << width and width < 12:
            width += 1
        done += entry
        before = entry
    out[:] = np.frombuffer(done, np.uint8, out.size)
    return True
