"""An S3 server on this machine, in a process of its own."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextlib.contextmanager
def process(command, ready, **options):
    """A process that runs until the block ends; it begins when the URL `ready` answers."""
    found = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, **options
    )
    try:
        deadline = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(ready, timeout=5).close()
                break
            assert found.poll() is None, f"{command[0]} has ended"
            assert time.monotonic() < deadline, f"{command[0]} does not answer"
            time.sleep(0.1)
        yield found
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(found.pid, signal.SIGKILL)
        found.wait()


@contextlib.contextmanager
def moto():
    """The port of an S3 server that is empty."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    if not Path(sys.executable).exists():
        command[0] = "python"
    with process(command, f"http://127.0.0.1:{port}/moto-api/"):
        yield port
