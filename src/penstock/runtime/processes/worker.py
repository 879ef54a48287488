"""The loop of a worker process: it receives transforms once, then Blocks, and sends back the results.

Messages from the parent are tuples:

- ("transforms", number, folder, path), with the packed transforms.
- ("forget", number).
- ("region", number, bytes), with an open file.
- ("drop", number).
- ("run", number, numbers, region), with the packed Block and the decided kinds of results. The region is for the
  results.
  -1: no region.
- ("into", region), as the reply to "larger": the new region for the results.

Answers are tuples too:

- ("ready",) once, after the start.
- ("prepared", error), for "transforms".
- ("larger", bytes), optional, for "run": the results need a larger region.
- ("done", seconds of the function, CPU seconds, unused regions), for "run", with the packed parts of a Stretch.
- ("unreadable", error, regions), if the Block cannot be unpickled.
- ("mistaken", error, traceback, regions), if a transform itself failed.
- ("ended", regions), with a packed exception that ends the run.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.block.footprint import leased
from penstock.block.same_kind import Decided
from penstock.block.shared_memory import mapped
from penstock.block.transport import pack, portable, unpack
from penstock.errors import Context, FailedPreconditionError, PenstockError, context_of, said
from penstock.opencv import limit_threads
from penstock.physical.stretch import Stretch, failure, join
from penstock.physical.transform import run_all
from penstock.runtime.machine.malloc import keep_freed_memory
from penstock.runtime.processes.link import SMALL, Link, Message, Pickled, aligned, follow
from penstock.runtime.tracebacks import add_lines, folded

# The parent handles Ctrl-C, so the signal is blocked from the start. The import of the package `penstock` costs more
# than everything else that a worker needs. It is delayed until the first access to one of its names.
START = """
import importlib.util, signal, sys, threading

signal.signal(signal.SIGINT, signal.SIG_IGN)
if hasattr(signal, "pthread_sigmask"):
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
sys.path[:] = sys.argv[3:]

def name_of_facade(name, begun=[], lock=threading.RLock()):
    with lock:
        if not begun:
            begun.append(True)
            try:
                facade.__spec__.loader.exec_module(facade)
            except BaseException:  # the next access tries again and raises the same error
                begun.clear()
                raise
    if name in vars(facade):
        return vars(facade)[name]
    if facade.__getattr__ is not name_of_facade:  # the facade has defined its own: it loads names and packages lazily
        return facade.__getattr__(name)
    raise AttributeError(f"module 'penstock' has no attribute {name!r}")

facade = importlib.util.module_from_spec(importlib.util.find_spec("penstock"))
facade.__getattr__ = name_of_facade
sys.modules["penstock"] = facade
from penstock.runtime.processes.worker import serve
serve(int(sys.argv[1]), int(sys.argv[2]))
"""
SERVE = "from penstock.runtime.processes.worker import serve"  # the line that other kinds of workers replace
_MANY = 8  # inputs that functions may keep before a garbage collection


def serve(descriptor: int, lifeline: int) -> None:
    """Answer until the parent ends. Descriptor -1: the socket comes through standard input, and there is no pipe."""
    if descriptor < 0:
        end = socket.fromshare(sys.stdin.buffer.read())  # type: ignore[attr-defined]
    else:
        follow(lifeline)
        end = socket.socket(fileno=descriptor)
        _keep(end, lifeline)
    keep_freed_memory()
    link = Link(end)
    try:
        link.send(("ready",))
        _TransformServer(link).serve()
    except (EOFError, OSError):
        return


def _keep(end: socket.socket, lifeline: int) -> None:
    """Keep child processes from inheriting the socket: the parent would not notice the end of this process."""
    for descriptor in (end.fileno(), lifeline):
        os.set_inheritable(descriptor, False)
    os.register_at_fork(after_in_child=end.close)


class ResultRoom:
    """The memory for the results of a Block. Arrays that a function makes there are not copied.

    The function must not read or write the memory after it has returned.
    """

    def __init__(self) -> None:
        self.memory: np.ndarray | None = None
        self.used = 0
        self._larger: Callable[[int], np.ndarray | None] | None = None

    def begin(self, memory: np.ndarray | None, larger: Callable[[int], np.ndarray | None]) -> None:
        """Set the memory for the next Block, and the function that returns larger memory."""
        self.memory, self.used, self._larger = memory, 0, larger

    def end(self) -> None:
        self.memory, self.used, self._larger = None, 0, None

    def empty(self, nbytes: int) -> np.ndarray | None:
        """Return `nbytes` of the memory, or None if fewer are left."""
        if self._larger is None:
            return None
        if not self.used and nbytes > (0 if self.memory is None else self.memory.nbytes) and nbytes > SMALL:
            self.memory = self._larger(nbytes + nbytes // 16 + SMALL)  # smaller arrays will follow
        start = aligned(self.used)
        if self.memory is None or start + nbytes > self.memory.nbytes:
            return None
        self.used = start + nbytes
        return self.memory[start : self.used]


ROOM = ResultRoom()


class _TransformServer:
    """The transforms and regions of this process."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._transforms: dict[int, Any] = {}
        self._regions: dict[int, np.ndarray] = {}
        self._offered = -1  # region for the results of the present Block
        self._lent = 0  # regions that code in this process may still read
        self._freed: deque[int] = deque()
        self._many = _MANY
        self._put_off: deque[Message] = deque()  # messages that came during a Block

    def serve(self) -> None:
        while True:
            message = self._put_off.popleft() if self._put_off else self._link.receive()
            kind, *rest = message.head
            if kind == "run":
                self._run(message)
            elif kind == "transforms":
                self._prepare(message)
            elif kind == "forget":
                self._transforms.pop(rest[0], None)
            elif kind == "region":
                self._map(message)
            elif kind == "drop":
                self._regions.pop(rest[0], None)

    def _prepare(self, message: Message) -> None:
        _, number, folder, path = message.head
        if sys.path != path:
            sys.path[:] = path
        error = None
        try:
            os.chdir(folder)
            self._transforms[number] = unpack(message.content, message.buffers())
        except Exception as raised:
            error = "".join(traceback.format_exception(raised)).rstrip()
        self._link.send(("prepared", error))

    def _map(self, message: Message) -> None:
        _, number, nbytes = message.head
        assert message.descriptor is not None
        self._regions[number] = mapped(message.descriptor, nbytes)[1]
        os.close(message.descriptor)

    def _run(self, message: Message) -> None:
        _, number, numbers, offered = message.head
        began = time.process_time()
        try:
            block, decided = self._block(message)
        except Exception as raised:
            text = "".join(traceback.format_exception(raised)).rstrip()
            self._link.send(("unreadable", text, self._gone()))
            return
        limit_threads()
        started = time.perf_counter()
        self._offered = offered
        ROOM.begin(self._regions[offered] if offered >= 0 else None, self._larger)
        try:
            transforms = self._transforms[number]
            for transform, kind in zip(transforms, decided, strict=False):
                transform.decided = kind
            made = run_all(transforms, block, numbers)
        except Exception as raised:  # failures of elements are in the result instead
            text = "".join(traceback.format_exception(raised)).rstrip()
            del block
            self._link.send(("mistaken", f"{type(raised).__name__}: {said(raised)}", text, self._gone()))
            return
        except BaseException as raised:  # not a failure of an element: the function ends the program
            del block
            packed = packed_end(raised)
            self._link.send(("ended", self._gone()), packed)
            return
        seconds = time.perf_counter() - started
        del block
        packed = _packed(made, ROOM.memory)
        ROOM.end()
        del made
        packed, region = self._placed(packed)
        cpu = time.process_time() - began
        self._link.send(("done", seconds, cpu, self._gone()), packed, region)
        sys.stdout.flush()

    def _block(self, message: Message) -> tuple[Block, Decided]:
        memory = None
        if message.region >= 0:
            self._lent += 1
            memory = leased(self._regions[message.region], partial(self._freed.append, message.region))
        found: tuple[Block, Decided] = unpack(message.content, message.buffers(memory))
        return found

    def _placed(self, packed: Pickled) -> tuple[Pickled, int]:
        """Return the results, copied to a region or to new memory, and the number of the region. -1: the socket."""
        if packed.nbytes <= SMALL:
            return packed.moved(), -1
        if self._offered < 0 or packed.nbytes > self._regions[self._offered].nbytes:
            packed = packed.moved()  # the content of the region is lost when a larger region replaces it
            self._larger(packed.nbytes)
        region = self._offered
        return packed.moved(self._regions[region] if region >= 0 else None), region

    def _larger(self, nbytes: int) -> np.ndarray | None:
        """Ask for a region of that size in exchange for the present one. Return None if there is none."""
        self._link.send(("larger", nbytes))
        while (message := self._link.receive()).head[0] != "into":
            if message.head[0] == "region":
                self._map(message)
            else:
                self._put_off.append(message)
        self._offered = message.head[1]
        return self._regions.get(self._offered)

    def _gone(self) -> list[int]:
        """Return the regions of inputs that no code in this process reads any more.

        A function may keep its inputs, also in unreachable objects.
        """
        if self._lent - len(self._freed) > self._many:
            gc.collect()
            self._many = max(_MANY, 2 * (self._lent - len(self._freed)))
        found = [self._freed.popleft() for _ in range(len(self._freed))]
        self._lent -= len(found)
        return found


def _packed(made: Stretch, memory: np.ndarray | None) -> Pickled:
    ready = sendable(made)
    try:
        return Pickled.of(*pack(_parts(ready)), memory)
    except Exception:  # an element cannot be pickled, but other elements can
        parts = [sendable_alone(ready.slice(at, at + 1)) for at in range(ready.size)]
        return Pickled.of(*pack(_parts(join(parts))))


def _parts(made: Stretch) -> tuple[Any, ...]:
    return made.block, made.failures, made.kinds


def sendable_alone(part: Stretch) -> Stretch:
    try:
        pack(_parts(part))
    except Exception as error:
        message = f"The function's result cannot be sent from its process: {type(error).__name__}: {said(error)}"
        hint = "Return arrays, numbers and byte strings, or run this function in threads."
        return failure(FailedPreconditionError(message, hint=hint))
    return part


def sendable(made: Stretch) -> Stretch:
    block = None if made.block is None else portable(made.block)
    return Stretch(block, tuple((position, _error(error)) for position, error in made.failures), made.kinds)


class _Sent(Exception):
    """An exception that is sent with its class and attributes. The receiver does not call its constructor."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __reduce__(self) -> Any:
        error = self._error
        kind: Any = type(error)
        base = next(one for one in kind.__mro__ if one.__module__ == "builtins")
        reduced = error.__reduce__()
        if kind.__reduce__ is not base.__reduce__:
            return reduced
        return _rebuilt, (kind, base, _all_sent(reduced[1]), *reduced[2:])


def _all_sent(value: Any) -> Any:
    """Return the arguments of an exception in the form for sending: an `ExceptionGroup` contains exceptions."""
    if isinstance(value, BaseException):
        return _Sent(value)
    return type(value)(map(_all_sent, value)) if type(value) in (list, tuple) else value


def _rebuilt(kind: Any, base: Any, arguments: tuple[Any, ...], state: dict[str, Any] | None = None) -> BaseException:
    error: BaseException = base.__new__(kind, *arguments)
    base.__init__(error, *arguments)
    for name, value in (state or {}).items():
        object.__setattr__(error, name, value)
    return error


def _error(error: Exception) -> Exception:
    """Return the error in the form for sending, with its traceback as a note."""
    trace = folded(error)
    if isinstance(error, PenstockError):  # its own message needs no repetition
        lines = traceback.format_tb(trace)
    else:
        lines = traceback.format_exception(type(error), error, trace)
    with suppress(Exception):  # a frozen dataclass allows no notes
        if trace is not None:
            add_lines(error, "".join(lines).rstrip())
    return _sent(error)


def packed_end(raised: BaseException) -> Pickled:
    """Pack an exception that is not an `Exception`, such as SystemExit, for the parent to raise."""
    return Pickled.of(*pack(_sent(raised)))


def _sent(error: BaseException) -> Exception:
    """Return the exception for `pack`, or a description of an exception that cannot be sent."""
    _cut(error)
    try:
        unpack(*pack(_Sent(error)))
    except Exception:
        message = f"The function raised {type(error).__name__}: {said(error)}"
        found = FailedPreconditionError(message, hint="The exception itself could not be sent from its process.")
        found.context = context_of(error) or Context()
        found.__notes__ = list(getattr(error, "__notes__", ()))
        return found
    return _Sent(error)


def _cut(error: BaseException | None) -> None:
    """Drop the frames of an error, which refer to the element, and often to the error itself."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        error.with_traceback(None)  # no class of the user can override this
        error = error.__cause__ or error.__context__
