"""Contact: the consumer's view of a worker; Workforce: all workers of a consumer."""

from __future__ import annotations

import os
import select
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from penstock.block.shared_memory import Region
from penstock.delivery.part import Packet
from penstock.delivery.results import Lent, received
from penstock.delivery.worker import MOST_PARTS, version
from penstock.errors import FailedPreconditionError
from penstock.runtime.processes.link import EMPTY, Link, Message
from penstock.runtime.processes.start import search_path

_ANSWERS = ("made", "mistaken", "ended", "unready", "unmade")  # to "make"


class Contact:
    """A worker, for use by one thread at a time. A method raises EOFError or OSError if the worker is gone."""

    def __init__(self, name: str, link: Link) -> None:
        self.name = name
        self.link = link
        self._lent = Lent(partial(_lend, link), lambda number: link.send(("unmap", number)))
        self.ready = False
        self._parts: list[str] = []
        self._jobs: set[str] = set()

    def fileno(self) -> int:
        return self.link.fileno()

    def begin(self, job: str, packet: Packet, epoch: int, *, kept: bool = False) -> None:
        """Send the part and the job to the worker, if they are new to it."""
        if job in self._jobs:
            return
        if packet.digest not in self._parts:
            self.link.send(("part", packet.digest, folder(), search_path()), packet.packed)
            self._parts = [*self._parts, packet.digest][-MOST_PARTS:]
        self.link.send(("job", job, packet.digest, epoch, kept))
        self._jobs.add(job)

    def ask(self, job: str, start: int, stop: int, nbytes: int) -> None:
        """Ask the worker for a range. The result is expected to have about `nbytes` bytes."""
        self.link.send(("make", job, start, stop, self._lent.offer((job, start), nbytes)))

    def drop(self, job: str) -> None:
        if job in self._jobs:
            self._jobs.discard(job)
            self.link.send(("drop", job))

    def hear(self) -> Message | None:
        """Return the next message of the worker, or None if it was a greeting."""
        message = received(self.link)
        kind = message.head[0]
        if kind in _ANSWERS:
            self._lent.settle(message.head[1:3], message)
        if kind == "unmade":
            return None
        if kind != "ready":
            return message
        check_version(message.head[1], "The worker")
        self.ready = True
        return None

    def close(self) -> None:
        self._lent.end()
        self.link.close()


def _lend(link: Link, region: Region) -> None:
    link.send(("region", region.number, region.nbytes), EMPTY, -1, region.descriptor)
    region.sent()


def check_version(theirs: str, who: str) -> None:
    """Raise FailedPreconditionError if the other side runs another version."""
    if theirs != version():
        message = f"{who} runs {theirs}, and this process {version()}."
        raise FailedPreconditionError(message, hint="Functions travel as bytecode: use one version for both.")


def folder() -> str:
    """Return the folder that relative paths start from."""
    try:
        return str(Path.cwd())
    except OSError:  # the folder was removed
        return os.path.sep


AnyContact = TypeVar("AnyContact", bound=Contact)


class Workforce(ABC, Generic[AnyContact]):
    """The workers of one consumer, by name. One thread at a time uses it, and `close` ends it."""

    def __init__(self) -> None:
        self.there: dict[str, AnyContact] = {}

    def contacts(self) -> Mapping[str, AnyContact]:
        """Return the present contacts, by name."""
        return dict(self.there)

    @abstractmethod
    def lost(self, contact: Contact) -> bool:
        """Remove a worker that is gone. Return True if its work may have killed it."""

    @abstractmethod
    def tend(self) -> None:
        """Replace workers that are gone. Raises Fatal if no worker can be started."""

    def wait(self, seconds: float) -> None:
        """Wait until a worker sends a message, for at most `seconds`."""
        contacts = self.contacts()
        if contacts:
            speaking(contacts.values(), seconds)
        else:
            time.sleep(seconds)

    def spoken(self) -> list[Contact]:
        """Return the contacts with a message to read."""
        return speaking(self.contacts().values())

    def told(self, waiting: float) -> None:
        """Report the share of time that the consumer has waited for workers."""

    def close(self) -> None:
        """Release the workers."""
        there, self.there = self.there, {}
        for each in there.values():
            each.close()


def speaking(contacts: Iterable[Contact], seconds: float = 0.0) -> list[Contact]:
    """Return the contacts with a message to read."""
    poll = select.poll() if hasattr(select, "poll") else None
    listed = list(contacts)
    if not listed:
        return []
    if poll is None:
        return select.select(listed, [], [], seconds)[0]
    by_number = {each.fileno(): each for each in listed}
    for number in by_number:
        poll.register(number, select.POLLIN)
    return [by_number[number] for number, _ in poll.poll(seconds * 1000)]
