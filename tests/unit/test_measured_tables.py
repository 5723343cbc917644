"""Tables of measured numbers in the documentation: each names its script, commit and date, and what is older than the code is reported."""

import datetime
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs"))

import make_attack  # noqa: E402
import make_dhc_joint  # noqa: E402
from measured import (  # noqa: E402
    PATHS,
    marked,
    measured_paths,
    measured_tables,
    pages,
    shown_stamps,
    stale_tables,
    write_table,
)

BLOCK = re.compile(
    r"<!-- measured ([a-z0-9-]+) by .*? -->\n\n(.*?)\n\n<!-- end of ([a-z0-9-]+) -->", re.DOTALL
)
RULE = re.compile(r"^\|[-:| ]+\|$")
MOSTLY = 0.4
LETTERS = 12
TABLE = ["| n | error |", "|---|---:|", "| 10 | 3.2 |"]


def table_parts(text: str) -> Iterator[list[str]]:
    """The lines of every Markdown table."""
    own: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            own.append(line)
        elif own:
            if len(own) > 1 and RULE.match(own[1]):
                yield own
            own = []


def is_of_numbers(lines: list[str]) -> bool:
    """Whether most cells beside the row names hold a number and few words."""
    cells = [cell.strip() for line in lines[2:] for cell in line.strip("|").split("|")[1:]]
    numbers = [
        cell for cell in cells if re.search(r"\d", cell) and len(re.sub(r"[\d.,%±+\- x]", "", cell)) < LETTERS
    ]
    return len(numbers) >= MOSTLY * max(1, len(cells))


def test_every_marked_table_has_its_script_a_commit_and_a_date() -> None:
    scripts = measured_paths()
    found = list(measured_tables())
    assert len(found) > 60
    for table in found:
        assert table.script in scripts, table
        assert datetime.date.fromisoformat(table.date) <= datetime.date.today(), table
    names = Counter(table.name for table in found)
    assert [name for name, times in names.items() if times > 1] == []
    for page in pages():
        text = page.read_text(encoding="utf-8")
        blocks = BLOCK.findall(text)
        assert [first for first, _, last in blocks if first != last] == []
        assert all(len(list(table_parts(inside))) == 1 for _, inside, _ in blocks), page
        own = [table for table in found if table.page == page.relative_to(ROOT).as_posix()]
        assert len(blocks) == len(own) == text.count("<!-- measured "), page


def test_every_table_of_numbers_is_written_by_a_script() -> None:
    assert is_of_numbers(TABLE)
    unmarked = [
        (page.name, table[0])
        for page in pages()
        for table in table_parts(BLOCK.sub("", page.read_text(encoding="utf-8")))
        if is_of_numbers(table)
    ]
    assert unmarked == []


def test_scripts_and_what_they_measure_exist_and_scripts_of_the_documentation_write_their_tables() -> None:
    for script, paths in measured_paths().items():
        assert [path for path in paths if not (ROOT / path).exists()] == [], script
    by_script = {table.script for table in measured_tables()}
    assert by_script == set(measured_paths())
    writers = re.compile(r"\b(emit|marked|write_table)\(")
    for script in by_script:
        if script.startswith("docs/"):
            texts = [
                (ROOT / path).read_text(encoding="utf-8")
                for path in measured_paths()[script]
                if path.endswith(".py")
            ]
            others = [(ROOT / "docs" / "make_full_information.py").read_text(encoding="utf-8")]
            assert any(writers.search(text) for text in [*texts, *others * ("information" in script)]), script


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one script, one measured file and one page, all in one commit."""
    for name in ("docs", "src"):
        (tmp_path / name).mkdir()
    (tmp_path / PATHS).write_text('[scripts]\n"docs/make.py" = ["src"]\n', encoding="utf-8")
    (tmp_path / "docs" / "make.py").write_text("", encoding="utf-8")
    (tmp_path / "src" / "law.py").write_text("SCALE = 1\n", encoding="utf-8")
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    page = "\n".join([marked("errors", "docs/make.py", TABLE, tmp_path), "", "Words.", ""])
    (tmp_path / "docs" / "page.md").write_text(page, encoding="utf-8")
    commit(tmp_path)
    return tmp_path


def git(root: Path, *arguments: str) -> str:
    own = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    return subprocess.run(
        ["git", "-C", root, *own, *arguments], check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-qm", "change")


def test_a_table_is_older_once_what_it_measures_has_changed(repository: Path) -> None:
    assert list(stale_tables(repository)) == []
    (repository / "src" / "law.proof.md").write_text("Words are not code.\n", encoding="utf-8")
    (repository / "README.md").write_text("Elsewhere.\n", encoding="utf-8")
    commit(repository)
    assert list(stale_tables(repository)) == []
    (repository / "src" / "law.py").write_text("SCALE = 2\n", encoding="utf-8")
    commit(repository)
    (line,) = stale_tables(repository)
    assert line.startswith("docs/page.md: errors; measured ")
    assert "by docs/make.py, 1 later change of what it measures" in line
    assert line.endswith(git(repository, "rev-parse", "--short", "HEAD"))
    page = repository / "docs" / "page.md"
    page.write_text(marked("errors", "docs/make.py", TABLE, repository), encoding="utf-8")
    assert list(stale_tables(repository)) == []


def test_a_commit_that_is_not_in_the_repository_is_compared_by_its_date(repository: Path) -> None:
    page = repository / "docs" / "page.md"
    text = re.sub(r"at [0-9a-f]+ on ", "at 00000000 on ", page.read_text(encoding="utf-8"))
    page.write_text(re.sub(r"on \d{4}-\d\d-\d\d", "on 2020-01-01", text), encoding="utf-8")
    assert len(list(stale_tables(repository))) == 1
    page.write_text(re.sub(r"on \d{4}-\d\d-\d\d", f"on {datetime.date.today()}", text), encoding="utf-8")
    assert list(stale_tables(repository)) == []


def test_without_a_repository_nothing_is_said(repository: Path) -> None:
    (repository / ".git").rename(repository / "elsewhere")
    (repository / "src" / "law.py").write_text("SCALE = 2\n", encoding="utf-8")
    assert list(stale_tables(repository)) == []


def test_a_script_writes_between_its_markers_and_nowhere_else(repository: Path) -> None:
    page = repository / "docs" / "page.md"
    write_table(page, "errors", "docs/make.py", [*TABLE[:2], "| 10 | 4.0 |"])
    text = page.read_text(encoding="utf-8")
    assert "| 10 | 4.0 |\n\n<!-- end of errors -->\n\nWords.\n" in text
    assert "3.2" not in text
    with pytest.raises(ValueError, match="does not have one place for the table other"):
        write_table(page, "other", "docs/make.py", TABLE)
    with pytest.raises(ValueError, match=r"for the table errors of docs/another\.py"):
        write_table(page, "errors", "docs/another.py", TABLE)
    assert page.read_text(encoding="utf-8") == text


def test_a_table_that_is_not_renewed_keeps_its_date_without_a_change(repository: Path) -> None:
    page = repository / "docs" / "page.md"
    before = re.sub(r"on \d{4}-\d\d-\d\d", "on 2020-01-01", page.read_text(encoding="utf-8"))
    page.write_text(before, encoding="utf-8")
    write_table(page, "errors", "docs/make.py", TABLE, renew=False)
    assert page.read_text(encoding="utf-8") == before
    write_table(page, "errors", "docs/make.py", TABLE[:2], renew=False)
    assert "2020-01-01" not in page.read_text(encoding="utf-8")


def test_readers_of_the_site_see_when_a_table_was_measured(repository: Path) -> None:
    text = shown_stamps((repository / "docs" / "page.md").read_text(encoding="utf-8"))
    assert "<!--" not in text
    assert re.search(r'\| 3.2 \|\n\n<p class="measured" markdown="span">Measured \d{4}-\d\d-\d\d at `', text)


def test_the_price_of_joint_has_the_lines_of_its_page() -> None:
    places = [(name, text, level) for name, queries in make_dhc_joint.QUERIES.items() for text in queries for level in make_dhc_joint.DIGITS]  # fmt: skip
    draws = [dict.fromkeys(places, (10.0, 8.0)), dict.fromkeys(places, (12.0, 12.0))]
    lines = make_dhc_joint.price_table(draws)
    assert lines[-1] == "| housing units, tenure and vacancy (35) | " + " | ".join(["11.00 ± 1.00 | -1.00 ± 1.00"] * 3) + " |"  # fmt: skip
    assert make_dhc_joint.price_table(draws[:1])[-1].endswith("| 10.00 | -2.00 | 10.00 | -2.00 | 10.00 | -2.00 |")  # fmt: skip
    page = (ROOT / "docs" / "dhc.md").read_text(encoding="utf-8")
    names = [line.split("|")[1] for line in lines[2:]]
    assert all(page.count(f"|{name}|") == 2 for name in names)


def test_strengths_of_one_defense_stand_in_one_line_of_the_page() -> None:
    columns = (
        "putative_percent", "precision", "error_block", "error_tract", "race_error_block", "race_error_tract",
    )  # fmt: skip
    rows = {name: dict.fromkeys(columns, value) for name, value in (("round:3", 1.0), ("round:5", 2.0), ("topdown:pl94-us", 3.0))}  # fmt: skip
    rows["round:5"]["precision"] = None
    assert make_attack.line_of(rows, ("round:3", "round:5")) == "| `round:3`, `round:5` | 1.0, 2.0 | 1.0, none | 1.00, 2.00 | 1.00, 2.00 |"  # fmt: skip
    assert make_attack.line_of(rows, ("topdown:pl94-us",)) == "| `topdown:pl94-us` | 3.0 | 3.0 | 3.00 (the same) | 3.00 |"  # fmt: skip
