"""A proxy in front of a server of this machine that makes it a distant and an unreliable one."""

import asyncio
import contextlib
import random
import socket
import struct
import threading

_PIECE = 1 << 16


class Proxy:
    """Every request waits `latency` seconds; all replies together have `bandwidth` bytes a second; some fail.

    `faults` are the parts of the requests that end in a 503, in a reset before the reply, and in one in the middle of
    it, as a seeded generator draws them. `counts` says what was done.
    """

    def __init__(self, port, *, latency=0.0, bandwidth=None, faults=(0.0, 0.0, 0.0), seed=0):
        self._target = port
        self.latency, self.bandwidth, self.faults = latency, bandwidth, faults
        self._random = random.Random(seed)
        self._free = 0.0
        self.counts = {"requests": 0, "503": 0, "reset": 0, "cut": 0, "bytes": 0}
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def _run(self):
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self):
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._client, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _client(self, reader, writer):
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await self._one(reader, writer):
                pass
        writer.close()

    async def _one(self, reader, writer):
        head = await _head(reader)
        if not head:
            return False
        self.counts["requests"] += 1
        body = await _body(reader, writer, head)
        await asyncio.sleep(self.latency)
        drawn = self._random.random()
        refuse, reset, cut = self.faults
        if drawn < refuse:
            self.counts["503"] += 1
            writer.write(b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nRetry-After: 0\r\n\r\n")
            await writer.drain()
            return True
        if drawn < refuse + reset:
            self.counts["reset"] += 1
            _reset(writer)
            return False
        upstream, to_upstream = await asyncio.open_connection("127.0.0.1", self._target)
        try:
            lines = [line for line in head.split(b"\r\n") if not line.lower().startswith((b"connection:", b"expect:"))]
            to_upstream.write(lines[0] + b"\r\nConnection: close\r\n" + b"\r\n".join(lines[1:]) + body)
            reply = await _head(upstream)
            lines = [line for line in reply.split(b"\r\n") if not line.lower().startswith(b"connection:")]
            lines[0] = lines[0].replace(b"HTTP/1.0", b"HTTP/1.1")
            size = _length(reply)
            bare = head.startswith(b"HEAD") or reply.split(b" ")[1] in (b"204", b"304")
            writer.write(b"\r\n".join(lines))
            left = 0 if bare else size if size is not None else 1 << 60
            stop = left // 2 if refuse + reset <= drawn < refuse + reset + cut and left > 1 else -1
            while left:
                piece = await upstream.read(min(_PIECE, left))
                if not piece:
                    return False
                left -= len(piece)
                await self._pace(len(piece))
                writer.write(piece)
                await writer.drain()
                if 0 <= left <= stop:
                    self.counts["cut"] += 1
                    _reset(writer)
                    return False
            return size is not None or bare
        finally:
            to_upstream.close()

    async def _pace(self, nbytes):
        self.counts["bytes"] += nbytes
        if self.bandwidth is not None:
            now = self._loop.time()
            self._free = max(self._free, now) + nbytes / self.bandwidth
            if self._free - now > 0.002:  # shorter pauses are not kept by the system
                await asyncio.sleep(self._free - now)


async def _head(reader):
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""


async def _body(reader, writer, head):
    if b"expect: 100-continue" in head.lower():
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    if b"transfer-encoding: chunked" in head.lower():
        parts = []
        while True:
            line = await reader.readline()
            size = int(line.split(b";")[0], 16)
            parts += [line, await reader.readexactly(size + 2)]
            if not size:
                return b"".join(parts)
    size = _length(head)
    return await reader.readexactly(size) if size else b""


def _length(head):
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return None


def _reset(writer):
    """Close a connection so that the other side sees it reset."""
    found = writer.get_extra_info("socket")
    found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
