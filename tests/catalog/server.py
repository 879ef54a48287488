"""A web server on this machine that misbehaves as it is told."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Site:
    """Files by path, and for each a list of faults, one for each request until they are used up.

    A fault is ("status", code, headers), ("reset", after so many bytes), ("short", bytes less than promised),
    ("stall", after so many bytes, until the site is closed), ("redirect", path) or ("other", content that is there from
    now on).
    """

    def __init__(self):
        self.files, self.faults, self.requests = {}, {}, []
        self.ranges = True
        self.headers = None  # of a content, in place of a strong tag
        self.closed = threading.Event()
        self.address = ""

    def url(self, path):
        return f"{self.address}/{path}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        """Be quiet."""

    def do_GET(self):
        site = self.server.site
        path = self.path.lstrip("/")
        site.requests.append((path, self.headers.get("Range"), self.headers.get("Authorization")))
        fault = site.faults.get(path, []).pop(0) if site.faults.get(path) else None
        if fault and fault[0] == "status":
            self._answer(fault[1], b"", fault[2])
        elif fault and fault[0] == "redirect":
            self._answer(302, b"", {"Location": site.url(fault[1])})
        elif path not in site.files:
            self._answer(404, b"", {})
        else:
            if fault and fault[0] == "other":
                site.files[path] = fault[1]
            self._file(site, site.files[path], fault)

    def _answer(self, status, content, headers):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def _file(self, site, content, fault):
        tag = f'"{hash(content)}"'
        start, status, headers = 0, 200, {"ETag": tag} if site.headers is None else site.headers(content)
        asked = self.headers.get("Range")
        same = site.headers is not None or self.headers.get("If-Range") in (None, tag)
        if asked and site.ranges and same:
            start = int(asked.removeprefix("bytes=").rstrip("-"))
            status = 206 if start < len(content) else 416
            span = f"{start}-{len(content) - 1}" if status == 206 else "*"
            headers["Content-Range"] = f"bytes {span}/{len(content)}"
        part = content[start:]
        headers["Content-Length"] = str(len(part))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if fault and fault[0] in ("reset", "short"):
            sent = fault[1] if fault[0] == "reset" else len(part) - fault[1]
            self.wfile.write(part[:sent])
            self.wfile.flush()
            self.close_connection = True
            return
        if fault and fault[0] == "stall":
            self.wfile.write(part[: fault[1]])
            self.wfile.flush()
            site.closed.wait(60)
            self.close_connection = True
            return
        self.wfile.write(part)


@contextmanager
def serving():
    """A Site that is being served; stopped with the block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.site = Site()
    server.site.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server.site
    finally:
        server.site.closed.set()
        server.shutdown()
        thread.join()
        server.server_close()
