"""Rewrite the measured tables of docs/attack.md.

    .venv/bin/python docs/make_attack.py DIR [--table defenses|attack-state|attack-tracts]

`defenses`: 20,000 synthetic persons, every defense attacked. `attack-state`: a synthetic state of the size of Vermont, by tables of blocks.
`attack-tracts`: every eighth tract of that state, by tables of blocks and with those of tracts. What is in DIR already is used.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from measured import ROOT, write_table

from censafe import compare_defenses, reconstruct, synthesize
from censafe.attack.reading import read_people

LINES: Final = (
    ("swap:LO",), ("topcode:75",), ("swap:permutation:p=0.05", "swap:permutation:p=0.5"), ("cellkey",), ("ranges",),
    ("threshold:30", "threshold:100"), ("swap:targeted:rate=0.05", "swap:targeted:rate=0.20"), ("suppress:1980",),
    ("suppress:threshold=3", "suppress:threshold=5"), ("random-round:3", "random-round:5"), ("round:3", "round:5", "round:10"),
    ("swap:HI",), ("ages:5", "ages:10"), ("merge:100", "merge:500"), ("races:7", "races:3"), ("topdown:dhc-us",),
    ("topdown:pl94-us",),
)  # fmt: skip
"""Defenses by line of the table, strengths of one kind together."""
PARTIAL: Final = {"exact redistricting data": "race, origin, voting age alone", "topdown:pl94-us": "the same"}

CERTAIN: Final = "nonmodal unique, zero variability"


def line_of(rows: Mapping[str, Mapping[str, Any]], names: Sequence[str]) -> str:
    """One line of the table."""
    kind = "race_error" if names[0] in PARTIAL else "error"
    cells = [
        ", ".join("none" if rows[name][column] is None else f"{rows[name][column]:.{places}f}" for name in names)
        for column, places in (("putative_percent", 1), ("precision", 1), (f"{kind}_block", 2), (f"{kind}_tract", 2))
    ]  # fmt: skip
    if names[0] in PARTIAL:
        cells[2] += f" ({PARTIAL[names[0]]})"
    stem = names[0].rpartition(":")[0]
    words = [names[0], *(name.removeprefix(f"{stem}:") if "=" in name else name for name in names[1:])]
    title = names[0] if names[0].startswith("exact") else ", ".join(f"`{word}`" for word in words)
    return f"| {title} | {' | '.join(cells)} |"


def defenses_table(folder: Path) -> list[str]:
    """Every defense attacked and measured."""
    data = folder / "data"
    if not data.exists():
        synthesize(data, persons=20_000, states=("50",), layout="dhc", seed=1)
    names = [name for line in LINES for name in line]
    result = compare_defenses(data, folder / "compared", names, variability=False)
    rows = {row["defense"]: row for row in result.frames()["defenses"].arrow.to_pylist()}
    return [
        "| | matched, % | right of these, % | mean error of a block count | of a tract count |",
        "|---|---|---|---|---|",
        line_of(rows, ("exact tables",)),
        *(line_of(rows, line) for line in LINES[:-1]),
        line_of(rows, ("exact redistricting data",)),
        line_of(rows, LINES[-1]),
    ]


def state_data(folder: Path) -> Path:
    """Records of the state, made where they are not there."""
    data = folder / "state"
    if not data.exists():
        synthesize(data, persons=643_077, states=("50",), layout="dhc", seed=1)
    return data


class AttackFrames:
    """The frames of one attack, made where they are not there."""

    def __init__(self, data: Path, out: Path, mode: str) -> None:
        if not (out / "report.html").exists():
            reconstruct(data, out, mode=mode)
        self.rows = {
            name: pa_csv.read_csv(out / f"{name}.csv").to_pylist()
            for name in ("agreement", "reidentification", "uniques", "variability", "variability_percentiles")
        }

    def agreement(self, column: str) -> str:
        """Share of the persons who are in the reconstruction."""
        return f"{self.rows['agreement'][0][column]:.1f}%"

    def certain(self) -> str:
        """Share of the populated blocks with one solution."""
        blocks = [row["variability"] for row in self.rows["variability"] if row["population"]]
        return f"{100 * sum(value == 0 for value in blocks) / len(blocks):.1f}%"

    def percentiles(self) -> str:
        """Variability at the upper shares of the blocks."""
        by_percentile = {
            row["percentile"]: row["variability"] for row in self.rows["variability_percentiles"]
        }
        return ", ".join(f"{by_percentile[step]:.1f}" for step in (75, 80, 85, 90, 95, 100))

    def rate(self, population: str, column: str, data: str = "reconstruction") -> float:
        """A rate of the exact attacker in blocks of every size."""
        row_key = ("exact", data, population, "all")
        keys = ("attacker", "data", "population_attacked", "block_size")
        (row,) = (row for row in self.rows["reidentification"] if tuple(row[key] for key in keys) == row_key)
        return float(row[column])

    def precisions(self, population: str) -> str:
        """Of the attack, of the modal and of the proportional guesser."""
        sources = ("reconstruction", "modal guesser", "proportional guesser, target left out")
        return ", ".join(f"{self.rate(population, 'precision', source):.1f}" for source in sources)


def state_table(folder: Path) -> list[str]:
    """The state beside the published attack."""
    own = AttackFrames(state_data(folder), folder / "state-attack", "b")
    alone, *by_size = (row["unique_percent"] for row in own.rows["uniques"])
    everybody = ", ".join(f"{own.rate('all', column):.{digits}f}" for column, digits in (("putative_percent", 0), ("confirmed_percent", 1), ("precision", 1)))  # fmt: skip
    return [
        "| | synthetic Vermont, block tables | 2010, published |",
        "|---|---|---|",
        f"| persons alone with sex and year of age | {alone:.1f}% | 43.87% |",
        f"| in blocks of 1-9, 10-49, 50-99, 100-249, 250-499, 500-999, 1000+ | {', '.join(f'{one:.1f}' for one in by_size)} | 95.06, 79.05, 58.72, 34.06, 12.35, 3.89, 1.12 |",
        f"| in the reconstruction, by class of age | {own.agreement('binned_percent')} | 89.7% (blocks), 91.9% (with tract tables) |",
        f"| blocks with variability 0 | {own.certain()} | 70% |",
        f"| variability at 75, 80, 85, 90, 95, 100% of the blocks | {own.percentiles()} | 1.7, 4.7, 7.3, 10.5, 14.6, 21.1 |",
        f"| exact attacker, everybody: putative, confirmed, precision | {everybody} | 97.0, 73.6, 75.9 |",
        f"| nonmodal: precision, of the modal and the proportional guesser | {own.precisions('nonmodal')} | 38.2, 0.9, 16.0 |",
        f"| nonmodal, unique, in blocks with variability 0: the same | {own.precisions(CERTAIN)} | 92.5, 2.5, 20.2 |",
    ]


def tract_data(folder: Path) -> Path:
    """The persons of every eighth tract of the state."""
    path = folder / "tracts.parquet"
    if not path.exists():
        people = read_people(state_data(folder))
        tracts = np.unique([code[:11] for code in people.blocks.tolist()])
        chosen = np.isin([code[:11] for code in people.blocks.tolist()], tracts[::8])[people.block]
        columns = {
            "block": people.blocks[people.block], "sex": people.sex.astype(np.int64) + 1, "age": people.age.astype(np.int64),
            "race": people.race.astype(np.int64) + 1, "hispanic": people.hispanic.astype(np.int64),
        }  # fmt: skip
        pq.write_table(pa.table({name: column[chosen] for name, column in columns.items()}), path)
    return path


def tract_table(folder: Path) -> list[str]:
    """The tables of tracts beside those of blocks alone."""
    data = tract_data(folder)
    both = [AttackFrames(data, folder / f"tracts-{mode}", mode) for mode in ("b", "bt")]
    met = pa_csv.read_csv(folder / "tracts-bt" / "tracts.csv").to_pylist()
    certain = [f"{one.rate(CERTAIN, 'records'):,.0f}, {one.rate(CERTAIN, 'precision'):.1f}" for one in both]

    def cells(texts: Sequence[str]) -> str:
        return " | ".join(texts)

    def rates(population: str) -> str:
        return cells([f"{one.rate(population, 'precision'):.1f}" for one in both])

    return [
        "| | block tables | with tract tables | 2010: blocks, with tracts |",
        "|---|---|---|---|",
        f"| in the reconstruction, by class of age | {cells([one.agreement('binned_percent') for one in both])} | 89.7%, 91.9% |",
        f"| by year of age | {cells([one.agreement('exact_percent') for one in both])} | |",
        f"| tracts with every line of their tables met | | {sum(row['lines_met'] == row['lines'] for row in met)} of {len(met)} | |",
        f"| blocks with variability 0 | {cells([one.certain() for one in both])} | 70% with tracts |",
        f"| variability at 75, 80, 85, 90, 95, 100% of the blocks | {cells([one.percentiles() for one in both])} | 1.7, 4.7, 7.3, 10.5, 14.6, 21.1 with tracts |",
        f"| everybody: precision | {rates('all')} | 75.9, 77.9 |",
        f"| nonmodal: precision | {rates('nonmodal')} | 38.2, 43.3 |",
        f"| nonmodal, unique, in blocks with variability 0: persons, precision | {cells(certain)} | 92.5, 95.2 |",
    ]


TABLES: Final = {"defenses": defenses_table, "attack-state": state_table, "attack-tracts": tract_table}


def main() -> None:
    """Make what is missing, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--table", choices=TABLES, default="defenses")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    lines = TABLES[options.table](options.folder)
    write_table(ROOT / "docs" / "attack.md", options.table, "docs/make_attack.py", lines)


if __name__ == "__main__":
    main()
