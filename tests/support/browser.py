"""Debian's Chromium for tests of pages, and the explorer page in it."""

import csv
import io
import os
import shutil
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
LIGHT = ("--disable-gpu", "--disable-extensions", "--disable-background-networking")
CATCH = """URL.createObjectURL = (blob) => { window.saved = blob; return 'about:blank#saved'; };
HTMLAnchorElement.prototype.click = function () { window.savedName = this.download; };"""
TAKEN = """async () => {
    for (let i = 0; i < 200 && !window.saved; i += 1) await new Promise((done) => setTimeout(done, 20));
    const reader = new FileReader();
    const read = new Promise((done) => { reader.onload = () => done(reader.result); });
    reader.readAsDataURL(window.saved);
    window.saved = null;
    return (await read).split(',')[1];
}"""


def chromium_path() -> str:
    """The installed browser; without one the test is skipped, and in CI it fails."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found:
        return found
    if os.environ.get("CI"):
        pytest.fail("no Chromium is installed, and CI always has it: run 'make browser'")
    pytest.skip("no Chromium is installed: run 'make browser' (Debian's package chromium)")


@contextmanager
def running_chromium() -> Iterator[Browser]:
    """A headless browser that downloads nothing."""
    path = chromium_path()
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=[*LIGHT, *root])
        yield browser
        browser.close()


@dataclass
class ExplorerPage:
    """The explorer in one tab, with everything that it asked for and complained about."""

    page: Page
    file: Path
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)

    def open(self, link: str = "") -> None:
        """Load the page with a link's part after #."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.file.as_uri()}{'#' + link if link else ''}")

    def field(self, row: str, column: str) -> Any:
        """The text field of a row."""
        return self.page.locator(f'[data-row="{row}"] [data-column="{column}"]')

    def type(self, row: str, column: str, text: str) -> None:
        target = self.field(row, column)
        target.fill(text)
        target.press("Enter")

    def value(self, row: str, column: str) -> str:
        return str(self.field(row, column).input_value())

    def total(self, name: str = "whole release") -> str:
        return str(self.page.locator(f'[data-total="{name}"] input').input_value())

    def saved(self, button: str) -> bytes:
        """Press a button that saves a file, and take what it saves."""
        self.page.locator(button).click()
        return b64decode(self.page.evaluate(TAKEN))

    def rows(self) -> dict[str, dict[str, str]]:
        """The rows as CSV, by identifier."""
        text = self.saved("#save-csv").decode()
        return {line["id"]: line for line in csv.DictReader(io.StringIO(text))}

    def paper(self) -> list[list[str]]:
        """The cells of the paper's table, its header first."""
        script = "() => [...document.querySelectorAll('#paper tr')].map(r => [...r.children].map(c => c.textContent))"
        return list(self.page.evaluate(script))

    def message(self, row: str, column: str) -> str:
        """The complaint under a field, empty when there is none."""
        name = self.field(row, column).get_attribute("aria-describedby")
        return str(self.page.locator(f"#{name}").text_content())


def functions_page(script: str, names: tuple[str, ...]) -> str:
    """A page with the explorer's functions in reach of a test and nothing started."""
    assert script.endswith("start();\n})();\n")
    body = script.removesuffix("start();\n})();\n") + f"window.T = {{ {', '.join(names)} }};\n}})();\n"
    return f"<script type='application/json' id='sheets'>[]</script><script>{body}</script>"
