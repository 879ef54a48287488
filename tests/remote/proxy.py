"""A proxy in front of an HTTP server: a way to it that is long, narrow and not always open.

    python -m tests.remote.proxy --to 127.0.0.1:5000 --latency 0.05 --bandwidth 20e6 --faults 0.01 --seed 1

Prints the port that it listens on, of 127.0.0.1. Each request waits; the answers of all together come at most so fast;
of so many in a hundred one half is answered with 503, of the other the connection is reset, in front of the answer or
in the middle of it.
"""

import argparse
import asyncio
import random
import time

PIECE = 1 << 16


class Proxy:
    def __init__(self, to, latency, bandwidth, faults, seed):
        self.host, _, port = to.partition(":")
        self.port = int(port)
        self.latency, self.bandwidth, self.faults = latency, bandwidth, faults
        self.chance = random.Random(seed)
        self.free = 0.0  # when the way is free again
        self.serving = set()  # the event loop itself may forget tasks that wait

    async def serve(self, reader, writer):
        self.serving.add(asyncio.current_task())
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            lines = [line for line in head[:-4].split(b"\r\n") if not line.lower().startswith(b"connection:")]
            fields = dict(line.lower().split(b": ", 1) for line in lines[1:] if b": " in line)
            if fields.get(b"expect") == b"100-continue":
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                lines = [line for line in lines if not line.lower().startswith(b"expect:")]
            body = await reader.readexactly(int(fields.get(b"content-length", 0)))
            await asyncio.sleep(self.latency)
            fault = self.chance.choice(["503", "reset", "cut"]) if self.chance.random() < self.faults else None
            if fault == "503":
                writer.write(b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            elif fault == "reset":
                writer.transport.abort()
            else:
                await self.answer(b"\r\n".join([*lines, b"Connection: close", b"", b""]) + body, writer, fault)
            await writer.drain()
        except (OSError, EOFError):
            pass
        finally:
            writer.close()
            self.serving.discard(asyncio.current_task())

    async def answer(self, question, writer, fault):
        reader, sender = await asyncio.open_connection(self.host, self.port)
        try:
            sender.write(question)
            await sender.drain()
            while piece := await reader.read(PIECE):
                await self.pass_the_narrow(len(piece))
                if fault == "cut" and len(piece) > 1000:
                    writer.write(piece[: len(piece) // 2])
                    await writer.drain()
                    writer.transport.abort()
                    return
                writer.write(piece)
                await writer.drain()
        finally:
            sender.close()

    async def pass_the_narrow(self, nbytes):
        if self.bandwidth:
            now = time.monotonic()
            self.free = max(self.free, now) + nbytes / self.bandwidth
            if self.free > now + 0.002:
                await asyncio.sleep(self.free - now)


async def main(chosen):
    proxy = Proxy(chosen.to, chosen.latency, chosen.bandwidth, chosen.faults, chosen.seed)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, limit=1 << 20, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await asyncio.sleep(chosen.seconds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", required=True)
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--bandwidth", type=float, default=0.0)
    parser.add_argument("--faults", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=900.0, help="after which it ends in any case")
    asyncio.run(main(parser.parse_args()))
