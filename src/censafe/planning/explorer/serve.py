"""The explorer page on this machine only."""

from __future__ import annotations

from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

__all__ = ["ADDRESS", "page_server"]

ADDRESS: Final = "127.0.0.1"


def page_server(page: str, policy: str, port: int) -> ThreadingHTTPServer:
    """A server of one page at 127.0.0.1; the caller runs and closes it.

    A request under another host name is refused, so that no other page can read this one by renaming its own address.

    Args:
        page: HTML.
        policy: the page's content security policy, sent as a header as well.
        port: 0 for any free one.

    Raises:
        OSError: the port is taken or not allowed.
    """
    body = page.encode()

    class Handler(BaseHTTPRequestHandler):
        """Answers GET and HEAD of the page, quietly."""

        server_version = "censafe"
        sys_version = ""

        def do_GET(self) -> None:
            """The page."""
            self._answer(body)

        def do_HEAD(self) -> None:
            """Its headers."""
            self._answer(b"")

        def _answer(self, content: bytes) -> None:
            name = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
            if name not in (ADDRESS, "localhost"):
                self.send_error(HTTPStatus.FORBIDDEN, "This page is for this machine only")
                return
            if self.path.partition("?")[0] not in ("/", "/index.html"):
                self.send_error(HTTPStatus.NOT_FOUND, "There is one page here, at /")
                return
            self.send_response(HTTPStatus.OK)
            for header, value in (
                ("Content-Type", "text/html; charset=utf-8"),
                ("Content-Length", str(len(body))),
                ("Content-Security-Policy", f"{policy}; frame-ancestors 'none'"),
                ("X-Content-Type-Options", "nosniff"),
                ("Referrer-Policy", "no-referrer"),
                ("Cache-Control", "no-store"),
            ):
                self.send_header(header, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            """Requests are nobody's business."""

    return ThreadingHTTPServer((ADDRESS, port), Handler)
