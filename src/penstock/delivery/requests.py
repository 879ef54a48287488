"""Requests: the ranges of one iteration that workers are asked for. Workers may die, return or be replaced."""

from __future__ import annotations

import itertools
import os
import secrets
import socket
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from penstock.block.block import Block
from penstock.block.transport import unpack
from penstock.delivery.contact import Contact, Workforce
from penstock.delivery.part import Packet
from penstock.delivery.results import unpacked
from penstock.delivery.window import KILLS, Cut, Range, RangeSizer, RangeWindow
from penstock.errors import Context, FailedPreconditionError
from penstock.physical.lower import Lowering
from penstock.physical.stretch import Fatal, fatal
from penstock.plan.distribution import Remote
from penstock.runtime.processes.link import Message

_LOOK = 0.1  # seconds between checks for a closed run
_SPAN = 0.5  # seconds over which the share of waiting is measured and reported
_NUMBERS = itertools.count()
_TOKEN = secrets.token_hex(4)  # distinguishes containers with equal names and process ids
_ROOM = 1.05  # factor on the bytes of the previous range, because elements differ a little in size
_WRITING_SECONDS, _WRITING_BYTES = 1.0, 1 << 25  # limits of a range whose result workers write to a file


class Requests:
    """Asks the workers that `hire` returns for up to `max_outstanding` ranges, and handles their answers.

    By default, one slow range leaves work for all other workers. `shared` names an iteration that other consumers run
    too. Workers then store their results, and `cut` returns the end and the worker of a range.
    """

    def __init__(
        self,
        node: Remote,
        packet: Packet,
        hire: Callable[[], Workforce[Any]],
        lowering: Lowering,
        max_outstanding: int | None,
        *,
        shared: str | None = None,
        cut: Cut | None = None,
    ) -> None:
        self.node = node
        self.apart = node.unit * node.consumers if node.consumers > 1 else 0  # from one range to the next
        self._packet = packet
        self._hire = hire
        self._epoch = lowering.epoch
        self._pause = lowering.pause
        self._max_outstanding = max_outstanding
        self._kept = shared is not None
        self._job = shared or f"{socket.gethostname()}-{os.getpid()}-{_TOKEN}-{next(_NUMBERS)}"
        self._force: Workforce[Any] | None = None
        self._sizer = RangeSizer(node.unit, steady=node.consumers > 1)
        if node.finish is not None:
            self._sizer = RangeSizer(node.unit, seconds=_WRITING_SECONDS, nbytes=_WRITING_BYTES)
        expected = node.base.cardinality
        self._window: RangeWindow | None = None
        self._window_from = partial(
            RangeWindow,
            sizer=self._sizer,
            most=1,
            cut=cut,
            apart=self.apart,
            expected=expected if expected >= 0 and node.consumers == 1 and node.finish is None else None,
        )
        self._since, self._waited = time.monotonic(), 0.0  # start of the measurement, and seconds of waiting since then
        self._weight = 0.0  # estimated bytes of the results of one base element

    def held(self) -> list[Block]:
        """Return the results that have arrived and were not taken."""
        parts = [part for each in self._window or () for part in each.made or ()]
        return [part.block for part in parts if part.block is not None]

    def close(self) -> None:
        force, self._force = self._force, None
        self._window = None
        if force is None:
            return
        for contact in force.contacts().values():
            try:
                contact.drop(self._job)
            except (EOFError, OSError):
                force.lost(contact)
        force.close()

    def tended(self) -> Workforce[Any]:
        """Return the workers, hired if necessary."""
        if self._force is None:
            self._force = self._hire()
        self._force.tend()
        return self._force

    def asked(self, start: int) -> RangeWindow:
        """Return the window, which begins at `start`, after workers were asked for all ranges that it has room for."""
        force = self.tended()
        contacts = force.contacts()
        if self._window is None:
            self._window = self._window_from(start)
        most = self._max_outstanding
        self._window.most = 3 * max(len(contacts), 1) + 1 if most is None else most
        ready = {name: contact for name, contact in contacts.items() if contact.ready}
        if self._kept:  # introduce the job to all workers before one of them has finished it
            for contact in ready.values():
                self._send(contact)
        for each in self._window.to_ask(ready, contacts.keys() - ready.keys()):
            if each.worker is None:  # the worker was lost a moment ago, when it was asked for an earlier range
                continue
            self._send(ready[each.worker], each)
        return self._window

    def _send(self, contact: Contact, each: Range | None = None) -> None:
        """Introduce the job to a worker, and ask it for a range."""
        try:
            contact.begin(self._job, self._packet, self._epoch, kept=self._kept)
            if each is not None:
                contact.ask(self._job, each.start, each.stop, int(self._weight * (each.stop - each.start)))
        except (EOFError, OSError):
            self._lose(contact)

    def hear(self) -> None:
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
        elif kind == "ended":
            raise unpack(message.content, message.buffers())
        elif kind == "mistaken":
            found = fatal(RuntimeError(rest[1]), self.node.label, self.node.where)
            found.error.__cause__ = None
            found.error.add_note(f"in a worker:\n{rest[2]}")
            raise found
        else:
            text = f"This part of the plan could not be set up in a worker:\n{rest[1]}"
            hint = "Worker processes must be able to import the same modules: put the modules on sys.path."
            raise Fatal(FailedPreconditionError(text, hint=hint, context=Context(self.node.label, self.node.where)))

    def _lose(self, contact: Contact) -> None:
        assert self._force is not None
        alone = self._force.lost(contact)
        if self._window is None:
            return
        killer = self._window.lost(contact.name, blamed=alone)
        if killer is not None:
            span = f"elements {killer.start} to {killer.stop - 1}"
            text = f"{KILLS} workers ended while they made {span} of {self.node.label}."
            hint = "Its functions crash, or need more memory than there is: run these elements without a service."
            raise Fatal(FailedPreconditionError(text, hint=hint, context=Context(self.node.label, self.node.where)))


class Head(NamedTuple):
    """A worker's report on a finished range: `elements` elements of the base were in it."""

    start: int
    stop: int
    elements: int
    ended: bool
    seconds: float
    nbytes: int
