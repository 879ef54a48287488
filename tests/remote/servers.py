"""Servers of this machine that speak as those do that data lives behind: on 127.0.0.1, ended with the test."""

import functools
import http.server
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUCKET = "penstock-test"


def free_port():
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return door.getsockname()[1]


@contextmanager
def process(command, port=None, patience=60.0, **how):
    """A process, once it listens on the port."""
    with subprocess.Popen(command, cwd=ROOT, **how) as running:
        try:
            until = time.monotonic() + patience
            while port is not None:
                try:
                    socket.create_connection(("127.0.0.1", port), 1.0).close()
                    break
                except OSError:
                    if running.poll() is not None or time.monotonic() > until:
                        message = f"{command} does not listen"
                        raise RuntimeError(message) from None
                    time.sleep(0.05)
            yield running
        finally:
            running.kill()


@contextmanager
def proxied(port, *arguments):
    """The port of a `proxy` in front of another one."""
    command = [sys.executable, "-m", "tests.remote.proxy", "--to", f"127.0.0.1:{port}", *arguments]
    with process(command, stdout=subprocess.PIPE, text=True) as running:
        yield int(running.stdout.readline())


@contextmanager
def settings(**values):
    """The environment with these variables set."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@contextmanager
def s3(*through):
    """S3 as moto speaks it, with a bucket, through a `proxy` where it is given arguments. Its URL."""
    import s3fs

    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}
    with process(command, port, **quiet), proxied(port, *through) as outside:
        with settings(**keys, AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}"):
            s3fs.S3FileSystem(skip_instance_cache=True).mkdir(BUCKET)
        with settings(**keys, AWS_ENDPOINT_URL=f"http://127.0.0.1:{outside}"):
            s3fs.S3FileSystem.clear_instance_cache()
            yield f"s3://{BUCKET}"
            s3fs.S3FileSystem.clear_instance_cache()


@contextmanager
def quick_s3(folder, *arguments):
    """S3 as `quick_s3` speaks it, with a folder's files in a bucket, for reading alone. Its URL."""
    import s3fs

    where = ["--folder", str(folder), "--bucket", BUCKET]
    command = [sys.executable, "-m", "tests.remote.quick_s3", *where, *arguments]
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}
    with process(command, stdout=subprocess.PIPE, text=True) as running:
        port = int(running.stdout.readline())
        with settings(**keys, AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}"):
            s3fs.S3FileSystem.clear_instance_cache()
            yield f"s3://{BUCKET}"
            s3fs.S3FileSystem.clear_instance_cache()


@contextmanager
def gs():
    """Google's storage as gcp-storage-emulator speaks it, with a bucket. Its URL."""
    port = free_port()
    command = [sys.executable, "-m", "gcp_storage_emulator", "start", "--host", "127.0.0.1", "--port", str(port)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    known = {
        "STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{port}",
        "FSSPEC_GS_TOKEN": "anon",
        "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",  # gcsfs would ask by gRPC, which the emulator does not speak
    }
    with process([*command, "--in-memory", "--default-bucket", BUCKET], port, **quiet), settings(**known):
        import gcsfs  # it looks at them when it is imported

        gcsfs.GCSFileSystem.clear_instance_cache()
        yield f"gs://{BUCKET}"
        gcsfs.GCSFileSystem.clear_instance_cache()


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files of a folder, by ranges if its class says so."""

    protocol_version = "HTTP/1.1"
    ranges = True

    def send_head(self):
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        content = path.read_bytes()
        start, stop = 0, len(content)
        asked = self.headers.get("Range")
        if asked and self.ranges:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start, stop = int(first), min(int(last or stop) + 1, stop)
        self.send_response(206 if asked and self.ranges else 200)
        self.send_header("Content-Length", str(stop - start))
        self.send_header("ETag", f'"{path.stat().st_mtime_ns}"')
        if self.ranges:
            self.send_header("Accept-Ranges", "bytes")
        if asked and self.ranges:
            self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{len(content)}")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content[start:stop])
        return

    def log_message(self, *args):
        """Nothing."""


class WithoutRanges(Handler):
    ranges = False


@contextmanager
def web(folder, *, ranges):
    """A web server of a folder. Its URL."""
    handler = functools.partial(Handler if ranges else WithoutRanges, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
