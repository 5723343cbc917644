"""What README and pages say works: their commands run or parse, their Python runs, their links lead somewhere."""

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import censafe as public
from censafe.cli import root
from censafe.evaluation.counts import cell_sets
from censafe.evaluation.counts import cell_sets as definitions
from censafe.evaluation.summary import tables as reading
from support.commands import CommandLine

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGES = (README, ROOT / "PRIVACY.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
_FENCE = re.compile(r"^```([a-z]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^(?:    |\$ )?(?:\.venv/bin/)?censafe (.*?)(?:\s+#.*)?$", re.MULTILINE)
_SMALLER = {"200000": "600", "20000": "1000", "650000": "1000"}
_long = pytest.mark.long


def fences(page: Path, language: str) -> list[str]:
    """Blocks of one language."""
    return [text for name, text in _FENCE.findall(page.read_text(encoding="utf-8")) if name == language]


def commands(text: str) -> list[list[str]]:
    """Arguments of every command in a text; a line that a backslash ends goes on in the next one."""
    return [shlex.split(line) for line in _COMMAND.findall(text.replace("\\\n", " "))]


def run_blocks(page: Path, censafe: CommandLine) -> int:
    """Run the blocks of commands and of Python in their order, in the working folder; how many there were."""
    found, names = 0, {"__name__": page.stem}
    for language, text in _FENCE.findall(page.read_text(encoding="utf-8")):
        if language == "python":
            exec(text, names)  # noqa: S102
        for command in commands(text) if language == "sh" else ():
            done = censafe(*(_SMALLER.get(word, word) for word in command))
            assert done.code == 0, (command, done.err)
        found += language in {"python", "sh"}
    return found


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("install.md", "."),
        ("start.md", "rehearsal/certificate.html"),
        pytest.param("planning.md", "budgets.xlsx", marks=pytest.mark.long),
        ("methods/accounting.md", "."),
        pytest.param("paths/publish.md", "redistricting/intervals.csv", marks=pytest.mark.long),
        ("paths/detailed.md", "detailed-b/tables/t3/T03001/T03001.csv"),
        ("paths/country.md", "release/tables/N1_Area.parquet"),
        pytest.param("paths/use.md", "dhc-replicates", marks=_long),  # the notebook runs the same in Python
        pytest.param("paths/study.md", "attacked/report.html", marks=_long),
    ],
)
def test_the_blocks_of_a_page_run_one_after_the_other(
    name: str, made: str, censafe: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = ROOT / "docs" / name
    for beside in (page.parent / "northland").glob("*.toml"):
        shutil.copy(beside, tmp_path)
    monkeypatch.chdir(tmp_path)
    assert run_blocks(page, censafe)
    assert (tmp_path / made).exists()


def test_the_first_snippets_for_researchers_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Noise and accounting; the page as a whole takes long."""
    monkeypatch.chdir(tmp_path)
    noise, accounting, *_ = fences(ROOT / "docs" / "paths" / "study.md", "python")
    exec(noise + accounting, {"__name__": "study"})  # noqa: S102
    assert "int64" in capsys.readouterr().out


def test_pages_with_blocks_to_run_are_run() -> None:
    """A page with `sh` blocks is in the list above; Python of the others, which needs a finished run, is read."""
    marks = test_the_blocks_of_a_page_run_one_after_the_other.pytestmark  # type: ignore[attr-defined]
    (listed,) = [mark.args[1] for mark in marks if mark.name == "parametrize"]
    names = {getattr(one, "values", one)[0] for one in listed}
    own = [page for page in PAGES if page.is_relative_to(ROOT / "docs")]
    pages = [page for page in own if fences(page, "sh")]
    assert names >= {page.relative_to(ROOT / "docs").as_posix() for page in pages}
    for page in own:
        for program in fences(page, "python"):
            compile(program, str(page), "exec")


def test_the_commands_of_the_readme_are_those_of_the_first_page() -> None:
    start = [command for block in fences(ROOT / "docs" / "start.md", "sh") for command in commands(block)]
    found = commands(README.read_text(encoding="utf-8"))
    assert len(found) == 3
    assert [command for command in found if command not in start] == []


def placeholders(arguments: list[str]) -> Iterator[str]:
    """Arguments without the marks of a manual."""
    for word in arguments:
        if word not in {"...", "[CONFIG]", "|"}:
            yield word


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_command_that_a_page_names_has_these_options(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    blocks = [block for language, block in _FENCE.findall(text) if language in {"", "sh", "text"}]
    indented = re.findall(r"^    censafe .*$", text, re.MULTILINE)
    for arguments in commands("\n".join([*blocks, *indented])):
        command: click.Command = root
        words = list(placeholders(arguments))
        context = click.Context(command, info_name="censafe")
        while isinstance(command, click.Group) and words and not words[0].startswith("-"):
            inner = command.get_command(context, words.pop(0))
            assert inner is not None, arguments
            command = inner
            context = click.Context(command, parent=context, info_name=arguments[0])
        try:
            command.make_parser(context).parse_args(words)
        except click.UsageError as error:
            raise AssertionError(f"{arguments}: {error.format_message()}") from error


def test_the_python_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for program in fences(README, "python"):
        exec(program, {})  # noqa: S102
    assert (tmp_path / "rehearsal" / "certificate.html").exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_file_that_a_page_links_to_exists(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 120


def test_pages_of_keys_and_files_name_what_is_read_and_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    from hooks.generated import PARTS

    columns = PARTS["columns"]() + PARTS["columns of evaluations"]()
    assert "| `budget.TABLE.LEVEL`" in PARTS["keys"]()
    assert all(f"| `{column}` |" in columns for column in ("margin_of_error", "mean_ae", "classification"))
    text = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference").glob("*.md"))
    assert sorted(re.findall(r"^<!-- from the program: (.*) -->$", text, re.MULTILINE)) == sorted(PARTS)


def test_the_page_of_keys_lists_what_readers_of_toml_take() -> None:
    keys = (ROOT / "docs" / "reference" / "keys.md").read_text(encoding="utf-8")
    tables = [
        re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
        for table in keys.partition("## Other TOML files")[2].split("|---|---|---|---|---|\n")[1:]
    ]
    assert tables == [
        list(definitions._DEFINITION_KEYS), list(definitions._CHARACTERISTIC), list(definitions._AREAS), list(cell_sets._KEYS),
        list(reading._TOP), list(reading._TABLE), list(reading._PART),
    ]  # fmt: skip
    for values in (definitions._RECORDS, reading._MEASURES):
        assert f"| {', '.join(values)} |" in keys


def test_the_page_of_python_lists_every_public_name() -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^::: censafe\.(\w+)$", page, re.MULTILINE)) == sorted(public.__all__)


@pytest.mark.long
def test_the_site_is_built_strictly_and_needs_no_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    monkeypatch.setenv("CENSAFE_DOCS_FAST", "1")  # notebooks have a test of their own
    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path), strict=True))
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert (
            re.findall(r'<(?:script|img|iframe|link)[^>]*(?:src|href)="(?:https?:)?//[^"]*"', text) == []
        ), page
