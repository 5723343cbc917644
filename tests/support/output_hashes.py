"""Every shipped configuration under a test key, and the hashes of all that it writes: equal before and after a change of form.

    python tests/support/output_hashes.py FOLDER [--persons N] [--inputs FOLDER] > hashes.txt

Two lists are compared with ``diff``. Where both versions must read the same records, ``--inputs`` names a folder in which the first call
leaves them for the next. Manifest and certificate hold times and versions and are left out; of Parquet files the
columns are hashed as the values that they hold, not how they are coded and what a library writes beside them.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1]))

_COMMAND = Path(sys.executable).parent / "censafe"
_TWO_STATES = ("--set", "reader=csv", "--set", "run_pr=false", "--set", "state_filter_us=44,50")
_NOT_COMPARED = {".html", ".json", ".xlsx", ".svg"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--persons", type=int, default=1_000_000)
    parser.add_argument("--inputs", type=Path)
    chosen = parser.parse_args()
    for name, out in _runs(chosen.folder, chosen.inputs or chosen.folder, chosen.persons):
        for path, digest in _digests(out):
            sys.stdout.write(f"{digest}  {name}/{path}\n")
        sys.stdout.flush()


def _runs(folder: Path, inputs: Path, persons: int) -> Iterator[tuple[str, Path]]:
    """Each configuration with the folder of its finished run."""
    records, island = inputs / "records", inputs / "island"
    _synthesize(records, persons, "44,50", "all", "--format", "csv")
    _synthesize(island, persons // 4, "72", "all", "--format", "csv")
    yield _run(folder, "phsafe", "sdhc-us", records, "--set", "reader=csv", "--set", "state_filter=44,50")
    _call("estimate", folder / "sdhc-us-out", "--set", "interval=shortest")
    yield "sdhc-us-estimates", folder / "sdhc-us-out" / "estimates"
    yield _run(folder, "phsafe", "sdhc-pr", island, "--set", "reader=csv")
    yield _run(folder, "safetab-p", "ddhca", records, *_TWO_STATES)
    totals = ("--t1", folder / "ddhca-out")
    yield _run(folder, "safetab-h", "ddhcb", records, *_TWO_STATES, *totals)
    yield from _topdown(folder, inputs, persons)


def _synthesize(data: Path, persons: int, states: str, layout: str, *options: object) -> None:
    if not data.exists():
        _call("synth", data, "--persons", persons, "--states", states, "--layout", layout, *options)


def _topdown(folder: Path, inputs: Path, persons: int) -> Iterator[tuple[str, Path]]:
    from censafe.products.topdown.configuration.config import load_config
    from support.topdown_shipped import write_small

    for name, layout, state, settings in (
        ("pl94-us", "pl94", "50", ("--set", "root=State")),
        ("pl94-pr", "pl94", "72", ()),
        ("e2e-1940", "e2e-1940", "44,50", ()),
    ):
        data = inputs / f"{name}-data"
        _synthesize(data, persons, state, layout)
        yield _run(folder, "topdown", name, data, *settings)
    for name in ("pl94-tracts", "blocks-16"):
        yield _run(folder, "topdown", name, write_small(folder / f"{name}-data", load_config(name)))
    _call(
        "estimate", folder / "blocks-16-out", "--set", "information=lower", "--intervals", "--simulations", 1
    )
    yield "blocks-16-lower", folder / "blocks-16-out"


def _run(folder: Path, product: str, name: str, data: Path, *settings: object) -> tuple[str, Path]:
    out = folder / f"{name}-out"
    _call("run", product, name, data, out, "--test-key", 1, *settings)
    return name, out


def _call(*words: object) -> None:
    subprocess.run([_COMMAND, *map(str, words), "--quiet"], check=True, stdout=subprocess.DEVNULL)


def _digests(out: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(out.rglob("*")):
        if path.is_file() and path.suffix not in _NOT_COMPARED:
            digest = _columns(path) if path.suffix == ".parquet" else hashlib.sha256(path.read_bytes())
            yield path.relative_to(out).as_posix(), digest.hexdigest()[:32]


def _columns(path: Path) -> hashlib._Hash:
    found = hashlib.sha256()
    with pq.ParquetFile(path) as file:
        for name, column in zip(file.schema_arrow.names, file.read().columns, strict=True):
            if pa.types.is_dictionary(column.type):
                column = column.cast(column.type.value_type)
            found.update(f"{name} {column.type}\n".encode())
            column, sink = column.combine_chunks(), pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, pa.schema([("column", column.type)])) as writer:
                writer.write_table(pa.table({"column": column}))
            found.update(sink.getvalue())
    return found


if __name__ == "__main__":
    main()
