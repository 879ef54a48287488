"""drain: a whole pass over a stage, for what it keeps on the way."""

from __future__ import annotations

from penstock.block.block import Block
from penstock.physical.fatal import failed
from penstock.physical.filling_log import FillingLog
from penstock.physical.stage import Stage

_AT_ONCE = 1024  # elements that a cache is asked for at a time, while it fills


def drain(stage: Stage, label: str, count: int = -1, pieces: list[Block | Exception] | None = None) -> None:
    """A stage to its end; `pieces` gets what it gives, failures too. The log says so if that takes long.

    `count` is how many elements will come, negative where nobody knows.
    """
    log = FillingLog(label, count)
    done = 0
    while True:
        piece: Block | Exception | None
        try:
            piece = stage.next(_AT_ONCE)
        except Exception as error:
            piece = failed(error)
        if piece is None:
            log.full(done)
            return
        done += piece.size if isinstance(piece, Block) else 1
        log.at(done)
        if pieces is not None:
            pieces.append(piece)
