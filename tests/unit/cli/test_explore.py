"""``censafe explore`` from the outside."""

import socket
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from support.commands import CommandLine


@pytest.fixture
def small_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another page in the place of the explorer's, which takes two seconds to make."""
    for owner in ("censafe", "censafe.api.data"):
        monkeypatch.setattr(f"{owner}.explorer_page", lambda: "<!doctype html>")


def test_the_page_is_written_where_it_is_asked_for(censafe: CommandLine, tmp_path: Path) -> None:
    done = censafe("explore", "--out", tmp_path / "budgets.html")
    assert (done.code, done.out) == (0, "")
    assert "budgets.html: open it in a browser" in done.err
    assert (tmp_path / "budgets.html").read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.usefixtures("small_page")
def test_without_a_name_it_is_in_the_working_folder(
    censafe: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    censafe("explore", ends=0)
    assert (tmp_path / "censafe-explorer.html").read_text(encoding="utf-8") == "<!doctype html>"


def test_wrong_usage_is_told(censafe: CommandLine) -> None:
    for arguments, words in (
        (("--serve", "--out", "page.html"), "not both"),
        (("--port", "8001"), "--port goes with --serve"),
        (("--serve", "--port", "70000"), "0<=x<=65535"),
    ):
        censafe("explore", *arguments, ends=2, says=words)


@pytest.mark.usefixtures("small_page")
def test_a_taken_port_is_told(censafe: CommandLine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = censafe("explore", "--serve", "--port", taken.getsockname()[1])
    assert done.code == 2
    assert "--port 0 takes any free one" in done.err


@pytest.mark.usefixtures("small_page")
def test_the_server_says_where_it_is_and_stops(censafe: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(server: ThreadingHTTPServer, poll_interval: float = 0.5) -> None:
        assert server.server_address[0] == "127.0.0.1"
        raise KeyboardInterrupt

    monkeypatch.setattr(ThreadingHTTPServer, "serve_forever", interrupted)
    done = censafe("explore", "--serve", "--port", "0", ends=0)
    assert done.out.startswith("http://127.0.0.1:")
    assert done.err.endswith("Stopped.\n")
