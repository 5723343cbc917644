"""A command line that lacks an argument is told which one, what it is, and the whole command."""

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from censafe.cli import root


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with records and an earlier output in it."""
    for name in ("data", "release"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _said(line: str) -> str:
    done = CliRunner().invoke(root, shlex.split(line), prog_name="censafe")
    assert done.exit_code == 2
    return done.output


@pytest.mark.parametrize(
    ("line", "shipped", "example"),
    [
        ("run phsafe data release", "(sdhc-us, sdhc-pr)", "run phsafe sdhc-us data release"),
        ("run safetab-p data out", "(ddhca)", "run safetab-p ddhca data out"),
        ("run safetab-h data out --t1 release", "(ddhcb)", "run safetab-h ddhcb data out --t1 release"),
        ("run --quiet topdown data out", "pl94-us, dhc-pr", "run --quiet topdown pl94-us data out"),
        ("truth phsafe data out", "(sdhc-us, sdhc-pr)", "truth phsafe sdhc-us data out"),
        ("validate phsafe data", "(sdhc-us, sdhc-pr)", "validate phsafe sdhc-us data"),
        ("evaluate phsafe data out", "(sdhc-us, sdhc-pr)", "evaluate phsafe sdhc-us data out"),
        ("evaluate topdown data out", "pl94-us", "evaluate topdown pl94-us data out"),
        ("evaluate sweep topdown data out", "e2e-1940", "evaluate sweep topdown e2e-1940 data out"),
        ("evaluate semantics phsafe out", "(sdhc-us, sdhc-pr)", "evaluate semantics phsafe sdhc-us out"),
    ],
)  # fmt: skip
def test_a_line_without_a_configuration_is_told_so(
    folder: Path, line: str, shipped: str, example: str
) -> None:
    said = _said(line)
    assert "CONFIG is missing before " in said
    assert shipped in said
    assert f"Example: censafe {example}\n" in said


@pytest.mark.parametrize(
    ("line", "missing", "example"),
    [
        ("run phsafe data", "CONFIG and OUT are missing before 'data'", "run phsafe sdhc-us data out/"),
        ("run phsafe sdhc-us data", "OUT is missing.", "run phsafe sdhc-us data out/"),
        ("run phsafe sdhc-uz data", "OUT is missing.", "run phsafe sdhc-uz data out/"),
        ("plan phsafe", "CONFIG is missing.", "plan phsafe sdhc-us"),
        ("plan", "PRODUCT and CONFIG are missing.", "plan phsafe sdhc-us"),
        ("card", "RUN is missing.", "card dhc --geoid 44007"),
        ("configs show", "NAME is missing.", "configs show sdhc-us > mine.toml"),
        ("ledger show", "LEDGER is missing.", "ledger show censafe-ledger.jsonl"),
    ],
)
def test_every_missing_argument_is_named(folder: Path, line: str, missing: str, example: str) -> None:
    said = _said(line)
    assert missing in said
    assert f"Example: censafe {example}\n" in said


def test_a_configuration_of_ones_own_is_no_folder_of_records(folder: Path) -> None:
    (folder / "mine.toml").write_text("")
    (folder / "bureau").mkdir()
    (folder / "bureau" / "config.json").write_text("{}")
    for own in ("mine.toml", "bureau", "not_there.json"):
        assert "Error: OUT is missing." in _said(f"run phsafe {own} data")


def test_help_and_wrong_options_come_first(folder: Path) -> None:
    assert CliRunner().invoke(root, ["run", "phsafe", "-h"]).exit_code == 0
    assert "No such option" in _said("run phsafe data --no-such-option")
    assert "is a configuration of phsafe; write phsafe sdhc-us" in _said("run sdhc-us data out")
    assert "say 'censafe estimate OUT'" in str(
        CliRunner().invoke(root, ["estimate", "--measurements", "data"]).exception
    )
