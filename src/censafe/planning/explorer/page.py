"""The explorer as one HTML file that makes no request and runs no script but its own, and its server on this machine only."""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Sequence
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Final

from censafe.planning.explorer.sheets import ExplorerSheet

ADDRESS: Final = "127.0.0.1"


def page_server(page: str, policy: str, port: int) -> ThreadingHTTPServer:
    """A server of one page at 127.0.0.1; the caller runs and closes it.

    A request under another host name is refused, so that no other page can read this one by renaming its own address.
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
            """Do not log requests."""

    return ThreadingHTTPServer((ADDRESS, port), Handler)


_SCRIPTS: Final = ("rational", "noise", "composed", "model", "charts", "meaning", "exports", "view", "main")


def explorer_page(sheets: Sequence[ExplorerSheet], version: str) -> str:
    """The page for some configurations, the first of them shown at first.

    Args:
        sheets: at least one.
        version: of censafe.

    Raises:
        ValueError: there is no sheet.
    """
    if not sheets:
        raise ValueError("the explorer needs at least one configuration")
    data = json.dumps([sheet.record() for sheet in sheets], separators=(",", ":"), ensure_ascii=False)
    parts = {
        "policy": escape(content_policy()),
        "style": page_style(),
        "version": escape(version),
        "sheets": data.replace("<", "\\u003c"),
        "script": page_script(),
    }
    page = _text("explorer.html")
    for name, text in parts.items():
        page = page.replace(f"{{{name}}}", text, 1)
    return page


def content_policy() -> str:
    """What the page may do: its own script and style, drawings made on the page, and nothing from anywhere.

    Example:
        >>> content_policy().split("; ")[0]
        "default-src 'none'"
    """
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_hash(page_script())}'",
            f"style-src '{_hash(page_style())}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def page_script() -> str:
    """The scripts in the order of their use, in one scope."""
    inner = "\n".join(_text(f"{name}.js") for name in _SCRIPTS)
    return f'(() => {{\n"use strict";\n{inner}}})();\n'


def page_style() -> str:
    """The style sheet."""
    return _text("explorer.css")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _text(name: str) -> str:
    return resources.files(__package__).joinpath("page", name).read_text(encoding="utf-8")
