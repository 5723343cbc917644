"""Small inputs for whole TopDown runs, and views of what a run wrote."""

from collections import Counter
from pathlib import Path

import numpy as np

from censafe.model import SparseLevel
from censafe.publication.microdata.histograms import read_histograms
from support.histograms import write_table

KINDS = 8
CELLS_1940 = 192


def write_1940(folder: Path, *, seed: int = 3) -> Path:
    """Forty-eight districts of two states: histogram.parquet and units.parquet of the 1940 layout."""
    rng = np.random.default_rng(seed)
    codes = [f"{s:02d}{c:04d}{e:04d}" for s in (1, 2) for c in (10, 30, 50) for e in range(1, 9)]
    units = np.column_stack(
        [
            rng.integers(0, 40, len(codes)),
            rng.random((len(codes), KINDS - 1)) < 0.15,
            rng.integers(0, 5, len(codes)),
        ]
    ).astype(np.int64)
    rows: list[tuple[str, int, int]] = []
    for code, counts in zip(codes, units[:, :KINDS].tolist(), strict=True):
        cells: Counter[int] = Counter()
        for kind, count in enumerate(counts):
            persons = count * int(rng.integers(1, 4)) if kind == 0 else count * int(rng.integers(1, 60))
            adult, hispanic = rng.random(persons) < 0.65, rng.random(persons) < 0.05
            race = rng.choice(6, persons, p=[0.85, 0.1, 0.02, 0.01, 0.01, 0.01])
            cells.update((((kind * 2 + adult) * 2 + hispanic) * 6 + race).tolist())
        rows += [(code, cell, count) for cell, count in sorted(cells.items())]
    folder.mkdir(parents=True)
    geocode, cell, count = (list(column) for column in zip(*rows, strict=True))
    write_table(folder / "histogram.parquet", {"geocode": geocode, "cell": cell, "count": count})
    columns = {f"gq{kind}": units[:, kind] for kind in range(KINDS)}
    write_table(folder / "units.parquet", {"geocode": codes, **columns, "vacant": units[:, KINDS]})
    return folder


def histograms_of_run(out: Path, histogram: str, levels: dict[str, np.ndarray]) -> dict[str, SparseLevel]:
    """The histograms that a run wrote, by level."""
    return {
        name: read_histograms(out / "histograms" / f"{histogram}_{name}.parquet", geounits)
        for name, geounits in levels.items()
    }


def entries(level: SparseLevel) -> dict[tuple[str, int], int]:
    node = np.repeat(np.arange(level.nodes), np.diff(level.node_ptr))
    keys = zip(level.geounits[node].tolist(), level.cell.tolist(), strict=True)
    return dict(zip(keys, level.count.tolist(), strict=True))


def added_up(level: SparseLevel, digits: int) -> dict[tuple[str, int], int]:
    """Counts by prefix of the geocode and cell."""
    sums: Counter[tuple[str, int]] = Counter()
    for (code, cell), count in entries(level).items():
        sums[code[:digits], cell] += count
    return dict(sums)
