"""Whole inputs of SafeTab, parameter folder and data folder, small enough to count by hand."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from support.commands import CommandLine, Outcome
from support.rows import piped_rows
from support.safetab_inputs import Rows, write_input
from support.safetab_universes import write_parameters

Kind = Literal["p", "h"]

US_LEVELS = ("usa", "state", "county", "tract", "place", "aiannh")
PR_LEVELS = ("pr_state", "pr_county", "pr_tract", "pr_place")
LEVELS = tuple(f"level_{number}_{name}" for name in (*US_LEVELS, *PR_LEVELS) for number in (1, 2))
NAMES = tuple(f"({name.upper().replace('_', '-')}, {n})" for name in (*US_LEVELS, *PR_LEVELS) for n in (1, 2))

UNIVERSE = {
    "codes": [
        "RACE_ETH_CODE|RACE_ETH_NAME",
        *("4011|Alba", "4023|Bora", "5599|Cato", "6843|Dun", "7537|Elm"),
        *("2331|Fir", "9953|Not Fir"),
    ],
    "race": [
        "ITERATION_CODE|ITERATION_NAME|LEVEL|ALONE|DETAILED_ONLY|COARSE_ONLY",
        *("0001|All alone|0|True|Null|Null", "0002|All|0|False|Null|Null"),
        *("0101|North alone|1|True|False|False", "0102|North|1|False|False|False"),
        *("0103|South alone|1|True|False|False", "0104|South|1|False|False|False"),
        *("1001|Alba alone|2|True|False|False", "1002|Alba|2|False|False|False"),
        *("1003|Bora alone|2|True|False|False", "1004|Bora|2|False|False|False"),
        *("1005|Cato alone|2|True|True|False", "1006|Cato|2|False|False|False"),
        *("1007|Dun and Elm alone|2|True|False|False", "1008|Dun and Elm|2|False|False|False"),
    ],
    "ethnicity": [
        "ITERATION_CODE|ITERATION_NAME|LEVEL|DETAILED_ONLY|COARSE_ONLY",
        *("3000|All|0|Null|Null", "3001|Fir|2|False|False"),
    ],
    "map": [
        "ITERATION_CODE|RACE_ETH_CODE",
        *(f"{iteration}|{code}" for iteration in ("0101", "0102") for code in (4011, 4023, 5599)),
        *(f"{iteration}|{code}" for iteration in ("0103", "0104") for code in (6843, 7537)),
        *("1001|4011", "1002|4011", "1003|4023", "1004|4023", "1005|5599", "1006|5599"),
        *(f"{iteration}|{code}" for iteration in ("1007", "1008") for code in (6843, 7537)),
        *("3000|2331", "3001|2331"),
    ],
}  # fmt: skip
"""Seven codes; two regional and four detailed race groups, each alone and in combination, and one ethnicity."""

BLOCKS = [
    ["44", "001", "000100", "1000", "14140", "9999"],
    ["44", "001", "000100", "1001", "99999", "2415"],
    ["44", "003", "000200", "1000", "14140", "9999"],
    ["44", "003", "000300", "1000", "99999", "9999"],
    ["50", "001", "000100", "2000", "99999", "2415"],
    ["72", "003", "000300", "1000", "00100", "9999"],
    ["72", "003", "000400", "1000", "99999", "9999"],
]
"""County 44001 is one tract, and so is 50001, which is all of the state 50 as well."""


def _codes(*races: str) -> list[str]:
    return [*races, *["Null"] * (8 - len(races))]


def data_rows() -> dict[str, Rows]:
    """The tables of both products: 60 persons and 18 households in six of seven blocks, and totals of every level."""
    place = [row[:4] for row in BLOCKS]
    kinds = [
        (_codes("4011"), "9953"),
        (_codes("4011", "4023"), "9953"),
        (_codes("5599"), "2331"),
        (_codes("6843", "7537"), "9953"),
        (_codes("7537", "4011", "5599"), "2331"),
    ]
    homes = [place[i] for i in (0, 1, 2, 3, 4, 5)]
    persons = [
        [str(3 * i % 116), str(1 + i % 2), "False", *homes[i % 6], "01", *kinds[i % 5][0], kinds[i % 5][1]]
        for i in range(60)
    ]
    households = [
        [*homes[i % 6], "01", *kinds[i % 5][0], kinds[i % 5][1], str(1 + i % 5), str(1 + i % 4)]
        for i in range(18)
    ]
    regions = [
        ("1", "USA"), ("44", "STATE"), ("50", "STATE"), ("44001", "COUNTY"), ("44001000100", "TRACT"),
        ("4414140", "PLACE"), ("2415", "AIANNH"), ("72", "PR-STATE"), ("72003", "PR-COUNTY"),
    ]  # fmt: skip
    groups = [(*region, code) for region in regions for code in ("0102", "1001", "1002")]
    totals = [[*group, str(3 * number)] for number, group in enumerate(groups)]
    return {
        "blocks": [list(row) for row in BLOCKS],
        "persons": persons,
        "households": households,
        "totals": totals,
    }


def bureau_config(kind: Kind, *, budget: float = 1.0, definition: str = "zcdp") -> dict[str, Any]:
    """A configuration in the Bureau's form: a budget for nation, states, counties, tracts and Puerto Rico's, and no other."""
    document: dict[str, Any] = {
        "max_race_codes": 8,
        "allow_negative_counts": True,
        "run_us": True,
        "run_pr": True,
        "reader": "csv",
        "state_filter_us": ["44", "50"],
        "privacy_defn": definition,
    }
    paid = (
        "level_1_usa", "level_2_usa", "level_2_state", "level_2_county", "level_2_tract", "level_2_pr_state",
    )  # fmt: skip
    for table_class in ("p",) if kind == "p" else ("h_t3", "h_t4"):
        for level in LEVELS:
            document[f"privacy_budget_{table_class}_{level}"] = budget if level in paid else 0
        thresholds = [30] if table_class == "h_t4" else [10, 30, 45]
        document[f"thresholds_{table_class}"] = {name: list(thresholds) for name in NAMES}
    if kind == "p":
        document |= {"privacy_budget_p_stage_1_fraction": 0.1, "zero_suppression_chance": 0.9}
    return document


@dataclass(frozen=True)
class SafetabFolders:
    p: Path
    h: Path
    data: Path

    def censafe(self, verb: str, kind: str, *words: object, **checks: Any) -> Outcome:
        """A verb of a product on its parameters and these records."""
        return CommandLine()(verb, f"safetab-{kind}", getattr(self, kind), self.data, *words, **checks)

    def rewrite(self, **tables: Rows) -> None:
        write_input(self.data, tables)

    def configure(self, kind: Kind, **changes: Any) -> Path:
        """Write the configuration of a product again, with changes, and return its folder."""
        folder: Path = getattr(self, kind)
        budget, definition = changes.pop("budget", 1.0), changes.pop("definition", "zcdp")
        document = bureau_config(kind, budget=budget, definition=definition) | changes
        (folder / "config.json").write_text(json.dumps(document), encoding="utf-8")
        return folder


def _write_universe(folder: Path) -> None:
    write_parameters(
        folder,
        codes=UNIVERSE["codes"],
        race=UNIVERSE["race"],
        ethnicity=UNIVERSE["ethnicity"],
        map=UNIVERSE["map"],
    )


def write_folders(root: Path) -> SafetabFolders:
    """Write parameter folders of both products and one data folder for both."""
    folders = SafetabFolders(
        root / "parameters_p", root / "parameters_h", write_input(root / "records", data_rows())
    )
    for kind, folder in (("p", folders.p), ("h", folders.h)):
        _write_universe(folder)
        folders.configure("p" if kind == "p" else "h")
    return folders


def t1_of(out: Path, folder: str = "tables") -> dict[tuple[str, str, str], str]:
    """COUNT of T01001 by region type, region and iteration."""
    rows = piped_rows(out / folder / "t1" / "t1.csv")
    return {(row["REGION_TYPE"], row["REGION_ID"], row["ITERATION_CODE"]): row["COUNT"] for row in rows}


def tables_of(out: Path, folder: str = "tables") -> dict[str, bytes]:
    """Contents of all tables in the Bureau's layout, by path."""
    root = out / folder
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*.csv"))}
