"""How often the linear intervals of DHC tables hold the truth: the shipped configuration on a small state, its noise drawn again and again.

Estimators are made once, and every draw has answers under a key of its own. Every share is a mean over draws of the cells of the areas of a kind; cells of one
draw depend on each other, so the standard error is that of the mean over draws. A test alarms when the mean is further from nominal than half a point and
four standard errors: fewer than 1 of 10,000 runs of the suite where intervals are right to within half a point. Standard deviations that are a tenth too small take 3.9
points off the 90% intervals and are found; the planted defect is that.
"""

import sys
from itertools import groupby
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from numpy.typing import NDArray

from censafe import synthesize
from censafe.model import SparseLevel
from censafe.model.cells.counting import AreaBlocks, tabulated
from censafe.model.observer import SilentObserver
from censafe.privacy.keys import TestKey, derive_part_key
from censafe.privacy.measure.lazy import LazyAnswers
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.census_tables.definitions import census_tables
from censafe.products.topdown.configuration.config import TopdownConfig, load_config
from censafe.products.topdown.intake.intake import Loaded, open_intake
from censafe.products.topdown.plan import LevelWorkload, workloads
from censafe.products.topdown.table_estimates.choice import EstimatedAreas, table_choice
from censafe.products.topdown.table_estimates.estimates import TableEstimates, TableRows

TABLES = ("P1", "P5", "P12", "H3", "H4", "H9")
CONFIDENCES = (0.9, 0.95)
EXACT = 1e-3  # standard deviation up to which a cell is known exactly, but for rounding


@pytest.fixture(scope="module")
def ratios(tmp_path_factory: pytest.TempPathFactory) -> dict[str, NDArray[np.float64]]:
    """Errors in standard deviations of 200 draws."""
    return errors(tmp_path_factory.mktemp("coverage"), 200)


def errors(folder: Path, draws: int) -> dict[str, NDArray[np.float64]]:
    """Errors in standard deviations, by kind of area an array of shape (draws, cells)."""
    synthesize(folder / "data", persons=300, states=["50"], layout="dhc")
    config = load_config("dhc-us", {"root": "State"})
    with open_intake(folder / "data", config, ReadOptions()) as intake:
        loaded = intake.load()
    areas = folder / "areas.csv"
    leaf = loaded.facts.run.standard.leaf
    codes = leaf.form.unpack(leaf.codes).tolist()
    areas.write_text("geocode,block_group,lot\n" + "".join(f"{one},{one[:12]},{one}\n" for one in codes[:4]))
    tables = TableEstimates(
        config, table_choice(config, TABLES, areas), loaded.facts, SilentObserver(), stored=False
    )
    truth = {one.kind: true_counts(config, loaded, one) for one in tables._areas}
    found: dict[str, list[NDArray[np.float64]]] = {}
    sums = {}
    for draw in range(draws):
        for histogram in config.histograms:
            for load in workloads(config):
                if load.histogram.name == histogram.name and tables.sums(load) is not None:
                    sums[histogram.name] = tables._sums[histogram.name]
                    tables.read(load, answers(loaded, load, TestKey(1000 + draw)))
            tables.finish(histogram.name)
        rows = sorted(tables.rows, key=lambda one: one.kind)
        for kind, group in groupby(rows, key=lambda one: one.kind):
            found.setdefault(kind, []).append(
                np.concatenate([in_deviations(one, truth[kind]) for one in group])
            )
        tables.rows.clear()
        tables._complete.clear()
        tables._sums.update(sums)  # their patterns are set up once
    return {kind: np.array(values) for kind, values in found.items()}


def answers(loaded: Loaded, load: LevelWorkload, key: TestKey) -> LazyAnswers:
    """Noisy answers of a level under a key of its own."""
    depth = [level.geounits.tolist() for level in loaded.exact[load.histogram.name]].index(
        loaded.facts.spine.levels[loaded.facts.spine.names.index(load.level.name)].geounits.tolist()
    )
    exact = loaded.exact[load.histogram.name][depth]
    own = derive_part_key(key, "0" * 64, b"", load.part.name)
    return LazyAnswers(exact, load.part, load.queries, own, loaded.facts.budgets[load.part.name])


def true_counts(
    config: TopdownConfig, loaded: Loaded, areas: EstimatedAreas
) -> dict[str, NDArray[np.float64]]:
    """Cells of the tables in areas of a kind, by area."""
    parts = []
    for table in table_choice(config, TABLES, None).tables:
        histogram = config.histogram(table.histogram)
        exact = loaded.exact[histogram.name][-1]
        blocks = SparseLevel(exact.geounits, exact.node_ptr, exact.cell, exact.count)
        places = AreaBlocks(areas.codes, areas.area_of)
        parts.append(
            np.concatenate(
                [values for _, values in tabulated(table, histogram.schema.schema, blocks, places)]
            )
        )
    return dict(zip(areas.codes.tolist(), np.hstack(parts), strict=True))


def in_deviations(rows: TableRows, truth: dict[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """Errors of the cells that have any noise; the others are right."""
    order = [name for table in TABLES for name in census_tables("dhc")[table].variables]
    columns = [order.index(one) for one in rows.variables]
    error = rows.values - np.array([truth[code][columns] for code in rows.codes.tolist()])
    spread = np.sqrt(rows.variances)
    np.testing.assert_allclose(error[spread <= EXACT], 0, atol=10 * EXACT)
    return error[spread > EXACT] / spread[spread > EXACT]


def share(ratios: NDArray[np.float64], confidence: float) -> tuple[float, float]:
    """Share of intervals that hold the truth, and its standard error over draws."""
    held = (np.abs(ratios) <= NormalDist().inv_cdf(0.5 + confidence / 2)).mean(axis=1)
    return float(held.mean()), float(held.std(ddof=1) / len(held) ** 0.5)


def alarms(ratios: NDArray[np.float64], confidence: float) -> bool:
    """Whether the share of intervals that hold the truth is too far from nominal."""
    mean, error = share(ratios, confidence)
    return abs(mean - confidence) > 0.005 + 4 * error


@pytest.mark.long
@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_linear_intervals_hold_the_truth_as_often_as_they_say(
    ratios: dict[str, NDArray[np.float64]], confidence: float
) -> None:
    assert set(ratios) == {"state", "county", "tract", "place", "block_group", "lot"}
    assert not [kind for kind, values in ratios.items() if alarms(values, confidence)]


@pytest.mark.long
def test_standard_deviations_a_tenth_too_small_are_found(ratios: dict[str, NDArray[np.float64]]) -> None:
    assert all(alarms(values / 0.9, 0.9) for values in ratios.values())


def main() -> None:
    """Print the shares by level for the page that states them: python tests/statistical/test_dhc_interval_coverage.py FOLDER DRAWS."""
    for kind, values in errors(Path(sys.argv[1]), int(sys.argv[2])).items():
        pairs = (share(values, confidence) for confidence in CONFIDENCES)
        texts = [f"{100 * mean:.2f} ± {100 * error:.2f}" for mean, error in pairs]
        sys.stdout.write(f"| {kind} | {values.shape[1]} | {' | '.join(texts)} |\n")


if __name__ == "__main__":
    main()
