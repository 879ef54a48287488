"""Delivered: the elements of a part of a plan, computed by workers, in the order of the plan.

The state of the stage alone stores the consumer's position: an element of the base, and the number of results after it.
So workers may die, return or be replaced.
"""

from __future__ import annotations

import itertools
import os
import secrets
import socket
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from penstock.block.block import Block
from penstock.block.transport import unpack
from penstock.delivery.contact import Contact, Workforce
from penstock.delivery.part import Packet
from penstock.delivery.results import unpacked
from penstock.delivery.window import KILLS, Cut, Range, RangeSizer, RangeWindow
from penstock.errors import Context, FailedPreconditionError, marked
from penstock.physical.lower import Lowering
from penstock.physical.stage import Stage, State
from penstock.physical.stretch import Fatal, fatal
from penstock.plan.distribution import Remote
from penstock.plan.node import UNKNOWN_CARDINALITY
from penstock.runtime.processes.link import Message

_LOOK = 0.1  # seconds between checks for a closed run
_SPAN = 0.5  # seconds over which the share of waiting is measured and reported
_NUMBERS = itertools.count()
_TOKEN = secrets.token_hex(4)  # distinguishes containers with equal names and process ids
_ROOM = 1.05  # factor on the bytes of the previous range, because elements differ a little in size
_WRITING_SECONDS, _WRITING_BYTES = 1.0, 1 << 25  # limits of a range whose result workers write to a file


class Delivered(Stage):
    """Asks the workers that `hire` returns for ranges, and yields their results in order.

    At most `max_outstanding` ranges are asked for. By default, one slow range leaves work for all other workers.
    `shared` names an iteration that other consumers run too. Workers then store their results.
    """

    def __init__(
        self,
        node: Remote,
        packet: Packet,
        hire: Callable[[], Workforce],
        lowering: Lowering,
        max_outstanding: int | None,
        *,
        shared: str | None = None,
        cut: Cut | None = None,
    ) -> None:
        super().__init__(node.label, (), node.where)
        self._packet = packet
        self._hire = hire
        self._epoch = lowering.epoch
        self._pause = lowering.pause
        self._account = lowering.memory.account("at hand", node.label, node.where)
        self._counted = node.counted
        self._cardinality = node.cardinality
        self._max_outstanding = max_outstanding
        self._kept = shared is not None
        self._cut = cut
        self._job = shared or f"{socket.gethostname()}-{os.getpid()}-{_TOKEN}-{next(_NUMBERS)}"
        self._force: Workforce | None = None
        self._window: RangeWindow | None = None
        self._turn = node.unit * node.consumers  # elements of the base from one result to the next, if known
        self._apart = self._turn if node.consumers > 1 else 0
        self._sizer = RangeSizer(node.unit, steady=node.consumers > 1)
        expected = node.base.cardinality
        self._expected = expected if expected >= 0 and node.consumers == 1 and node.finish is None else None
        if node.finish is not None:
            self._sizer = RangeSizer(node.unit, seconds=_WRITING_SECONDS, nbytes=_WRITING_BYTES)
        self._first = node.unit * node.consumer
        self._start = self._first  # first element of the current range
        self._given = 0  # number of results yielded after `_start`
        self._skip = 0  # number of these results that an earlier run has yielded
        self._stop = self._first  # start of the next range
        self._pieces: deque[Block | Exception] = deque()  # pieces of the current range
        self._over = False
        self._since, self._waited = time.monotonic(), 0.0  # start of the measurement, and seconds of waiting since then
        self._weight = 0.0  # estimated bytes of the results of one base element

    # -- as a stage

    def next(self, want: int) -> Block | None:
        while True:
            while self._pieces:
                piece = self._pieces.popleft()
                size = piece.size if isinstance(piece, Block) else 1
                if self._skip >= size:
                    self._skip -= size
                    continue
                if isinstance(piece, Exception):
                    self._given += 1
                    raise marked(piece)  # other errors do not leave a worker's stages
                if self._skip:
                    piece, self._skip = piece.slice(self._skip, size), 0
                if piece.size > want:
                    self._pieces.appendleft(piece.slice(want, piece.size))
                    piece = piece.slice(0, want)
                self._given += piece.size
                return piece
            if self._over or not self._more():
                return None

    def state(self) -> State:
        start, given = (self._start, self._given) if self._pieces else (self._stop, self._skip)
        if self._counted:
            start, given = start + given * self._turn, 0
        return [start, given]

    def restore(self, state: State) -> None:
        self._start, self._given = state
        self._stop, self._skip = self._start, self._given

    def can_skip(self) -> bool:
        return self._counted and self._cardinality != UNKNOWN_CARDINALITY

    def skip(self, count: int) -> int:
        passed = (self._start - self._first) // self._turn
        if self._cardinality >= 0:
            count = max(min(count, self._cardinality - passed), 0)
        self._start += count * self._turn
        self._stop = self._start
        return count

    def start(self) -> None:
        self._tended()

    def close(self) -> None:
        force, self._force = self._force, None
        self._over = True
        self._pieces.clear()
        self._window = None
        self._account.close()
        if force is None:
            return
        for contact in force.contacts().values():
            try:
                contact.drop(self._job)
            except (EOFError, OSError):
                force.lost(contact)
        force.close()

    # -- ranges

    def _more(self) -> bool:
        """Fetch the next range. Return False at the end."""
        self._pieces.clear()
        while True:
            window = self._asked()
            found = window.take()
            if found is not None:
                self._begin(found)
                self._asked()
                return True
            if window.over:
                self._over = True
                return False
            self._heard()

    def _begin(self, found: Range) -> None:
        self._start, self._stop = found.start, found.start + self._apart if self._apart else found.stop
        self._given = self._skip  # count the dropped results from the start of the range
        for part in found.made:
            self._pieces += part.pieces()
        self._hold()

    def _tended(self) -> Workforce:
        if self._force is None:
            self._force = self._hire()
        self._force.tend()
        return self._force

    def _asked(self) -> RangeWindow:
        """Return the window, after workers were hired and asked for all ranges that it has room for."""
        force = self._tended()
        contacts = force.contacts()
        if self._window is None:
            self._window = RangeWindow(self._stop, self._sizer, 1, self._cut, self._apart, self._expected)
        most = self._max_outstanding
        self._window.most = 3 * max(len(contacts), 1) + 1 if most is None else most
        ready = {name: contact for name, contact in contacts.items() if contact.ready}
        if self._kept:  # introduce the job to all workers before one of them has finished it
            for contact in ready.values():
                self._introduce(contact)
        for each in self._window.to_ask(ready, contacts.keys() - ready.keys()):
            if each.worker is None:  # the worker was lost a moment ago, when it was asked for an earlier range
                continue
            contact = ready[each.worker]
            try:
                contact.begin(self._job, self._packet, self._epoch, kept=self._kept)
                contact.ask(self._job, each.start, each.stop, int(self._weight * (each.stop - each.start)))
            except (EOFError, OSError):
                self._lose(contact)
        return self._window

    def _introduce(self, contact: Contact) -> None:
        try:
            contact.begin(self._job, self._packet, self._epoch, kept=True)
        except (EOFError, OSError):
            self._lose(contact)

    def _heard(self) -> None:
        """Wait for workers, and handle their messages."""
        force = self._force
        assert force is not None
        began = time.monotonic()
        self._pause(_LOOK, force.wait)
        now = time.monotonic()
        self._waited += now - began
        if now > self._since + _SPAN:
            force.told(self._waited / (now - self._since))
            self._since, self._waited = now, 0.0
        for contact in force.spoken():
            try:
                message = contact.hear()
            except (EOFError, OSError):
                self._lose(contact)
                continue
            if message is not None:
                self._take(contact, message)

    def _take(self, contact: Contact, message: Message) -> None:
        kind, job, *rest = message.head
        if job != self._job or self._window is None:
            return  # an answer to an earlier iteration
        if kind == "made":
            head = Head(*rest)
            if not self._window.arrived(contact.name, head.start, unpacked(message.content, message.buffers())):
                return
            if head.elements:
                self._weight = _ROOM * message.nbytes / head.elements
            self._sizer.observe(head.elements, head.seconds, head.nbytes)
            if head.ended:
                self._window.ended(head.start + head.elements)
            self._hold()
        elif kind == "ended":
            raise unpack(message.content, message.buffers())
        elif kind == "mistaken":
            found = fatal(RuntimeError(rest[1]), self.label, self.where)
            found.error.__cause__ = None
            found.error.add_note(f"in a worker:\n{rest[2]}")
            raise found
        else:
            text = f"This part of the plan could not be set up in a worker:\n{rest[1]}"
            hint = "What its functions import must be there for other processes, too: a module on sys.path."
            raise Fatal(FailedPreconditionError(text, hint=hint, context=Context(self.label, self.where)))

    def _lose(self, contact: Contact) -> None:
        assert self._force is not None
        alone = self._force.lost(contact)
        if self._window is None:
            return
        killer = self._window.lost(contact.name, blamed=alone)
        if killer is not None:
            span = f"elements {killer.start} to {killer.stop - 1}"
            text = f"{KILLS} workers ended while they made {span} of {self.label}."
            hint = "Its functions crash, or need more memory than there is: run these elements without a service."
            raise Fatal(FailedPreconditionError(text, hint=hint, context=Context(self.label, self.where)))

    def _hold(self) -> None:
        window = self._window
        held = [piece for piece in self._pieces if isinstance(piece, Block)]
        for each in window or ():
            if each.made is not None:
                held += [part.block for part in each.made if part.block is not None]
        self._account.hold(sum(block.nbytes for block in held))


class Head(NamedTuple):
    """A worker's report on a finished range: `elements` elements of the base were in it."""

    start: int
    stop: int
    elements: int
    ended: bool
    seconds: float
    nbytes: int
