"""web: a page on 127.0.0.1 that shows a process. Requests without the token of the address are rejected."""

from __future__ import annotations

import hmac
import secrets
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from penstock.errors import FailedPreconditionError, InvalidArgumentError, PenstockError
from penstock.profiler.live.html import body, style
from penstock.profiler.live.monitor import ask

_HOST = "127.0.0.1"
_SCRIPT = """
const place = document.getElementById("live"), gone = document.getElementById("gone");
async function look() {
  try {
    const answer = await fetch("/live" + location.search, {cache: "no-store"});
    const text = await answer.text();
    if (answer.ok) { place.innerHTML = text; gone.textContent = ""; } else { gone.textContent = text; }
  } catch (error) { gone.textContent = "penstock top has ended."; }
  setTimeout(look, 1000);
}
setTimeout(look, 1000);
"""


class Page:
    """Serves the page during a `with` block; `address` is the URL for a browser."""

    def __init__(self, pid: int, port: int = 0) -> None:
        if not 0 <= port <= 65535:
            message = f"--port must lie between 0 and 65535, got {port}."
            raise InvalidArgumentError(message, hint="Leave it out to use a free port.")
        self.pid = pid
        self.token = secrets.token_urlsafe(24)
        try:
            self._server = ThreadingHTTPServer((_HOST, port), _Handler)
        except OSError as error:
            message = f"The page cannot be served on {_HOST}:{port}: {error}."
            raise FailedPreconditionError(message, hint="Leave --port out to use a free port.") from error
        self._server.daemon_threads = True
        self._server.page = self  # type: ignore[attr-defined]
        self.port = int(self._server.server_address[1])

    @property
    def address(self) -> str:
        return f"http://{_HOST}:{self.port}/?token={self.token}"

    def serve(self) -> None:
        """Serve until Ctrl-C, or until `stop` is called from another thread."""
        try:
            self._server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            return

    def stop(self) -> None:
        self._server.shutdown()

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *error: object) -> None:
        self._server.server_close()

    def allows(self, host: str, query: str) -> bool:
        """Return True if the token is right and the host name is local, which excludes DNS rebinding."""
        token = parse_qs(query).get("token", [""])[0]
        known = host in (f"{_HOST}:{self.port}", f"localhost:{self.port}")
        return hmac.compare_digest(token.encode(), self.token.encode()) and known

    def whole(self, nonce: str) -> str:
        """Return the whole page."""
        return (
            "<!doctype html><html lang=en><head><meta charset=utf-8>"
            "<meta name=viewport content='width=device-width'><link rel=icon href='data:,'>"
            f"<title>penstock top {self.pid}</title><style>{style()}</style></head>"
            f"<body><p id=gone class=gone></p><div id=live>{body(ask(self.pid))}</div>"
            f"<script nonce='{nonce}'>{_SCRIPT}</script></body></html>"
        )


class _Handler(BaseHTTPRequestHandler):
    server_version = "penstock"
    sys_version = ""
    timeout = 10

    def do_GET(self) -> None:
        page: Page = self.server.page  # type: ignore[attr-defined]
        where = urlsplit(self.path)
        nonce = secrets.token_urlsafe(12)
        if not page.allows(self.headers.get("Host", ""), where.query):
            self._give(HTTPStatus.FORBIDDEN, "Open the address that `penstock top --web` printed, token included.")
            return
        try:
            if where.path == "/":
                self._give(HTTPStatus.OK, page.whole(nonce), "text/html", nonce)
            elif where.path == "/live":
                self._give(HTTPStatus.OK, body(ask(page.pid)), "text/html")
            else:
                self._give(HTTPStatus.NOT_FOUND, "There is nothing here.")
        except PenstockError as error:
            self._give(HTTPStatus.SERVICE_UNAVAILABLE, str(error))

    def _give(self, status: HTTPStatus, text: str, kind: str = "text/plain", nonce: str = "") -> None:
        content = text.encode()
        policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; base-uri 'none'"
        policy += f"; script-src 'nonce-{nonce}'" if nonce else ""
        self.send_response(status)
        for name, value in (
            ("Content-Type", f"{kind}; charset=utf-8"),
            ("Content-Length", str(len(content))),
            ("Content-Security-Policy", f"{policy}; frame-ancestors 'none'; form-action 'none'"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
            ("Cache-Control", "no-store"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - the base class's name
        """Log nothing: the terminal belongs to the user, and a log of addresses would reveal the token."""
