"""The size of the project, and how many functions and files two runs pass.

    python tests/support/size.py [--traces] [--functions] [--write]

Code lines are lines with a token other than comment, white space and docstring, so that layout does not change them. With --traces a small S-DHC run and a small run of the
redistricting data are made under test keys, and every function of the package that they call (not at import) is counted once; --functions lists them by file,
and --write puts them by package into docs/architecture.md.
"""

import argparse
import ast
import io
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", action="store_true")
    parser.add_argument("--functions", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    rows = [*sizes()]
    if options.traces or options.functions or options.write:
        runs = traces()
        if options.write:
            write_traces(runs)
        for name, calls in runs.items():
            rows.append(
                (f"functions and files passed by {name}", f"{sum(map(len, calls.values())):,}, {len(calls)}")
            )
            if options.functions:
                rows += [(f"    {file}", ", ".join(sorted(names))) for file, names in sorted(calls.items())]
    for words, figure in rows:
        sys.stdout.write(f"| {words} | {figure} |\n")


def sizes() -> Iterator[tuple[str, str]]:
    """Rows of the table that need no run."""
    files = tracked("src/*.py")
    yield "code lines of src (no blank, comment, docstring)", f"{sum(map(code_lines, files)):,}"
    yield "all lines of src", f"{sum(map(all_lines, files)):,}"
    yield "files of src", f"{len(files):,}"
    yield "modules with one importer", f"{sum(len(by) == 1 for by in importers(files).values()):,}"
    yield "lines of tests", f"{sum(map(all_lines, tracked('tests/*.py'))):,}"
    others = [
        *tracked("docs/*.py"),
        *tracked("benchmarks/*.py"),
        *tracked("campaign/*.py"),
        *tracked("packaging/*.py"),
    ]
    yield "lines of docs/*.py, benchmarks, campaign, packaging", f"{sum(map(all_lines, others)):,}"


def tracked(pattern: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", pattern], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [path for name in listed.stdout.splitlines() if (path := ROOT / name).exists()]


def all_lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def code_lines(path: Path) -> int:
    """Lines of a file that hold code."""
    text = path.read_text(encoding="utf-8")
    words: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and ast.get_docstring(node) is not None
        ):
            words |= set(range(body[0].lineno, body[0].end_lineno + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - words)


def importers(files: list[Path]) -> dict[str, set[str]]:
    """By module of the package, the modules of the package that import it; packages without own code are left out."""
    names = {module_name(path): path for path in files}
    by: dict[str, set[str]] = {name: set() for name, path in names.items() if path.name != "__init__.py"}
    for name, path in names.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                for target in {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}:
                    if target in by:
                        by[target].add(name)
    return by


def module_name(path: Path) -> str:
    return path.relative_to(SOURCE).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")


def traces() -> dict[str, dict[str, set[str]]]:
    """By run, the functions of the package that it calls, by file."""
    from censafe import configuration, release, synthesize

    for name in map(module_name, tracked("src/*.py")):  # so that no class is defined while a run is traced
        if not name.endswith("__main__"):
            import_module(name)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        synthesize(folder / "records", persons=1000, states=["44"], layout="phsafe", file_format="csv")
        synthesize(folder / "blocks", persons=1000, states=["44"], layout="pl94")
        households = configuration("phsafe", "sdhc-us", reader="csv", state_filter=["44"])
        redistricting = configuration("topdown", "pl94-us", root="State")
        return {
            "a PHSafe count": calls_of(
                lambda: release(households, folder / "records", folder / "sdhc", test_key=1)
            ),
            "a PL 94-171 cell": calls_of(
                lambda: release(redistricting, folder / "blocks", folder / "pl94", test_key=1)
            ),
        }


def write_traces(runs: dict[str, dict[str, set[str]]]) -> None:
    """Functions and files that the runs pass, by package, into the page of the structure."""
    sys.path.insert(0, str(ROOT / "docs"))
    measured = import_module("measured")
    counts: dict[str, list[tuple[int, int]]] = defaultdict(lambda: [(0, 0)] * len(runs))
    for column, calls in enumerate(runs.values()):
        for file, names in calls.items():
            package = file.rpartition("/")[0] or "censafe"
            package = "/".join(package.split("/")[:2])
            functions, files = counts[package][column]
            counts[package][column] = functions + len(names), files + 1
    lines = [f"| package | {' | '.join(runs)} |", f"|---|{'---|' * len(runs)}"]
    for package, of_runs in sorted(counts.items()):
        lines.append(
            f"| `{package}` | {' | '.join(f'{one}, {two}' if one else '' for one, two in of_runs)} |"
        )
    totals = [(sum(map(len, calls.values())), len(calls)) for calls in runs.values()]
    lines.append(f"| all | {' | '.join(f'{functions:,}, {files}' for functions, files in totals)} |")
    measured.write_table(ROOT / "docs" / "architecture.md", "traces", "tests/support/size.py", lines)


def calls_of(run: Callable[[], object]) -> dict[str, set[str]]:
    import threading

    codes: Counter[Any] = Counter()

    def profile(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            codes[frame.f_code] += 1

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    calls: dict[str, set[str]] = defaultdict(set)
    for code in codes:
        if code.co_filename.startswith(str(SOURCE)) and not code.co_name.startswith("<"):
            calls[Path(code.co_filename).relative_to(SOURCE / "censafe").as_posix()].add(code.co_qualname)
    return calls


if __name__ == "__main__":
    main()
