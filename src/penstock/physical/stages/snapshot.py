"""Snapshot: passes elements on and writes them to files, or serves what an earlier pass has written."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np

from penstock.block.block import Block
from penstock.cache.writer import SavedWriter
from penstock.errors import Context, FailedPreconditionError, InvalidTypeError, annotate
from penstock.physical.key_function import KeyFunction
from penstock.physical.memory import UNCOUNTED, Memory
from penstock.physical.stage import Stage, State, StretchStage
from penstock.physical.stretch import Stretch, failure
from penstock.sources.saved import SavedSource

_LOG = logging.getLogger("penstock")


class Snapshot(StretchStage):
    """A pass fills the snapshot if it began at the first element, came to the end, and had no failure.

    A place says which of the two it is of: ["through", count, state of the input], or ["stored", count, state of what
    reads the files, run that wrote them]. Where both give the same order (`faithful`), one may go on for the other.
    """

    def __init__(
        self,
        upstream: Callable[[], Stage],
        saved: SavedSource | None,
        serve: Callable[[SavedSource], Stage],
        writer: Callable[[], SavedWriter],
        shard_func: KeyFunction | None,
        label: str,
        where: str | None,
        *,
        faithful: bool,
        memory: Memory = UNCOUNTED,
    ) -> None:
        super().__init__(label, (), where)
        self._account = memory.account("at hand", label, where)
        self._open_upstream = upstream
        self._serve = serve
        self._shard_func = shard_func
        self._faithful = faithful
        self._open_writer = writer
        self._writer: SavedWriter | None = None
        self._count = 0  # positions made, or passed over
        self._skip = 0  # positions that are still to be passed over
        self._ended = False
        self._start(saved)

    def _start(self, saved: SavedSource | None) -> None:
        """Begin to serve what is saved, or to write."""
        self._saved = saved
        self._stage = self._open_upstream() if saved is None else self._serve(saved)
        self._recording = saved is None
        self.inputs = (self._stage,)

    def make(self, want: int) -> Stretch | None:
        if self._ended:
            return None
        try:
            block = self._stage.next(want + self._skip)
        except Exception as error:
            self._stop_recording()  # a pass with a failure is not whole; the next one tries again
            made = failure(error)
        else:
            if block is None:
                self._ended = True
                self._commit()
                return None
            made = Stretch(block) if self._saved is not None else self._written(block)
        self._count += made.size
        dropped = min(self._skip, made.size)
        self._skip -= dropped
        return made.slice(dropped, made.size) if dropped else made

    def _written(self, block: Block) -> Stretch:
        block.freeze()  # a later pass gives arrays that cannot be written to, and so does this one
        shards, errors = (None, {}) if self._shard_func is None else self._shard_func(block, self._count)
        if errors:
            self._stop_recording()
            left = np.delete(np.arange(block.size), list(errors))
            return Stretch(block.take(left) if len(left) else None, tuple(sorted(errors.items(), key=lambda e: e[0])))
        if self._recording:
            try:
                writer = self._made_writer()
                writer.add(block, shards)
                self._account.hold(writer.nbytes)
            except InvalidTypeError as error:  # elements that no file holds: the first says so
                self._stop_recording()
                annotate(error, Context(self.label, self.where, self._count))
                return Stretch(block.slice(1, block.size) if block.size > 1 else None, ((0, error),))
            except OSError as error:
                self._give_up(error)
        return Stretch(block)

    def _made_writer(self) -> SavedWriter:
        if self._writer is None:
            self._writer = self._open_writer()
        return self._writer

    def _commit(self) -> None:
        if self._recording:
            self._recording = False
            self._account.close()
            try:
                self._made_writer().commit(replace=False)
            except OSError as error:
                self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        """Without room for a snapshot the data set is as good as before."""
        _LOG.warning("%s: no snapshot is written in this pass: %s", self.label, error)
        self._stop_recording()

    def _stop_recording(self) -> None:
        self._recording = False
        self._account.close()
        if self._writer is not None:
            self._writer.discard()

    def place(self) -> State:
        count = self._count + self._skip
        below = None if self._skip else self._stage.state()
        return ["through", count, below] if self._saved is None else ["stored", count, below, self._saved.manifest.run]

    def go_to(self, place: State) -> None:
        kind, count, below, *run = place
        if kind == "through":
            if self._saved is not None and not self._faithful:  # the order of this pass is not that of the files
                self._start(None)
                self._recording = False
        elif self._saved is None or self._saved.manifest.run != run[0]:
            if not self._faithful:
                message = "The state is of a pass over a snapshot that is not there."
                hint = f"{self.label} wrote {run[0]!r} then; copy its folder here, or begin the pass anew."
                raise FailedPreconditionError(message, hint=hint, context=Context(self.label, self.where))
            kind = "replaced"
        if (kind == "stored") == (self._saved is not None) and kind != "replaced" and below is not None:
            self._stage.restore(below)
            self._count = count
            self._recording = self._recording and not count
        else:
            self._skip = count  # from the files, or from the start, writing them on the way

    def close(self) -> None:
        self._stop_recording()
        self._stage.close()
