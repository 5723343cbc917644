"""The gate of equal outputs: every configuration, product, verb and page on small synthetic populations, and hashes of all that is written or printed.

    python tests/support/output_hashes.py              compare with tests/golden/output_hashes.txt; exit 1 where a line differs
    python tests/support/output_hashes.py --write      write that list again; the commit says why a line changed
    python tests/support/output_hashes.py --keep DIR   also keep the outputs in DIR, and in DIR/texts what was hashed: diff -r of two of them shows a difference
    python tests/support/output_hashes.py --elsewhere  in another time zone, language, home and temporary folder, on one core: the same hashes

The commands are in tests/golden/output_cases.txt; noise is drawn under test keys. What two runs of one version do not have in common is masked
(tests/support/output_text.py).
"""

import argparse
import contextlib
import hashlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.output_text import Normalizer

TESTS = Path(__file__).resolve().parents[1]
CASES, HASHES = TESTS / "golden" / "output_cases.txt", TESTS / "golden" / "output_hashes.txt"
FAILED = "failed"
_SHOWN = 100
_CASE = re.compile(
    r"(?P<name>[\w.-]+): (?:\{exit (?P<code>\d+)\} )?(?:\{only (?P<only>\S+)\} )?(?P<command>.+)"
)
_PROGRESS = re.compile(r"^  .*(\d\.\d s|% done.*)$")


@dataclass(frozen=True)
class Case:
    """A command of the gate.

    Args:
        name: in the list of hashes.
        command: without ``censafe``.
        code: expected exit code.
        only: pattern of the files that are hashed; empty for all, and what is printed.
    """

    name: str
    command: str
    code: int = 0
    only: str = ""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="write the list of hashes")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="new folder that keeps the outputs")
    parser.add_argument("--groups", metavar="A,B", help="run only these groups of cases")
    parser.add_argument("--times", action="store_true", help="print the seconds of every case")
    parser.add_argument("--elsewhere", action="store_true", help="run in another environment")
    parser.add_argument("--run-group", metavar="NAME", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run_group:
        run_group(options.run_group, times=options.times, keep=options.keep is not None)
        return
    cases = groups(CASES.read_text(encoding="utf-8"))
    chosen = options.groups.split(",") if options.groups else list(cases)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="hashes ") as temporary:
        work = (options.keep or Path(temporary)).resolve()
        arguments = [*["--times"] * options.times, *["--keep=."] * (options.keep is not None)]
        with ThreadPoolExecutor(max_workers=1 if options.elsewhere else 2) as pool:
            parts = pool.map(lambda name: start_group(work, name, arguments, options.elsewhere), chosen)
            lines = [line for part in parts for line in part]
    seconds = time.perf_counter() - start
    stored = HASHES.read_text(encoding="utf-8").splitlines() if HASHES.exists() else []
    left_out = {case.name for name, part in cases.items() if name not in chosen for case in part}
    unchanged = [line for line in stored if _place(line)[0] in left_out]
    differing = differences([line for line in stored if _place(line)[0] not in left_out], lines)
    report(differing, {case.name: case.command for part in cases.values() for case in part})
    sys.stdout.write(f"{len(lines)} outputs in {seconds:.0f} s, {len(differing)} differ from {HASHES.name}\n")
    if options.write and all(state != FAILED for state, _, _ in differing):
        order = {
            name: place for place, name in enumerate(case.name for part in cases.values() for case in part)
        }
        merged = sorted([*unchanged, *lines], key=lambda line: order[_place(line)[0]])
        HASHES.write_text("\n".join(merged) + "\n", encoding="utf-8")
    elif differing:
        sys.stdout.write(
            "To see a difference, run this with --keep A here and with --keep B in the tree before the change, then diff -r A/texts B/texts.\n"
            "If it is intended, run make hashes-write and commit the list with the reason.\n"
        )
        sys.exit(1)


def report(differing: Sequence[tuple[str, str, str]], commands: Mapping[str, str]) -> None:
    """Print the lines that differ, and the commands of their cases."""
    for state, name, file in differing[:_SHOWN]:
        sys.stdout.write(f"{state:<8} {name}  {file}\n")
    if len(differing) > _SHOWN:
        sys.stdout.write(f"and {len(differing) - _SHOWN} more\n")
    for name in dict.fromkeys(name for _, name, _ in differing):
        sys.stdout.write(f"{name}: censafe {commands.get(name, '(no longer a case)')}\n")


def differences(expected: Sequence[str], lines: Sequence[str]) -> list[tuple[str, str, str]]:
    """State (changed, new, missing or failed), case and file of every line that only one of the lists has."""
    before, now = ({_place(line): line for line in part} for part in (expected, lines))
    states: list[tuple[str, str, str]] = []
    for place in dict.fromkeys([*now, *before]):
        if now.get(place, "").endswith(FAILED):
            states.append((FAILED, *place))
        elif before.get(place) != now.get(place):
            state = "missing" if place not in now else "new" if place not in before else "changed"
            states.append((state, *place))
    return states


def _place(line: str) -> tuple[str, str]:
    """Case and file of a line of the list."""
    case, rest = line.split("  ", 1)
    return case, rest.rsplit("  ", 1)[0]


def groups(text: str) -> dict[str, list[Case]]:
    """Cases by group; a group runs in one process and one folder."""
    parts: dict[str, list[Case]] = {}
    names: set[str] = set()
    for line in text.splitlines():
        if line.startswith("["):
            parts[line.strip("[]")] = cases = []
        elif line and not line.startswith("#"):
            match = _CASE.fullmatch(line)
            if match is None or match["name"] in names:
                message = f"{CASES.name}: '{line}' is not 'NAME: COMMAND' with a name of its own"
                raise ValueError(message)
            names.add(match["name"])
            cases.append(Case(match["name"], match["command"], int(match["code"] or 0), match["only"] or ""))
    return parts


def start_group(work: Path, name: str, arguments: Sequence[str], elsewhere: bool) -> list[str]:
    """Lines of a group that runs in a process and a folder of its own."""
    folder = work / name
    folder.mkdir(parents=True)
    command = [sys.executable, str(Path(__file__).resolve()), "--run-group", name, *arguments]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("CENSAFE")}
    environment |= {"COLUMNS": "120", "NO_COLOR": "1", "MPLBACKEND": "agg"}
    environment["PYTHONPATH"] = os.pathsep.join([str(TESTS.parent / "src"), os.environ.get("PYTHONPATH", "")])
    environment |= {
        "OPENBLAS_NUM_THREADS": "1",
        "OPENBLAS_CORETYPE": "Nehalem",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    }
    environment.pop("FORCE_COLOR", None)
    if elsewhere:
        home = work / "another home"
        home.mkdir(exist_ok=True)
        environment |= {"HOME": str(home), "TMPDIR": str(home), "TZ": "Pacific/Kiritimati"}
        environment |= {"LANG": "tr_TR", "LC_ALL": "C", "PYTHONHASHSEED": "7"}
        command = ["taskset", "-c", "0", *command]
    subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=True)
    return (work / f"{name}.txt").read_text(encoding="utf-8").splitlines()


def run_group(name: str, *, times: bool, keep: bool) -> None:
    """Run the cases of a group in the current folder; hashes go to a file, and what was hashed to files, in the folder above."""
    folder = Path.cwd()
    normalizer = Normalizer(folder)
    stamps: dict[Path, tuple[int, int]] = {}
    hashes: dict[str, str] = {}
    with (folder.parent / f"{name}.txt").open("w", encoding="utf-8") as lines:
        for case in groups(CASES.read_text(encoding="utf-8"))[name]:
            start = time.perf_counter()
            code, printed, messages = run_case(case.command)
            if times:
                sys.stderr.write(f"{time.perf_counter() - start:6.1f} s  {case.name}\n")
            if code != case.code:
                sys.stderr.write(
                    f"{case.name}: censafe {case.command}\nexit code {code}\n{messages[-2000:]}\n"
                )
                lines.write(f"{case.name}  (printed)  {FAILED}\n")
                continue
            outputs = (
                {"(printed)": printed, "(messages)": without_progress(messages)} if not case.only else {}
            )
            changed = {
                path.as_posix(): path.read_bytes()
                for path in changed_files(stamps)
                if not case.only or path.match(case.only)
            }
            normalizer.digests |= {hashlib.sha256(content).hexdigest() for content in changed.values()}
            texts = {file: normalizer.printed(text) for file, text in outputs.items() if text}
            texts |= {file: normalizer.text(file, content) for file, content in changed.items()}
            for file, text in texts.items():
                digest = hashlib.sha256(text.encode()).hexdigest()[:24]
                if hashes.get(file) != digest or file in outputs:
                    hashes[file] = digest
                    lines.write(f"{case.name}  {file}  {digest}\n")
                    if keep:
                        kept = folder.parent / "texts" / case.name / file
                        kept.parent.mkdir(parents=True, exist_ok=True)
                        kept.write_text(text, encoding="utf-8")
            lines.flush()


def changed_files(stamps: dict[Path, tuple[int, int]]) -> list[Path]:
    """Files below the current folder that are new or were written again."""
    changed = []
    for path in sorted(Path().rglob("*")):
        if path.is_file():
            status = path.stat()
            if stamps.get(path) != (stamp := (status.st_mtime_ns, status.st_size)):
                stamps[path] = stamp
                changed.append(path)
    return changed


def run_case(command: str) -> tuple[int, str, str]:
    """Exit code of a command, what it prints, and its messages on standard error."""
    if command.startswith("{"):
        write_input(*command.strip("{}").split())
        return 0, "", ""
    from censafe.cli import main as censafe

    sys.argv = ["censafe", *shlex.split(command)]
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    code: Any = 0
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(messages := io.StringIO()):
        try:
            censafe()
        except SystemExit as stop:
            code = stop.code or 0
    return int(code), printed.buffer.getvalue().decode(), messages.getvalue()


def write_input(kind: str, folder: str, name: str) -> None:
    """Input that no command writes."""
    from censafe.products.topdown.configuration.config import load_config
    from support import own_records, phsafe_inputs, safetab_cef
    from support.safetab_folders import data_rows, write_folders
    from support.topdown_shipped import write_small

    if kind == "small":
        write_small(Path(folder), load_config(name))
    elif kind == "own":
        own_records.write_country(Path(folder), Path(name))
    elif name == "phsafe":
        phsafe_inputs.write_cef(Path(folder))
    else:
        folders, tables = write_folders(Path(folder)), data_rows()
        for product in ("p", "h"):
            folders.configure(product, reader="cef")
        for number, household in enumerate(tables["households"]):
            household[14] = "1454"[number % 4]
        safetab_cef.write_cef(Path(folder) / "cef", tables)


def without_progress(messages: str) -> str:
    """Messages without the lines that say how far a stage is and how long it took."""
    return "".join(
        line for line in messages.splitlines(keepends=True) if not _PROGRESS.match(line.rstrip("\n"))
    )


if __name__ == "__main__":
    main()
