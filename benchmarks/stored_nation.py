"""Noisy measurements of a synthetic nation in the Bureau's layout, written state by state, so that little memory is needed."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from censafe.estimation.topdown.levels.facts import PublicFacts, facts_above, facts_below
from censafe.geography.spines.tree import Subtree, subtrees
from censafe.model import ExactHistograms
from censafe.model.topdown.level_measurements import LevelBudgets, LevelMeasurements
from censafe.privacy.keys import TestKey, derive_part_key
from censafe.privacy.measure.histograms import measure_histograms
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.folder import STATE, place_of, stored_files, write_facts
from censafe.products.topdown.intake.intake import BlockIntake
from censafe.products.topdown.measuring import full_shape
from censafe.products.topdown.plan import LevelWorkload, workloads
from censafe.publication.stamps import STAMP


def store(data: Path, folder: Path, config: TopdownConfig, seed: int) -> int:
    """Measure everything with a test key and write it; returns the number of geounits."""
    with BlockIntake(data, config, ReadOptions()) as intake:
        loaded = intake.load()
    public, work = loaded.facts, folder.with_name(f"{folder.name}.part")
    shutil.rmtree(work, ignore_errors=True)
    depth = public.spine.names.index(STATE)
    parts = subtrees(public.spine, depth, ())
    for load in workloads(config):
        at = public.spine.names.index(load.level.name)
        exact = loaded.exact[load.histogram.name][at]
        place = work / "measurements" / place_of(config)(load.part.name)
        if at <= depth:
            _write(load, exact, replace(facts_above(public, depth), budgets=public.budgets), place, seed)
            continue
        for number, part in enumerate(parts):
            once = work / "one"
            _write(load, _some(exact, part.nodes(at)), _facts(public, part, load, at), once, seed + number)
            for table in ("DPQuery", "Constraint"):
                (place / table).mkdir(parents=True, exist_ok=True)
                for file in sorted((once / table).iterdir()):
                    file.rename(place / table / file.name)
            shutil.rmtree(once)
    write_facts(work, config, public, stamp=STAMP)
    work.rename(folder)
    return sum(level.nodes for level in public.spine.levels)


def _some(exact: ExactHistograms, nodes: slice) -> ExactHistograms:
    pointer = exact.node_ptr[nodes.start : nodes.stop + 1]
    entries = slice(int(pointer[0]), int(pointer[-1]))
    return ExactHistograms(
        exact.geounits[nodes], pointer - pointer[0], exact.cell[entries], exact.count[entries]
    )


def _facts(public: PublicFacts, part: Subtree, load: LevelWorkload, depth: int) -> PublicFacts:
    of_level = public.budgets[load.part.name]
    budgets = LevelBudgets(of_level.kinds[part.nodes(depth)].copy(), of_level.laws, of_level.costs)
    return replace(facts_below(public, part), budgets={load.part.name: budgets})


def level_answers(
    load: LevelWorkload, exact: ExactHistograms, budgets: LevelBudgets, seed: int
) -> LevelMeasurements:
    """Noisy answers of all queries of a level, with a test key."""
    shapes = [full_shape(load.histogram.schema.schema, query) for query in load.queries]
    with TestKey(seed) as key:
        part_key = derive_part_key(key, "benchmark", b"benchmark", load.part.name)
    answers = measure_histograms(exact, load.part, load.queries, shapes, part_key, budgets)
    part_key.close()
    return answers


def _write(load: LevelWorkload, exact: ExactHistograms, public: PublicFacts, place: Path, seed: int) -> None:
    files = stored_files(load, public)
    place.parent.mkdir(parents=True, exist_ok=True)
    answers = level_answers(load, exact, public.budgets[load.part.name], seed)
    files.write(place, answers, plan_digest="benchmark", stamp=STAMP)
