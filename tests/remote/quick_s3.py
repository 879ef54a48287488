"""A server of S3 for reading alone, whose answers cost next to nothing: it is not what a measurement finds.

    python -m tests.remote.quick_s3 --folder /data --bucket some --latency 0.05 --bandwidth 25e6

Prints the port that it listens on, of 127.0.0.1. The files of the folder are the objects of one bucket; it lists them,
describes them, and gives them by ranges. Each request waits, and pieces of all answers take turns on a way that lets so
many bytes a second through. Whoever asks is believed.
"""

import argparse
import asyncio
import mmap
import urllib.parse
from email.utils import formatdate
from pathlib import Path
from xml.sax.saxutils import escape

PIECE = 1 << 16
_CREDIT = 0.01  # seconds that the way may have been idle for want of a timer that comes in time

_LISTED = """<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>{bucket}</Name><Prefix>{prefix}</Prefix>\
<KeyCount>{count}</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>{contents}</ListBucketResult>"""
_OBJECT = """<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>\
<ETag>{tag}</ETag><Size>{size}</Size><StorageClass>STANDARD</StorageClass></Contents>"""


class Way:
    """What all answers go through, one piece behind the other."""

    def __init__(self, bandwidth):
        self.bandwidth = bandwidth
        self.free = 0.0

    def pass_(self, nbytes, now):
        """When a piece that is there now has passed."""
        if not self.bandwidth:
            return now
        self.free = max(self.free, now - _CREDIT) + nbytes / self.bandwidth
        return self.free


class Talk(asyncio.Protocol):
    """One connection; the other side asks again when it has been answered."""

    def __init__(self, bucket, objects, way, latency):
        self.bucket, self.objects, self.way, self.latency = bucket, objects, way, latency
        self.loop = asyncio.get_running_loop()
        self.waiting = b""

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.waiting += data
        head, end, rest = self.waiting.partition(b"\r\n\r\n")
        if end:
            self.waiting = rest
            self.loop.call_later(self.latency, self.answer, head.decode("latin-1").split("\r\n"))

    def answer(self, lines):
        method, target, _ = lines[0].split(" ")
        fields = dict(line.split(": ", 1) for line in lines[1:] if ": " in line)
        fields = {name.lower(): value for name, value in fields.items()}
        path, _, query = target.partition("?")
        bucket, _, key = urllib.parse.unquote(path).removeprefix("/").partition("/")
        if method not in ("GET", "HEAD") or bucket != self.bucket:
            self.head("404 Not Found", 0)
        elif not key:
            self.list(dict(urllib.parse.parse_qsl(query)).get("prefix", ""))
        elif key not in self.objects:
            self.head("404 Not Found", 0)
        else:
            self.give(method, fields, *self.objects[key])

    def head(self, status, length, *more):
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {length}", "Server: quick", *more, "", ""]
        self.transport.write("\r\n".join(lines).encode())

    def list(self, prefix):
        found = [(key, *self.objects[key]) for key in sorted(self.objects) if key.startswith(prefix)]
        contents = "".join(_OBJECT.format(key=escape(key), tag=tag, size=len(body)) for key, body, tag in found)
        listed = _LISTED.format(bucket=self.bucket, prefix=escape(prefix), count=len(found), contents=contents).encode()
        self.head("200 OK", len(listed), "Content-Type: application/xml")
        self.transport.write(listed)

    def give(self, method, fields, body, tag):
        same = [f"ETag: {tag}", f"Last-Modified: {formatdate(1767225600, usegmt=True)}", "Accept-Ranges: bytes"]
        if fields.get("if-match", tag) != tag:
            self.head("412 Precondition Failed", 0)
            return
        start, stop = 0, len(body)
        if "range" in fields:
            first, _, last = fields["range"].removeprefix("bytes=").partition("-")
            start, stop = int(first), min(int(last or stop) + 1, stop)
            where = f"Content-Range: bytes {start}-{stop - 1}/{len(body)}"
            self.head("206 Partial Content", stop - start, *same, where)
        else:
            self.head("200 OK", len(body), *same)
        if method == "GET":
            self.send(memoryview(body)[start:stop])

    def send(self, left):
        if left and not self.transport.is_closing():
            piece = left[:PIECE]
            self.loop.call_at(self.way.pass_(len(piece), self.loop.time()), self.sent, piece, left[PIECE:])

    def sent(self, piece, left):
        self.transport.write(piece)
        self.send(left)


def opened(path):
    with path.open("rb") as file:
        state = path.stat()
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), f'"{state.st_mtime_ns:x}-{state.st_size:x}"'


async def main(chosen):
    objects = {path.name: opened(path) for path in Path(chosen.folder).iterdir()}
    way = Way(chosen.bandwidth)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Talk(chosen.bucket, objects, way, chosen.latency), "127.0.0.1", 0, backlog=512
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await asyncio.sleep(chosen.seconds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", required=True)
    parser.add_argument("--bucket", required=True)
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--bandwidth", type=float, default=0.0)
    parser.add_argument("--seconds", type=float, default=900.0, help="after which it ends in any case")
    asyncio.run(main(parser.parse_args()))
