from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from censafe.planning.explorer.page import explorer_page
from censafe.products.registry import shipped_sheets
from support.browser import CATCH, ExplorerPage, running_chromium


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with running_chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def explorer_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("explorer") / "explorer.html"
    path.write_text(explorer_page(shipped_sheets(), "test"), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def tab(chromium: Browser) -> Page:
    """One tab for all tests; what it saves is taken without a download."""
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(30_000)
    page.add_init_script(CATCH)
    return page


@pytest.fixture
def explorer(tab: Page, explorer_file: Path) -> Iterator[ExplorerPage]:
    """The page as it opens; every script error fails the test."""
    opened = ExplorerPage(tab, explorer_file)
    handlers: dict[str, Callable[[Any], None]] = {
        "request": lambda request: opened.requests.append(request.url),
        "pageerror": lambda error: opened.errors.append(str(error)),
        "console": lambda message: opened.heard.append(message.text),
    }
    for event, handler in handlers.items():
        tab.on(event, handler)  # type: ignore[call-overload]
    tab.set_viewport_size({"width": 1280, "height": 900})
    opened.open()
    yield opened
    for event, handler in handlers.items():
        tab.remove_listener(event, handler)
    assert opened.errors == []
