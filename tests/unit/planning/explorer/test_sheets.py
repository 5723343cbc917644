"""What the explorer page is made of, without a browser."""

import hashlib
import http.client
import json
import re
import threading
from base64 import b64encode
from collections.abc import Iterator
from fractions import Fraction
from html import unescape

import pytest

from censafe.planning.explorer.page import content_policy, explorer_page, page_server
from censafe.planning.explorer.sheets import quadratic
from censafe.products.detailed.codes.parameters import read_universe
from censafe.products.detailed.config import load_p_config
from censafe.products.detailed.plan import stabilities
from censafe.products.phsafe.config import load_phsafe_config
from censafe.products.registry import shipped_sheets
from censafe.products.topdown.configuration.config import load_config as load_topdown


@pytest.fixture(scope="module")
def page() -> str:
    return explorer_page(shipped_sheets(), "1.2.3")


def test_the_policy_names_exactly_the_scripts_and_styles_of_the_page(page: str) -> None:
    policy = unescape(re.findall(r'Content-Security-Policy" content="([^"]*)"', page)[0])
    assert policy == content_policy()
    for tag in ("script", "style"):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_the_page_names_no_address_but_that_of_svg(page: str) -> None:
    found = set(re.findall(r"""(?:https?:)?//[a-z][\w.-]+\.[a-z]{2,}[^\s"'<]*""", page))
    assert found == {"http://www.w3.org/2000/svg"}


def test_a_page_without_sheets_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        explorer_page((), "1")


def test_texts_of_a_sheet_cannot_end_its_script(page: str) -> None:
    (data,) = re.findall(r'id="sheets">(.*?)</script>', page, re.DOTALL)
    assert "<" not in data
    assert [sheet.key for sheet in shipped_sheets()] == [sheet["key"] for sheet in json.loads(data)]


def test_budgets_of_the_sheets_are_those_of_the_configurations() -> None:
    sheets = {sheet.key: sheet for sheet in shipped_sheets()}
    budgets = load_phsafe_config("sdhc-us").budgets
    rows = {row.id: row.budget for row in sheets["sdhc-us"].rows if row.derived is None}
    assert {f"{table}.{level}": budget for (table, level), budget in budgets.items()} == rows
    topdown = sheets["pl94-pr"]
    losses = sum((row.budget for row in topdown.rows), Fraction(0))
    assert topdown.shares is not None
    outside = sum(
        (loss for levels in topdown.shares.outside.values() for loss in levels.values()), Fraction(0)
    )
    assert sum((h.loss for h in load_topdown("pl94-pr").histograms), Fraction(0)) == losses + outside


def test_bounds_by_race_codes_are_the_stabilities() -> None:
    (sheet,) = shipped_sheets(["safetab-p"])
    stable = {
        level.key: s
        for level, s in stabilities(load_p_config("ddhca", {"max_race_codes": "3"}), read_universe()).items()
    }
    assert {row.id: row.bound.values[2] for row in sheet.rows} == {
        row.id: stable[row.id] for row in sheet.rows
    }


def test_a_bound_that_is_no_polynomial_of_degree_2_is_refused() -> None:
    assert quadratic(lambda tau: Fraction(8 * tau**2)) == (0, 0, 8)
    with pytest.raises(ValueError, match="degree 2"):
        quadratic(lambda tau: Fraction(tau**3))


@pytest.fixture
def port() -> Iterator[int]:
    with page_server("<p>page</p>", "default-src 'none'", 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def ask(port: int, method: str, path: str, host: str) -> tuple[int, str, str | None]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request(method, path, headers={"Host": host})
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, body, answer.getheader("Content-Security-Policy")


def test_the_server_shows_one_page_to_this_machine_only(port: int) -> None:
    policy = "default-src 'none'; frame-ancestors 'none'"
    assert ask(port, "GET", "/", f"127.0.0.1:{port}") == (200, "<p>page</p>", policy)
    assert ask(port, "HEAD", "/", "localhost") == (200, "", policy)
    assert ask(port, "GET", "/../secret", f"127.0.0.1:{port}")[0] == 404
    assert ask(port, "GET", "/", "evil.example")[0] == 403
    assert ask(port, "POST", "/", f"127.0.0.1:{port}")[0] == 501
