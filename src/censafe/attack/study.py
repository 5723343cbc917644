"""CONFIDENTIAL. ``censafe attack reconstruct``: tables of the true records attacked from end to end, and everything that was found, as files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from censafe.attack.matching.attackers import Attacker, exact_attacker, given_attacker, noisy_attacker
from censafe.attack.matching.rates import AttackTarget, agreement_rows, reidentification_rows, unique_rows
from censafe.attack.pages.reconstruction import reconstruction_page
from censafe.attack.people import People
from censafe.attack.reading import read_attacker, read_people
from censafe.attack.reconstruction.solve import BlockTables, Reconstruction, SolveChoices, reconstruct
from censafe.attack.results import (
    COLUMNS,
    line_frame,
    percentile_frame,
    reconstructed_people,
    reconstruction_frame,
    table_frame,
    variability_frame,
)
from censafe.attack.tables import Workload, block_workload, read_line_tables, tabulate_lines
from censafe.errors import UsageError
from censafe.evaluation.confidential import evaluation_folder
from censafe.evaluation.outputs import Evaluated, write_document, write_frame, write_page
from censafe.model.observer import Observer
from censafe.model.safe_text import csv_text
from censafe.publication.atomic import atomic_text

__all__ = [
    "AttackChoices",
    "attackers_of",
    "reconstruct_records",
    "share_text",
    "workload_of",
    "write_columns",
]

_PARQUET: Final = ("reconstruction", "variability", "tables")


@dataclass(frozen=True)
class AttackChoices:
    """How records are attacked.

    Args:
        without: tables of blocks that are left out.
        tables: TOML file with tables in place of the 18 of the 2010 Summary File; None without.
        agreement: share of the records of the noisy attacker that agree with the truth, above 0 and at most 1.
        attacker: a file with person_id, block, sex and age of an attacker; None without.
        variability: whether the variability of every block is computed.
        claims: whether it is proven how many persons of each type every consistent data set has.
        seconds: limit of one integer program.
        workers: processes.
        seed: of orders, ages within classes and the noisy attacker.
    """

    without: Sequence[str] = ()
    tables: Path | None = None
    agreement: float = 0.371
    attacker: Path | None = None
    variability: bool = True
    claims: bool = False
    seconds: float = 60.0
    workers: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.agreement <= 1:
            raise UsageError(f"agreement: {self.agreement:g} is no share; allowed: above 0 and at most 1")
        if self.tables is not None and self.without:
            raise UsageError(
                "`without` leaves out tables of the 2010 Summary File; leave those of your own out of their file"
            )

    @property
    def solving(self) -> SolveChoices:
        """What is asked of every block."""
        return SolveChoices(self.variability, self.claims, seconds=self.seconds, workers=self.workers)


def workload_of(choices: AttackChoices) -> Workload:
    """The lines of the tables of blocks that are attacked.

    Raises:
        ConfigError: a table that is not there, or a file of tables that breaks a rule.
    """
    if choices.tables is None:
        return block_workload(choices.without)
    tables = [one for one in read_line_tables(choices.tables).values() if one.level == "block"]
    if not tables:
        raise UsageError(
            f'{choices.tables}: there is no table of blocks; allowed: tables with level = "block"'
        )
    return Workload.of(tables)


def attackers_of(truth: People, choices: AttackChoices) -> tuple[Attacker, ...]:
    """The attacker who knows everything but race and origin, the one with errors, and a file where one is given.

    Raises:
        DataError: the file does not fit the truth.
    """
    found = [exact_attacker(truth, choices.seed), noisy_attacker(truth, choices.agreement, choices.seed)]
    if choices.attacker is not None:
        found.append(given_attacker(read_attacker(choices.attacker), truth))
    return tuple(found)


def reconstruct_records(data: Path, out: Path, choices: AttackChoices, observer: Observer) -> Evaluated:
    """Tabulate true records by block, reconstruct them, and match the reconstruction with what attackers know.

    Args:
        data: the true records; see :func:`~censafe.attack.reading.read_people`.
        out: a new or empty folder.
        choices: how.
        observer: receives stages.

    Raises:
        DataError: the records break a rule.
        UsageError: the folder holds something else.
    """
    workload = workload_of(choices)
    with evaluation_folder(out, {"kind": "reconstruction"}):
        with observer.stage("read persons"):
            truth = read_people(data)
            attackers = attackers_of(truth, choices)
            repeated = len(truth) - len(attackers[0].people)
            if repeated:
                observer.remark(
                    f"{repeated:,} persons without a person_id, or with that of another in their block, are in the tables and not looked for."
                )
        with observer.stage("tabulate blocks"):
            values = tabulate_lines(workload, truth)
        with observer.stage("reconstruct blocks"):
            found = reconstruct(workload, BlockTables.exact(values), choices.solving)
        with observer.stage("match"):
            frames = _matched(truth, attackers, found, workload, choices)
        frames |= {"tables": table_frame(workload, values, truth.blocks), "lines": line_frame(workload)}
        files = [write_frame(out, name, frame, parquet=name in _PARQUET) for name, frame in frames.items()]
        files.append(write_columns(out, frames))
        write_document(out, _document(data, truth, found, workload, choices))
        files += write_page(out, reconstruction_page(out))
        return Evaluated(_summary(frames, found), tuple(out / name for name in files))


def _matched(
    truth: People,
    attackers: Sequence[Attacker],
    found: Reconstruction,
    workload: Workload,
    choices: AttackChoices,
) -> dict[str, pa.Table]:
    people = reconstructed_people(found, workload.space, truth.blocks, choices.seed)
    target = AttackTarget.of(truth, found.variability if choices.variability else None)
    rates = [reidentification_rows("reconstruction", people, one, target, choices.seed) for one in attackers]
    frames = {
        "reconstruction": reconstruction_frame(found, workload.space, truth.blocks),
        "agreement": agreement_rows("reconstruction", people, truth),
        "reidentification": pa.concat_tables(rates),
        "uniques": unique_rows(truth),
    }
    if choices.variability:
        frames |= {
            "variability": variability_frame(found, truth.blocks),
            "variability_percentiles": percentile_frame(found),
        }
    return frames


def write_columns(out: Path, frames: Mapping[str, pa.Table]) -> str:
    """Write ``codebook.csv``: every column of every file, what it means and in which unit."""
    rows = [
        (name, column, *COLUMNS[column])
        for name, frame in frames.items()
        for column in (*frame.column_names, "classification")
    ]
    atomic_text(out / "codebook.csv", csv_text([("file", "column", "meaning", "unit"), *rows]))
    return "codebook.csv"


def _document(
    data: Path, truth: People, found: Reconstruction, workload: Workload, choices: AttackChoices
) -> dict[str, Any]:
    known = ~np.isnan(found.variability)
    certain = known & (found.variability == 0) & (found.population > 0)
    return {
        "kind": "reconstruction",
        "data": str(data),
        "persons": len(truth),
        "blocks": len(truth.blocks),
        "tables": list(dict.fromkeys(workload.names)),
        "exact": int((found.status == "exact").sum()),
        "unknown": int((found.status == "unknown").sum() + (~known & (found.status == "exact")).sum())
        if choices.variability
        else None,
        "certain_blocks": int(certain.sum()),
        "certain_persons": int(found.population[certain].sum()),
        "proven": int(found.least.sum()) if choices.claims else None,
        "seed": choices.seed,
        "agreement": choices.agreement,
        "seconds": round(float(found.seconds.sum()), 3),
    }


def _summary(frames: Mapping[str, pa.Table], found: Reconstruction) -> tuple[str, ...]:
    rates = {
        (row["attacker"], row["data"], row["population_attacked"]): row
        for row in frames["reidentification"].to_pylist()
        if row["block_size"] == "all"
    }
    lines = [
        f"CONFIDENTIAL. {int((found.status == 'exact').sum()):,} of {len(found.status):,} blocks reconstructed."
    ]
    agree = frames["agreement"].to_pylist()[0]
    lines.append(
        f"{share_text(agree['binned_percent'])} of the persons are in the reconstruction with their sex, class of age, race and origin."
    )
    for population in ("all", "nonmodal unique"):
        own = rates["exact", "reconstruction", population]
        guess = rates["exact", "proportional guesser, target left out", population]
        lines.append(
            f"Who knows block, sex and age finds race and origin of {share_text(own['confirmed_percent'])} of {population.replace('all', 'all persons')}, "
            f"and is right in {share_text(own['precision'])} of the matches; guessing without their records: {share_text(guess['precision'])}."
        )
    return tuple(lines)


def share_text(value: float | None) -> str:
    """A percentage in a sentence.

    Example:
        >>> share_text(12.345), share_text(None)
        ('12.3%', 'none')
    """
    return "none" if value is None else f"{value:.1f}%"
