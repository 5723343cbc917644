"""What every product publishes, less the private truth, against the law that it states: all tables and levels, many test keys.

Every part is measured as in a release, as a run takes it there. False-alarm rate: 1e-6 for every product, over the
variance of every query, the signs of every pair of queries and the signs of every query from key to key. Smallest defects: half the
standard deviation in one query of 60 draws or more, and equal noise in two queries with 50 draws or more at common
addresses; both are planted below, and must be rejected.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from censafe.model import ExactHistograms, NoiseLaw, SparseLevel
from censafe.model.observer import SilentObserver
from censafe.privacy import keys
from censafe.privacy.measure import mechanisms
from censafe.products.detailed import recipe as safetab_h
from censafe.products.detailed import recipe as safetab_p
from censafe.products.detailed.codes.parameters import read_universe
from censafe.products.detailed.config import load_h_config, load_p_config
from censafe.products.detailed.intake import DetailedIntake as SafetabIntake
from censafe.products.detailed.plan import stabilities
from censafe.products.detailed.recipe import SafetabJob, SafetabRecipe
from censafe.products.phsafe.config import load_phsafe_config as load_phsafe
from censafe.products.phsafe.intake import HouseholdIntake as PhsafeIntake
from censafe.products.phsafe.recipe import _Job as PhsafeJob
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import load_config as load_topdown
from censafe.products.topdown.intake.intake import BlockIntake as TopdownIntake
from censafe.products.topdown.measuring import finish_level, measure_stored
from censafe.products.topdown.plan import LevelWorkload, plan_release, workloads
from support.commands import bureau_config, write_config
from support.many_keys import Drawn, Product, defects, noise_of, open_store
from support.phsafe_inputs import write_folder
from support.safetab_folders import write_folders
from support.topdown_inputs import write_1940
from support.topdown_joint import write_joint_config, write_joint_data

KEYS = range(30)
MANY_KEYS = range(500)


# --- PHSafe ------------------------------------------------------------------------------------------------------------


class _Counted:
    """Records whose counts are taken once and given again."""

    def __init__(self, intake: PhsafeIntake) -> None:
        self._intake = intake
        self._state: dict[str, Any] | None = None

    def count(self, counts: Any) -> Any:
        if self._state is None:
            self._report = self._intake.count(counts)
            self._state = dict(vars(counts))
        vars(counts).update(self._state)
        return self._report


@contextmanager
def phsafe(folder: Path) -> Iterator[Product]:
    path = write_config(folder / "config.json", bureau_config())
    job = PhsafeJob(load_phsafe(str(path), {}))
    with PhsafeIntake(write_folder(folder / "data"), "csv", ("44", "50"), folder, ReadOptions()) as intake:
        counted = _Counted(intake)
        exact = _exact_phsafe(job, counted)

        def product(seed: int) -> dict[str, Drawn]:
            found = {}
            for answer in chain(*job.measure(counted, open_store(job.plan, seed), ReadOptions())):  # type: ignore[arg-type]
                query = answer.query
                grid = (answer.values - exact[query.table, query.level]).reshape(answer.domain.shape[0], -1)
                found[f"{query.table} {query.level}"] = query.law, grid, np.ones_like(grid, np.bool_)
            return found

        yield product


def _exact_phsafe(job: PhsafeJob, counted: _Counted) -> dict[tuple[str, str], NDArray[np.int64]]:
    from censafe.products.phsafe.definitions import phsafe_definitions
    from censafe.products.phsafe.plan import measured_table_levels
    from censafe.tabulation.tables.counting import CountAccumulator

    levels = measured_table_levels(job._config)
    counts = CountAccumulator(phsafe_definitions(), tables=list(levels), tau=job._config.tau)
    counted.count(counts)
    return {name: exact.values for name, exact in counts.finish(levels).items()}


# --- SafeTab -----------------------------------------------------------------------------------------------------------


@contextmanager
def safetab(folder: Path, kind: str) -> Iterator[Product]:
    folders = write_folders(folder)
    if kind == "p":
        config, recipe = (
            load_p_config(str(folders.configure("p", zero_suppression_chance=0))),
            safetab_p.PERSONS,
        )
    else:
        config, recipe = load_h_config(str(folders.h)), safetab_h.HOUSEHOLDS
    universe = read_universe(config.universe)
    with SafetabIntake(folders.data, config, universe, folder / "scratch", ReadOptions()) as intake:
        data = intake.load()
        counter = recipe.count(data, universe)
        counting = SafetabRecipe(recipe.load, lambda *_: counter, recipe.measure)
        job = SafetabJob(config, universe, counting, release=False)
        stable = stabilities(config, universe)
        dense = {
            level.key: (source := counter.groups(level, stable[level]))
            .block(0, len(source.level.regions))
            .dense
            for level in config.levels
            if level in stable
        }
        variants = _variants(kind)

        def product(seed: int) -> dict[str, Drawn]:
            found: dict[str, Drawn] = {}
            stub = SimpleNamespace(load=lambda: data)
            for answer in job.measure(stub, open_store(job.plan, seed), ReadOptions(threads=1)):  # type: ignore[arg-type]
                found |= _safetab_noise(answer, dense[answer.level.name], variants[answer.table])
            return found

        yield product


def _variants(kind: str) -> dict[str, Any]:
    from censafe.products.detailed.tables import variants_of

    return {name: variants_of(name) for name in (("t1t2",) if kind == "p" else ("t3", "t4"))}


def _safetab_noise(answer: Any, dense: NDArray[np.int32], variants: Any) -> dict[str, Drawn]:
    """Noise by query; answers of a query at a region are those of all iterations, at most 46 cells each."""
    shape = dense.shape[0], dense.shape[1], 46
    names = [name for name in answer.laws if name != "stage1"]
    values = {name: np.zeros(shape, np.int64) for name in answer.laws}
    there = {name: np.zeros(shape, np.bool_) for name in answer.laws}
    for row, (region, iteration, stat_level) in enumerate(
        zip(answer.region, answer.iteration, answer.stat_level, strict=True)
    ):
        only = bool(answer.level.detailed_only[iteration]) and len(names) > 1
        name = "detailed_only" if only else names[-1]
        cells = answer.values[answer.indptr[row] : answer.indptr[row + 1]]
        counts, slots = dense[region, iteration], variants[stat_level].slots
        true = np.bincount(slots, counts, minlength=len(cells)).astype(np.int64)
        values[name][region, iteration, : len(cells)] = cells - true
        there[name][region, iteration, : len(cells)] = True
        if "stage1" in values and not only:
            values["stage1"][region, iteration, 0] = answer.stage1[row] - counts.sum()
            there["stage1"][region, iteration, 0] = True
    flat = shape[0], shape[1] * shape[2]
    return {
        f"{answer.table} {answer.level.name} {name}": (
            law,
            values[name].reshape(flat),
            there[name].reshape(flat),
        )
        for name, law in answer.laws.items()
        if there[name].any()
    }


# --- TopDown -----------------------------------------------------------------------------------------------------------


@contextmanager
def topdown(folder: Path, kind: str, through: Callable[..., Any]) -> Iterator[Product]:
    if kind == "zcdp":
        config = load_topdown(str(write_joint_config(folder / "few.toml")))
        data = write_joint_data(folder / "data", 8)
    else:
        config, data = load_topdown("e2e-1940"), write_1940(folder / "data")
    with TopdownIntake(data, config, ReadOptions()) as intake:
        loaded = intake.load()
    plan = plan_release(config)

    def product(seed: int) -> dict[str, Drawn]:
        store, found = open_store(plan, seed), {}
        for histogram in config.histograms:
            loads = [load for load in workloads(config) if load.histogram.name == histogram.name]
            for load, exact in zip(loads, loaded.exact[histogram.name], strict=True):
                budgets = loaded.facts.budgets[load.part.name]
                answers = through(load, exact, budgets, store)
                for ordinal, (query, planned) in enumerate(zip(load.queries, load.part.queries, strict=True)):
                    noise = answers[ordinal] - _true(exact, query)
                    found[f"{load.part.name} {query.name}"] = (
                        planned.law,
                        noise,
                        np.ones_like(noise, np.bool_),
                    )
        return found

    yield product


def _true(exact: ExactHistograms, query: Any) -> NDArray[np.int64]:
    found = np.zeros((exact.nodes, query.answers), np.int64)
    node = np.repeat(np.arange(exact.nodes), np.diff(exact.node_ptr))
    np.add.at(found, (node, query.label[exact.cell]), exact.count)
    return found


def stored(load: LevelWorkload, exact: ExactHistograms, budgets: Any, store: Any) -> list[NDArray[np.int64]]:
    return [values.astype(np.int64) for values in measure_stored(load, exact, budgets, store, None).values]  # type: ignore[arg-type]


class _AllAnswers:
    """Stands where the estimation stands, and asks for every answer."""

    split = None

    def __init__(self, load: LevelWorkload, exact: ExactHistograms) -> None:
        self.levels: list[SparseLevel] = []
        self._sizes, self._nodes = [query.answers for query in load.queries], exact.nodes
        self._level = SparseLevel(exact.geounits, exact.node_ptr, exact.cell, exact.count)

    def estimate(self, part: str, objective: Any) -> Any:
        self.found = [
            objective.source.answers(ordinal, 0, self._nodes, np.arange(size))
            for ordinal, size in enumerate(self._sizes)
        ]
        self.levels.append(self._level)
        return self._level, SimpleNamespace(document=dict)


def lazy(load: LevelWorkload, exact: ExactHistograms, budgets: Any, store: Any) -> list[NDArray[np.int64]]:
    asking = _AllAnswers(load, exact)
    finish_level(load, exact, budgets, store, asking, SilentObserver())  # type: ignore[arg-type]
    return asking.found


# --- tests -------------------------------------------------------------------------------------------------------------

PRODUCTS: dict[str, Callable[[Path], Any]] = {
    "phsafe": phsafe,
    "safetab-p": lambda folder: safetab(folder, "p"),
    "safetab-h": lambda folder: safetab(folder, "h"),
    "topdown stored, zcdp": lambda folder: topdown(folder, "zcdp", stored),
    "topdown lazy, zcdp": lambda folder: topdown(folder, "zcdp", lazy),
    "topdown stored, pure": lambda folder: topdown(folder, "pure", stored),
    "topdown lazy, pure": lambda folder: topdown(folder, "pure", lazy),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_published_values_have_the_stated_noise(name: str, tmp_path: Path) -> None:
    with PRODUCTS[name](tmp_path) as product:
        assert defects(noise_of(product, KEYS)) == set()


@pytest.mark.long
@pytest.mark.parametrize("name", PRODUCTS)
def test_published_values_have_the_stated_noise_under_many_keys(name: str, tmp_path: Path) -> None:
    with PRODUCTS[name](tmp_path) as product:
        assert defects(noise_of(product, MANY_KEYS)) == set()


def test_half_the_deviation_in_one_table_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right, planned = mechanisms.add_noise, mechanisms.require_planned

    def half(values: Any, law: NoiseLaw, key: Any, claim: Any, **more: Any) -> NDArray[np.int64]:
        wrong = NoiseLaw(law.kind, law.parameter / 4) if key.part == "PH3" else law
        return right(values, wrong, key, claim, **more)

    monkeypatch.setattr(mechanisms, "add_noise", half)
    with phsafe(tmp_path) as product:
        found = noise_of(product, KEYS)
    wrong = {f"variance of {name}" for name in found if name.startswith("PH3 ")}
    assert wrong
    assert defects(found) == wrong
    assert mechanisms.require_planned is planned


def one_key_for_all_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    right = keys._part_key

    def same(key: Any, digest: str, commitment: bytes, part: str, planned: Any) -> Any:
        wrong = right(key, digest, commitment, "same", planned)
        wrong.usage = keys.Usage()  # the shared account of addresses would refuse the second part
        return wrong

    monkeypatch.setattr(keys, "_part_key", same)


@pytest.mark.parametrize(
    "name",
    [
        "phsafe",
        *(
            pytest.param(name, marks=pytest.mark.long)
            for name in ("safetab-p", "safetab-h", "topdown stored, zcdp", "topdown lazy, pure")
        ),
    ],
)
def test_one_key_for_all_parts_is_rejected(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_key_for_all_parts(monkeypatch)
    with PRODUCTS[name](tmp_path) as product:
        rejected = defects(noise_of(product, KEYS))
    assert any(" with " in one for one in rejected)
    assert not any(one.startswith("variance of") for one in rejected)


def test_one_key_for_all_runs_is_rejected(tmp_path: Path) -> None:
    with phsafe(tmp_path) as product:
        rejected = defects(noise_of(lambda _: product(1), KEYS))
    assert any("from key to key" in one for one in rejected)


def test_a_plan_with_half_the_deviation_is_refused_at_the_door(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from censafe.errors import ReleaseError
    from censafe.products.phsafe import recipe

    right = recipe.measure

    def half(counts: Any, query: Any, ordinal: int, key: Any) -> Any:
        law = NoiseLaw(query.law.kind, query.law.parameter / 4)
        return right(counts, replace(query, law=law) if query.table == "PH3" else query, ordinal, key)

    monkeypatch.setattr(recipe, "measure", half)
    with phsafe(tmp_path) as product, pytest.raises(ReleaseError, match="than in the plan"):
        product(1)


def test_one_key_for_all_parts_is_refused_at_the_door(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from censafe.errors import ReleaseError

    right = keys._part_key
    monkeypatch.setattr(
        keys,
        "_part_key",
        lambda key, digest, commitment, _, planned: right(key, digest, commitment, "same", planned),
    )
    with phsafe(tmp_path) as product, pytest.raises(ReleaseError, match="belongs to other answers"):
        product(1)
