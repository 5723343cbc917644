"""The explorer page asks nobody for anything, is quick, and can be used with keyboard, screen reader, zoom and phone."""

import re
import statistics
import threading
from collections.abc import Iterator

import pytest

from censafe.planning.explorer.page import content_policy, page_server, page_style
from support.browser import ExplorerPage

MOST_MS = 50
NAMED = """() => [...document.querySelectorAll('input, select, button, [tabindex], svg[role], th button')].filter(node =>
    !(node.getAttribute('aria-label') || node.getAttribute('aria-labelledby') || (node.labels && node.labels.length)
      || node.textContent.trim())).map(node => node.outerHTML.slice(0, 120))"""


def test_the_page_makes_no_request(explorer: ExplorerPage) -> None:
    for name in ("sdhc-us", "ddhca", "ddhcb", "pl94-us"):
        explorer.page.locator("#sheet").select_option(name)
    explorer.saved("#save-csv")
    explorer.saved('[data-png="power"]')
    own = explorer.file.as_uri()
    asked = [url for url in explorer.requests if not url.startswith((own, "about:", "data:", "blob:"))]
    assert asked == []


def test_the_policy_forbids_requests_and_foreign_scripts(explorer: ExplorerPage) -> None:
    tried = """async () => {
        const s = document.createElement('script'); s.textContent = 'window.intruder = 1'; document.body.append(s);
        let reached = true;
        try { await fetch('http://127.0.0.1:9/'); } catch { reached = false; }
        return [reached, 'intruder' in window];
    }"""
    assert explorer.page.evaluate(tried) == [False, False]
    assert sum("Content Security Policy" in text for text in explorer.heard) >= 2
    assert [url for url in explorer.requests if url.startswith("http")] == []


@pytest.mark.parametrize("name", ["sdhc-us", "pl94-us"])
def test_an_edit_is_shown_within_50_milliseconds(explorer: ExplorerPage, name: str) -> None:
    explorer.open(name)
    measure = """i => { const f = document.querySelectorAll('[data-column=margin]')[i % 7]; f.focus(); f.value = String(100 + i);
        const start = performance.now(); f.dispatchEvent(new Event('input')); document.body.getBoundingClientRect();
        return performance.now() - start; }"""
    times = [explorer.page.evaluate(measure, i) for i in range(25)]
    assert min(times) > 0
    assert statistics.quantiles(times, n=4)[0] < MOST_MS, (
        "a quarter of the edits, as the machine has other work too"
    )


def test_every_control_has_a_name_and_errors_are_announced(explorer: ExplorerPage) -> None:
    for name in ("sdhc-us", "ddhca", "e2e-1940"):
        explorer.page.locator("#sheet").select_option(name)
        assert explorer.page.evaluate(NAMED) == []
    outline = explorer.page.evaluate("() => [...document.querySelectorAll('h1, h2')].map(h => h.tagName)")
    assert ["H1", *["H2"] * 6] == outline
    assert explorer.page.locator("html").get_attribute("lang") == "en"
    tree = explorer.page.locator("main").aria_snapshot()
    for role in ("region", "columnheader", "rowheader", "group", "status", "checkbox", "combobox", "img"):
        assert re.search(rf"^\s*- {role}\b", tree, re.MULTILINE), role


def test_the_keyboard_alone_edits_a_column(explorer: ExplorerPage) -> None:
    explorer.field("PH2.usa_*", "margin").focus()
    keyboard = explorer.page.keyboard
    keyboard.press("ArrowDown")
    keyboard.type("150")
    keyboard.press("ArrowDown")
    assert explorer.value("PH2.state_*", "margin") == "150.00"
    assert (
        explorer.page.evaluate("() => document.activeElement.getAttribute('aria-label')")
        == "margin of error of PH3, Nation, Unattributed"
    )
    explorer.page.locator("#undo").focus()
    keyboard.press("Enter")
    assert explorer.value("PH2.state_*", "margin") == "200.01"  # rounded up
    explorer.page.locator('[data-switch="PH6"]').focus()
    keyboard.press("Space")
    assert explorer.field("PH6.usa_*", "loss").is_disabled()


def test_phone_and_200_percent_zoom_need_no_sideways_scrolling(explorer: ExplorerPage) -> None:
    wide = """() => [...document.querySelectorAll('#rows, #totals')]
        .filter(t => t.scrollWidth > t.parentElement.clientWidth + 1).length"""
    small = """() => [...document.querySelectorAll('button, input[type=text]')]
        .filter(n => n.offsetHeight && n.offsetHeight < 24).length"""
    for name in ("sdhc-us", "ddhca", "ddhcb", "pl94-us", "e2e-1940"):
        explorer.open(name)
        for width in (320, 390, 640):
            explorer.page.set_viewport_size({"width": width, "height": 800})
            assert width >= explorer.page.evaluate("() => document.documentElement.scrollWidth"), (
                name,
                width,
            )
            assert explorer.page.evaluate(wide) == 0, (name, width)
            assert explorer.page.evaluate(small) == 0, (name, width)


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_texts_stand_out_in_light_and_dark(scheme: int) -> None:
    block = re.findall(r":root \{(.*?)\}", page_style(), re.DOTALL)[scheme]
    colors = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block))
    for front in ("ink", "soft", "accent", "second", "warn"):
        for back in ("paper", "page", "mark", "tint", "field"):
            light, dark = sorted((luminance(colors[front]), luminance(colors[back])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (front, back)


def test_dark_is_drawn_dark(explorer: ExplorerPage) -> None:
    light = explorer.page.locator("#power rect").get_attribute("fill")
    explorer.page.emulate_media(color_scheme="dark")
    explorer.page.wait_for_function(
        f"() => document.querySelector('#power rect').getAttribute('fill') !== '{light}'"
    )


@pytest.fixture
def served(explorer: ExplorerPage) -> Iterator[str]:
    page = explorer.file.read_text(encoding="utf-8")
    with page_server(page, content_policy(), 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


def test_the_served_page_works(explorer: ExplorerPage, served: str) -> None:
    explorer.page.goto(f"{served}#ddhcb")
    assert explorer.total("United States") == "8.895302"
    assert {served} == {url.partition("#")[0] for url in explorer.requests if url.startswith("http")}
