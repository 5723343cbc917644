"""The explorer as one HTML file that makes no request and runs no script but its own."""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Sequence
from html import escape
from importlib import resources
from typing import Final

from censafe.planning.explorer.sheets import Sheet

__all__ = ["content_policy", "explorer_page", "page_script", "page_style"]

_SCRIPTS: Final = ("rational", "noise", "composed", "model", "charts", "meaning", "exports", "view", "main")


def explorer_page(sheets: Sequence[Sheet], version: str) -> str:
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
