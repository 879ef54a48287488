"""Lease: who writes to an entry behind a URL, where nothing can be locked: an object that says so, and how long ago.

Two processes may both take one, if they ask in the same moment or their clocks differ by a minute. Then both write,
each its own chunks, and one of their journals stands in the end: an entry is right in any case, and half of the work
was in vain.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any

from penstock.cache.entry.lock import holder
from penstock.errors import PenstockError
from penstock.forked import in_child, new_lock
from penstock.hints import redacted
from penstock.io import storage
from penstock.io.saved.durable import write_whole
from penstock.io.saved.manifest import file_in

_LOG = logging.getLogger("penstock.cache")
NAME = "writer.lock"
_HOLDS = 60.0  # seconds behind which who does not renew it is taken for dead
_RENEWED = 15.0  # seconds from one time to the next


class Lease:
    """Held until `release`; a thread renews it."""

    def __init__(self, folder: str) -> None:
        self._name = file_in(folder, NAME)
        self._token = token_hex(8)
        self._over = threading.Event()
        self._saying = new_lock()
        self._say()
        threading.Thread(target=self._renew, name="penstock-lease", daemon=True).start()
        in_child(self.forget)

    @property
    def ours(self) -> bool:
        """Whether nobody else has taken it."""
        found = _said(self._name)
        return found is not None and found.get("token") == self._token

    @property
    def lasts(self) -> bool:
        """Whether nobody can have taken it for dead, or else nobody has: a renewal may have come too late."""
        return time.monotonic() - self._said_at < _HOLDS - _RENEWED or self.ours

    def release(self) -> None:
        """Let others write. Idempotent."""
        if self._over.is_set():
            return
        self._over.set()
        try:
            with self._saying:  # else it would be there again behind that
                if self.ours:
                    storage.remove(self._name)
        except (PenstockError, OSError) as error:
            _LOG.info("%s could not be removed, and holds others up for a minute: %s", redacted(self._name), error)

    def forget(self) -> None:
        """In a forked child: it is the parent's."""
        self._over = threading.Event()
        self._over.set()

    def _say(self) -> None:
        since = datetime.now(UTC).isoformat(timespec="seconds")
        self._said_at = time.monotonic()  # before it is sent: others count from then
        told = {"host": socket.gethostname(), "pid": os.getpid(), "since": since, "at": time.time()}
        write_whole(self._name, json.dumps({**told, "token": self._token}).encode())

    def _renew(self) -> None:
        while not self._over.wait(_RENEWED):
            try:
                with self._saying:
                    if not self._over.is_set():
                        self._say()
            except (PenstockError, OSError) as error:  # what is written says more
                _LOG.info("%s could not be renewed: %s", redacted(self._name), error)


def take_lease(folder: str) -> Lease | None:
    """The lease of the entry at a URL; None while somebody else has it. Raises PenstockError and OSError."""
    found = _said(file_in(folder, NAME))
    if found is not None and _alive(found):
        return None
    lease = Lease(folder)
    if lease.ours:
        return lease
    lease.forget()
    return None


def writer_of(folder: str) -> dict[str, Any] | None:
    """Tell who writes to an entry, at a URL too: host, pid and since when, as far as known; None if nobody does."""
    if not storage.is_url(folder):
        return holder(folder)
    found = _said(file_in(folder, NAME))
    return found if found is not None and _alive(found) else None


def _said(name: str) -> dict[str, Any] | None:
    try:
        found = json.loads(storage.read_now(name))
    except FileNotFoundError:
        return None
    except ValueError:  # it is not ours, or damaged
        return {}
    return found if isinstance(found, dict) else {}


def _alive(found: dict[str, Any]) -> bool:
    at, host, pid = found.get("at"), found.get("host"), found.get("pid")
    if not isinstance(at, (int, float)) or abs(time.time() - at) > _HOLDS:
        return False
    if host != socket.gethostname() or not isinstance(pid, int):
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
