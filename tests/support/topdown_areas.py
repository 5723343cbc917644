"""Small redistricting inputs whose blocks lie in American Indian areas, places and county subdivisions."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from censafe.geography.grfc import NO_AIANNH, NO_PLACE, BlockAreas
from support.histograms import units_table, write_table

AIANNH = (NO_AIANNH, NO_AIANNH, NO_AIANNH, 1150, 5620)
PLACES = (NO_PLACE, 11000, 22000)


def block_codes(states: Sequence[int], rng: np.random.Generator) -> np.ndarray:
    """Codes of 16 digits: two counties a state, with tracts of one block to many."""
    found = []
    for state in states:
        for county in (1, 7):
            for tract in range(1, int(rng.integers(2, 5))):
                for group in range(1, int(rng.integers(2, 4))):
                    for block in range(int(rng.integers(1, 6))):
                        code = ((state * 1000 + county) * 10**6 + tract * 100) * 10 + group
                        found.append(code * 10**4 + group * 1000 + block)
    return np.array(sorted(found), np.int64)


def random_areas(codes: np.ndarray, rng: np.random.Generator) -> BlockAreas:
    """Areas that cut across tracts."""
    pick = [rng.choice(choices, len(codes)).astype(np.int32) for choices in (AIANNH, PLACES, (101, 102))]
    return BlockAreas(codes, *pick)


def write_pl94(folder: Path, states: Sequence[int] = (4, 44), *, seed: int = 5, areas: bool = True) -> Path:
    """histogram.parquet and units.parquet of some states, with columns of areas beside the units if wanted."""
    rng = np.random.default_rng(seed)
    codes = block_codes(states, rng)
    given = random_areas(codes, rng)
    units = np.column_stack([rng.integers(0, 30, len(codes)), rng.random((len(codes), 7)) < 0.1]).astype(int)
    rows: list[tuple[str, int, int]] = []
    texts = [f"{code:016d}" for code in codes.tolist()]
    for text, counts in zip(texts, units.tolist(), strict=True):
        cells: Counter[int] = Counter()
        for kind, count in enumerate(counts):
            persons = count * int(rng.integers(0, 4)) if kind == 0 else count * int(rng.integers(1, 30))
            adult = np.ones(persons, int) if kind == 3 else (rng.random(persons) < 0.7).astype(int)
            hispanic = (rng.random(persons) < 0.1).astype(int)
            race = rng.choice(6, persons, p=[0.7, 0.1, 0.1, 0.05, 0.03, 0.02])
            cells.update((((kind * 2 + adult) * 2 + hispanic) * 63 + race).tolist())
        rows += [(text, cell, count) for cell, count in sorted(cells.items())]
    folder.mkdir(parents=True)
    geocode, cell, count = (list(column) for column in zip(*rows, strict=True))
    write_table(folder / "histogram.parquet", {"geocode": geocode, "cell": cell, "count": count})
    table = units_table(texts, units.tolist(), rng.integers(0, units[:, 0] + 1).tolist())
    if areas:
        table["aiannhce"] = [f"{code:04d}" for code in given.aiannh.tolist()]
        table["placefp"] = [f"{code:05d}" for code in given.place.tolist()]
        table["cousubfp"] = [f"{code:05d}" for code in given.cousub.tolist()]
    write_table(folder / "units.parquet", table)
    return folder
