"""SafeTab's records on every engine: the same findings, records, combinations of codes and examples as on DuckDB."""

import csv
import random
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

import pytest

from censafe.model.engine import Engine, EngineChoice, fetch
from censafe.population.detailed.source import RecordScope, open_safetab
from censafe.tabulation.engine import connect
from support.safetab_inputs import CODES, Rows, valid_rows, write_input

Product = Literal["safetab-p", "safetab-h"]


def broken(rows: Rows, chance: random.Random, copies: int, faults: float) -> Rows:
    """Copies of some rows, a share of them with a value that no layout allows."""
    made = [list(chance.choice(rows)) for _ in range(copies)]
    for row in made:
        if chance.random() < faults:
            row[chance.randrange(len(row))] = chance.choice(["", "x", "99", "Null", "6843"])
    return made


def results(folder: Path, product: Product, engine: Engine, examples: Path) -> dict[str, Any]:
    scope = RecordScope(product, "csv", ("44", "72"), CODES, 8)
    with closing(open_safetab(folder, scope, backend=engine, work=folder.parent / "work")) as source:
        data = source.load(examples=examples)
        rows = fetch(data.records).to_pylist()
        combos = [tuple(codes) for codes in data.combos.tolist()]
        with examples.open() as stream:
            kinds = Counter(tuple(row[:3]) for row in csv.reader(stream))
        return {
            "findings": sorted(finding.text() for finding in data.findings),
            "numbers": (data.rows, data.left_out, data.seen.tolist(), len(combos), kinds),
            "records": Counter((combos[row.pop("COMBO")], *sorted(row.items())) for row in rows),
        }


@pytest.mark.parametrize(("product", "name"), [("safetab-p", "persons"), ("safetab-h", "households")])
def test_records_with_faults(tmp_path: Path, choice: EngineChoice, product: Product, name: str) -> None:
    tables = valid_rows()
    tables[name] = broken(tables[name], random.Random(7), 300, 0.2)
    folder = write_input(tmp_path / "data", tables, kind="parquet")
    found = {}
    for one in (EngineChoice(), choice):
        engine = connect(tmp_path / f"engine-{one.name}", choice=one)
        found[one.name] = results(folder, product, engine, tmp_path / f"examples-{one.name}.csv")
        engine.disconnect()
    expected = found["duckdb"]
    assert sum(expected["records"].values()) > 100
    assert len(expected["findings"]) > 5
    assert expected == found[choice.name]
