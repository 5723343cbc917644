"""The gate of equal outputs: every product, verb and page on a small synthetic population, and hashes of all that is written or printed.

    python tests/support/output_hashes.py            compare with tests/golden/output_hashes.txt; exit 1 where a line differs
    python tests/support/output_hashes.py --write    write that list anew; the commit says why a line changed

The commands are in tests/golden/output_cases.txt; noise is drawn under test keys. Dates, times, durations, versions, memory, and commitments under random
keys are masked. Of Parquet files the columns are hashed as the values that they hold, not how they are coded and what a library writes beside them.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1]))

GOLDEN = Path(__file__).parents[1] / "golden"
CASES, HASHES = GOLDEN / "output_cases.txt", GOLDEN / "output_hashes.txt"

MASKS = [
    (re.compile(rb"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?(Z|[+-]\d\d:?\d\d| UTC)?"), b"DATE"),
    (re.compile(rb"\d+ [A-Z][a-z]+ 20\d\d(, \d\d:\d\d( UTC)?)?"), b"DATE"),
    (re.compile(rb"\b[0-9a-f]{64}\b"), b"DIGEST"),
    (re.compile(rb"\b\d+(\.\d+)? ?(s|seconds|ms|min|minutes|MiB|GiB|MB|GB)\b"), b"AMOUNT"),
]
MASKED_KEYS = {
    "versions",
    "seconds",
    "stages",
    "started",
    "ended",
    "finished",
    "time",
    "times",
    "machine",
    "memory",
    "commitments",
    "run_id",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--group", help="run one group in the current folder and print its lines")
    parser.add_argument("--keep", type=Path, help="folder that keeps the outputs")
    options = parser.parse_args()
    if options.group:
        for line in group_lines(options.group):
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
        return
    with tempfile.TemporaryDirectory() as temporary:
        work = options.keep or Path(temporary)
        with ThreadPoolExecutor(max_workers=2) as pool:
            lines = [line for part in pool.map(lambda name: run_group(work, name), groups()) for line in part]
    if options.write:
        HASHES.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return
    sys.exit(compare(HASHES.read_text(encoding="utf-8").splitlines(), lines))


def compare(expected: list[str], lines: list[str]) -> int:
    """Print the names whose hashes differ, or that only one list has; 1 where there are any."""
    before, now = ({line.split("  ", 1)[1]: line for line in part} for part in (expected, lines))
    differing = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
    for name in differing:
        state = "missing" if name not in now else "new" if name not in before else "changed"
        sys.stdout.write(f"{state}: {name}\n")
    sys.stdout.write(f"{len(now)} outputs, {len(differing)} differ from {HASHES.name}\n")
    return int(bool(differing))


def groups() -> dict[str, list[str]]:
    """Commands by group."""
    parts: dict[str, list[str]] = {}
    for line in CASES.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            parts[line.strip("[]")] = []
        elif line and not line.startswith("#"):
            list(parts.values())[-1].append(line)
    return parts


def run_group(work: Path, name: str) -> list[str]:
    """Lines of one group, which runs in a process and a folder of its own."""
    folder = work / name
    folder.mkdir(parents=True)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("CENSAFE")}
    environment |= {
        "COLUMNS": "120",
        "SOURCE_DATE_EPOCH": "0",
        "NO_COLOR": "1",
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
    }
    environment["PYTHONPATH"] = os.pathsep.join(
        [str(Path(__file__).parents[2] / "src"), os.environ.get("PYTHONPATH", "")]
    )
    done = subprocess.run(
        [sys.executable, Path(__file__).resolve(), "--group", name],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def group_lines(name: str) -> Iterator[str]:
    """Run the commands of a group in this process; a line for each output: what is printed, and each file that is new or changed."""
    seen: dict[Path, tuple[int, int]] = {}
    for case in groups()[name]:
        start = time.perf_counter()
        printed = run_case(case)
        sys.stderr.write(f"{time.perf_counter() - start:6.1f} s  {case}\n")
        yield f"{digest_of_text(printed)}  {name}: {case}"
        for path in sorted(Path().rglob("*")):
            if path.is_file() and seen.get(path) != (stamp := (path.stat().st_mtime_ns, path.stat().st_size)):
                seen[path] = stamp
                if "ledger" not in path.name and (digest := file_digest(path)):
                    yield f"{digest}  {name}/{path.as_posix()}"


def run_case(case: str) -> bytes:
    """What a command prints, or that its exit code is not the expected one."""
    from censafe.cli import main as command

    marks = re.match(r"\{exit (\d+)\} ", case)
    if case.startswith("{small"):
        from censafe.products.topdown.configuration.config import load_config
        from support.topdown_shipped import write_small

        _, folder, config = case.strip("{}").split()
        write_small(Path(folder), load_config(config))
        return b""
    words = shlex.split(case[marks.end() :] if marks else case)
    sys.argv = ["censafe", *words]
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    code: Any = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors := io.StringIO()):
        try:
            command()
        except SystemExit as stop:
            code = stop.code or 0
    if code != (int(marks[1]) if marks else 0):
        sys.stderr.write(f"{case}: exit code {code}\n{errors.getvalue()[-2000:]}")
        return f"FAILED with exit code {code}".encode()
    return out.buffer.getvalue()  # type: ignore[attr-defined]


def digest_of_text(text: bytes) -> str:
    for pattern, word in MASKS:
        text = pattern.sub(word, text)
    return hashlib.sha256(text).hexdigest()[:24]


def file_digest(path: Path) -> str:
    """Digest of a file without what differs between two runs of one version; empty for what is nothing but that."""
    if path.suffix == ".parquet":
        return column_digest(path)
    if path.suffix == ".xlsx":
        with zipfile.ZipFile(path) as book:
            parts = [
                name.encode() + book.read(name)
                for name in sorted(book.namelist())
                if name != "docProps/core.xml"
            ]
        return digest_of_text(b"".join(parts))
    if path.suffix == ".json":
        content = json.loads(path.read_bytes())
        return digest_of_text(json.dumps(masked(content), indent=1).encode())
    return digest_of_text(path.read_bytes())


def masked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: "MASKED" if key in MASKED_KEYS else masked(part) for key, part in value.items()}
    return [masked(part) for part in value] if isinstance(value, list) else value


def column_digest(path: Path) -> str:
    digest = hashlib.sha256()
    with pq.ParquetFile(path) as file:
        for name, column in zip(file.schema_arrow.names, file.read().columns, strict=True):
            if pa.types.is_dictionary(column.type):
                column = column.cast(column.type.value_type)
            digest.update(f"{name} {column.type}\n".encode())
            column, sink = column.combine_chunks(), pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, pa.schema([("column", column.type)])) as writer:
                writer.write_table(pa.table({"column": column}))
            digest.update(sink.getvalue())
    return digest.hexdigest()[:24]


if __name__ == "__main__":
    main()
