"""drain: a whole pass over a stage, for what it keeps on the way."""

from __future__ import annotations

from penstock.block.block import Block
from penstock.physical.fatal import failed
from penstock.physical.memory import FillingLog
from penstock.physical.stage import Stage

_AT_ONCE = 1024  # elements that a cache is asked for at a time, at most, while it fills


def drain(stage: Stage, label: str, count: int = -1, pieces: list[Block | Exception] | None = None) -> Exception | None:
    """A stage to its end; its first failure. `pieces` gets what it gives, failures too. The log says if it takes long.

    `count` is how many elements will come, negative where nobody knows.
    """
    log = FillingLog(label, count, at_once=_AT_ONCE)
    done = 0
    first: Exception | None = None
    while True:
        piece: Block | Exception | None
        try:
            piece = stage.next(log.ask())
        except Exception as error:
            piece = failed(error)
        if piece is None:
            log.full(done)
            return first
        if first is None and isinstance(piece, Exception):
            first = piece
        done += piece.size if isinstance(piece, Block) else 1
        log.at(done)
        if pieces is not None:
            pieces.append(piece)
