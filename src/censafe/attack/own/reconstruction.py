"""CONFIDENTIAL. ``censafe attack reconstruct`` and ``censafe attack rank`` with a configuration: tables of records, of a run or as published, of an own schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.attack.comparison.entry import NO_DEFENSE, in_words, named_frame
from censafe.attack.comparison.files import read_tables
from censafe.attack.matching import (
    AttackTarget,
    agreement_rows,
    exact_attacker,
    reidentification_rows,
    unique_rows,
)
from censafe.attack.own.reading import AttackNames, OwnSchema, areas_of_codes, read_own_records
from censafe.attack.own.records import OwnAreas, OwnRecords
from censafe.attack.own.study import own_meaning, own_words, read_release, require_own_choices
from censafe.attack.pages import own_reconstruction_page
from censafe.attack.ranking.study import RankChoices, ranked_areas, write_ranking
from censafe.attack.reconstruction.problem import NO_LIMIT
from censafe.attack.reconstruction.solve import INFEASIBLE, NEAREST, reconstruct
from censafe.attack.results import percentile_frame, reconstruction_frame, table_frame, variability_frame
from censafe.attack.study import AttackChoices, ConflictFinder, share_text, write_attack
from censafe.attack.tables import tabulate_lines
from censafe.errors import UsageError
from censafe.evaluation.confidential import evaluation_folder
from censafe.evaluation.outputs import Evaluated
from censafe.geography.own_codes import AREA_CODES, AreaCodes
from censafe.model.observer import Observer, work_done
from censafe.products.topdown.configuration.config import TopdownConfig

_Ints = NDArray[np.int64]


def _read(schema: OwnSchema, data: Path, observer: Observer) -> tuple[OwnRecords, bool, _Ints, _Ints]:
    """Records, or none in the areas of published tables; whether they are the true ones; lowest and highest values of the lines of every area."""
    lines, none = schema.lines, np.zeros(0, np.int64)
    tables = read_tables(data, lines, (lines.area,)) if data.is_dir() else None
    if tables is not None:
        codes, values = tables[lines.area].codes, tables[lines.area].tables
        place = {lines.area: np.arange(len(codes))}
        areas = OwnAreas((lines.area,), {lines.area: codes}, place, codes)
        hidden = ~values.published
        high = np.where(hidden & (values.high == values.low), NO_LIMIT, values.high)
        return OwnRecords(lines, areas, none, none, none), False, values.low, high
    if (data / "manifest.json").is_file():
        codes_of_run = AreaCodes.of_run(data)
        if codes_of_run is None:
            raise UsageError(
                f"{data}: the run has no {AREA_CODES}, which names its areas; fix: give a run of a configuration with [read]"
            )
        areas = areas_of_codes(schema, codes_of_run)[1]
        records = read_release(data, schema, OwnRecords(lines, areas, none, none, none), None)
        values_of_run = tabulate_lines(lines, records)
        return records.take(none), False, values_of_run, values_of_run
    records, _ = read_own_records(schema, data, observer)
    counts = tabulate_lines(lines, records)
    return records, True, counts, counts


def reconstruct_own_records(
    data: Path,
    out: Path,
    config: TopdownConfig,
    names: AttackNames,
    queries: Sequence[str],
    choices: AttackChoices,
    observer: Observer,
) -> Evaluated:
    """Reconstruct records of an own schema from tables: of true records, with which the result is matched, or published ones.

    Args:
        queries: of which tables are attacked; without these and a file of tables, the table of quasi-identifiers by target.
    """
    require_own_choices(replace(choices, tables=None))
    if choices.mode != "b":
        raise UsageError(
            f"mode: {choices.mode!r} adds tables of tracts with single years of age, which an own schema does not have; fix: leave it out, and give all lines as queries"
        )
    schema = OwnSchema.of(config, names, queries, choices.tables)
    lines, words = schema.lines, own_words(schema)
    with evaluation_folder(out, {"kind": "reconstruction"}):
        with observer.stage("read"):
            people, known, low, high = _read(schema, data, observer)
        with observer.stage("reconstruct areas"):
            reconstruction = reconstruct(
                lines, low, high, choices.solving, work_done(observer, len(low), "areas")
            )
        wrong = np.flatnonzero(np.isin(reconstruction.status, (INFEASIBLE, NEAREST))).tolist()
        finder = ConflictFinder(lines, choices.seconds)
        conflicts = [finder.first(low[one], high[one]) for one in wrong]
        records = people.of_counts(reconstruction.block, reconstruction.types, reconstruction.counts)
        populated = reconstruction.population > 0
        certain = populated & (reconstruction.variability == 0)
        frames = {
            "reconstruction": reconstruction_frame(reconstruction, lines, people.blocks),
            "records": records.frame(),
            "tables": table_frame(lines, low, people.blocks, lines.area),
            "lines": pa.table({"table": lines.names, "line": lines.numbers, "label": lines.labels}),
        }
        if conflicts:
            frames["conflicts"] = pa.table({lines.area: people.blocks[wrong], "conflict": conflicts})
        if choices.variability:
            frames["areas"] = variability_frame(reconstruction, people.blocks, lines.area)
            frames["variability"] = named_frame(percentile_frame(reconstruction), NO_DEFENSE)
        summary = [
            f"CONFIDENTIAL. {int((reconstruction.status == 'exact').sum()):,} of {len(low):,} {words.areas} reconstructed; "
            f"in {int(certain.sum()):,} the reconstruction is the only one."
        ]
        if known:
            target = AttackTarget.of(people, reconstruction.variability if choices.variability else None)
            rates = reidentification_rows(
                NO_DEFENSE, records, exact_attacker(people, choices.seed), target, choices.seed
            )
            agreement = agreement_rows(NO_DEFENSE, records, people)
            matched = {"agreement": agreement, "reidentification": rates, "uniques": unique_rows(people)}
            frames |= in_words(matched, words)
            summary.append(
                f"{share_text(agreement['binned_percent'][0].as_py())} of the persons are in the reconstruction with their {words.known} and {words.target}."
            )
        document = {
            "kind": "own reconstruction", "data": str(data), "records_known": known, "persons": int(reconstruction.population.sum()), "areas": len(low),
            "tables": [table.name for table in lines.tables], "conflicts": len(conflicts), "variability": choices.variability,
            "unknown": int((reconstruction.status == "unknown").sum()), "certain_areas": int(certain.sum()), "populated": int(populated.sum()),
            "seed": choices.seed, "words": asdict(words),
        }  # fmt: skip
        return write_attack(
            out, frames, document, own_reconstruction_page, summary, parquet=("reconstruction", "records", "tables"),
            meaning=lambda column: own_meaning(words, column),
        )  # fmt: skip


def rank_own_records(
    data: Path,
    out: Path,
    config: TopdownConfig,
    names: AttackNames,
    queries: Sequence[str],
    choices: RankChoices,
    observer: Observer,
) -> Evaluated:
    """Rank types of persons of some areas of an own schema from tables of half of their records, beside rankings by the records of others."""
    require_own_choices(replace(choices.attack, tables=None))
    schema = OwnSchema.of(config, names, queries, choices.attack.tables)
    lines, words = schema.lines, own_words(schema)
    if (data / "manifest.json").is_file():
        raise UsageError(
            f"{data}: a finished run; half of the records of an area are tabulated and the others stand beside them, which needs the records themselves; "
            "fix: give the folder of the records, or `attack reconstruct` for published counts"
        )
    with evaluation_folder(out, {"kind": "ranking"}):
        with observer.stage("read persons"):
            truth, _ = read_own_records(schema, data, observer)
        around = {level: truth.areas(level)[1] for level in truth.table_levels}
        seeds = np.arange(len(truth.blocks))
        with observer.stage("rank"):
            every = ranked_areas(
                truth, lines, (truth.blocks, seeds), around, replace(choices, level=lines.area), observer
            )
        return write_ranking(
            data,
            out,
            truth,
            lines,
            every,
            replace(choices, level=lines.area),
            lambda column: own_meaning(words, column),
        )
