"""Contact: a worker as a consumer sees it; Workforce: those that a consumer has."""

from __future__ import annotations

import os
import select
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from penstock.block.shared_memory import Region
from penstock.delivery.part import Packet
from penstock.delivery.results import Lent, received
from penstock.delivery.worker import MOST_PARTS, version
from penstock.errors import FailedPreconditionError
from penstock.runtime.processes.link import EMPTY, Link, Message
from penstock.runtime.processes.start import search_path

_ANSWERS = ("made", "mistaken", "ended", "unready", "unmade")  # to "make"


class Contact:
    """Used by one thread at a time. EOFError or OSError from a method: the worker is gone."""

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
        """Have the worker know a pass."""
        if job in self._jobs:
            return
        if packet.digest not in self._parts:
            self.link.send(("part", packet.digest, folder(), search_path()), packet.packed)
            self._parts = [*self._parts, packet.digest][-MOST_PARTS:]
        self.link.send(("job", job, packet.digest, epoch, kept))
        self._jobs.add(job)

    def ask(self, job: str, start: int, stop: int, nbytes: int) -> None:
        """Have it make a range, of about so many bytes."""
        self.link.send(("make", job, start, stop, self._lent.offer((job, start), nbytes)))

    def drop(self, job: str) -> None:
        if job in self._jobs:
            self._jobs.discard(job)
            self.link.send(("drop", job))

    def hear(self) -> Message | None:
        """What it says, or None where that was a greeting."""
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
    """Raise FailedPreconditionError for a side that is of another version."""
    if theirs != version():
        message = f"{who} runs {theirs}, and this process {version()}."
        raise FailedPreconditionError(message, hint="Functions travel as bytecode: use one version for both.")


def folder() -> str:
    """Where relative paths begin."""
    try:
        return str(Path.cwd())
    except OSError:  # it was removed
        return os.path.sep


class Workforce(ABC):
    """The workers that one consumer has, by name. It is used by one thread at a time, and `close`d."""

    @abstractmethod
    def contacts(self) -> dict[str, Contact]:
        """The contacts that are there now, by name."""

    @abstractmethod
    def lost(self, contact: Contact) -> bool:
        """One of them is gone. Whether what it was at may have been the reason."""

    @abstractmethod
    def tend(self) -> None:
        """Have others in the place of those that are gone. Raises Fatal where none can be had."""

    def wait(self, seconds: float) -> None:
        """Until one of them says something, but no longer than so many seconds."""
        contacts = self.contacts()
        if contacts:
            speaking(contacts.values(), seconds)
        else:
            time.sleep(seconds)

    def spoken(self) -> list[Contact]:
        """The contacts that have said something."""
        return speaking(self.contacts().values())

    def told(self, waiting: float) -> None:  # noqa: B027 - most have a fixed number of them
        """The consumer has waited for them this share of its time."""

    @abstractmethod
    def close(self) -> None:
        """They are not needed any more."""


def speaking(contacts: Iterable[Contact], seconds: float = 0.0) -> list[Contact]:
    """The contacts that have said something."""
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
