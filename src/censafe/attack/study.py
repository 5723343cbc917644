"""CONFIDENTIAL. ``censafe attack reconstruct``: tables attacked from end to end, with the true records or without, and all results as files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array

from censafe.attack.matching import (
    GUESSER,
    Attacker,
    AttackTarget,
    agreement_rows,
    attacker_of_file,
    exact_attacker,
    noisy_attacker,
    reidentification_rows,
    unique_rows,
)
from censafe.attack.pages import RECONSTRUCTION, reconstruction_page
from censafe.attack.people import AttackedRecords, People
from censafe.attack.published import PublishedTables, published_source, read_published_tables
from censafe.attack.reading import read_attacker, read_people
from censafe.attack.reconstruction.problem import BlockProblem, IncidenceOrder
from censafe.attack.reconstruction.solve import (
    INFEASIBLE,
    NEAREST,
    UNKNOWN,
    PartSolver,
    Reconstruction,
    SolveChoices,
    reconstruct,
)
from censafe.attack.reconstruction.tracts import reconstruct_tracts
from censafe.attack.results import (
    CENSUS_WORDS,
    ComparisonWords,
    column_meaning,
    in_words,
    line_frame,
    percentile_frame,
    reconstructed_people,
    reconstruction_frame,
    table_frame,
    tract_frame,
    variability_frame,
    write_wide_tables,
)
from censafe.attack.tables import CountedLines, Workload, chosen_tables, line_tables, read_line_tables
from censafe.errors import UsageError
from censafe.evaluation.confidential import evaluation_folder
from censafe.evaluation.outputs import (
    Evaluated,
    write_document,
    write_frame,
    write_frame_codebook,
    write_page,
)
from censafe.evaluation.pages.page import Page
from censafe.model.cells.lines import CensusTable
from censafe.model.observer import Observer, work_done

_MANY: Final = "three or more tables"
_Ints = NDArray[np.int64]


@dataclass
class ConflictFinder:
    """Finds the first table, or pair of tables, whose values no records of a block have.

    Types of persons that all lines of a pair count alike are one, so that a pair is a small problem; it is made once for all blocks.
    """

    workload: CountedLines
    seconds: float = 60.0
    _orders: dict[tuple[str, ...], tuple[_Ints, IncidenceOrder]] = field(default_factory=dict, repr=False)

    def first(self, low: _Ints, high: _Ints) -> str:
        """The first of a block in words, in the order of the tables: one table, two, or that it takes more.

        Args:
            low: of every line, shape (lines,).
            high: of every line, shape (lines,).

        Source: attack.md 12.
        """
        solver = PartSolver(self.seconds)
        tables = list(dict.fromkeys(self.workload.names))
        for names in (*combinations(tables, 1), *combinations(tables, 2)):
            lines, order = self._order(names)
            problem = BlockProblem.of(order, low[lines], high[lines])
            if not problem.feasible or any(
                solver.any_solution(part)[0] == INFEASIBLE for part in problem.parts()
            ):
                return " and ".join(names)
        return _MANY

    def _order(self, names: tuple[str, ...]) -> tuple[_Ints, IncidenceOrder]:
        if names not in self._orders:
            lines = np.flatnonzero(np.isin(self.workload.names, names))
            matrix = csr_array(self.workload.matrix[:, lines])
            marks = np.round(matrix @ np.random.default_rng(len(lines)).random(len(lines)), 9)
            different = np.unique(marks, return_index=True)[1]
            self._orders[names] = lines, IncidenceOrder.of(csr_array(matrix[np.sort(different)]))
        return self._orders[names]


_PARQUET: Final = ("reconstruction", "records", "variability", "tables", "tract_tables")
_LEVELS: Final[Mapping[str, tuple[str, ...]]] = {"b": ("block",), "bt": ("block", "tract")}


@dataclass(frozen=True)
class AttackChoices:
    """How records are attacked.

    Args:
        tables: TOML file with tables in place of the 18 of the 2010 Summary File; None without.
        agreement: share of the records of the noisy attacker that agree with the truth, above 0 and at most 1.
        attacker: a file with person_id, block, sex and age of an attacker; None without.
        claims: whether it is proven how many persons of each type every consistent data set has.
        nearest: whether the records whose tables differ least are taken where no records have the tables.
    """

    mode: str = "b"
    without: Sequence[str] = ()
    tables: Path | None = None
    agreement: float = 0.371
    attacker: Path | None = None
    variability: bool = True
    claims: bool = False
    nearest: bool = False
    seconds: float = 60.0
    workers: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.agreement <= 1:
            raise UsageError(f"agreement: {self.agreement:g} is not a share; allowed: above 0 and at most 1")
        if self.mode not in _LEVELS:
            raise UsageError(f"mode: {self.mode!r} is none; allowed: {', '.join(_LEVELS)}")
        if self.tables is not None and self.without:
            raise UsageError(
                "`without` leaves out tables of the 2010 Summary File; leave those of your own out of their file"
            )

    @property
    def solving(self) -> SolveChoices:
        """Choices for the solution of every block."""
        return SolveChoices(
            self.variability, self.claims, self.nearest, seconds=self.seconds, workers=self.workers
        )


def workload_of(choices: AttackChoices) -> Workload:
    """The lines of the tables of blocks that are attacked."""
    return Workload.of([one for one in _tables(choices).values() if one.lowest == "block"])


def _tables(choices: AttackChoices) -> Mapping[str, CensusTable]:
    """The tables that are attacked, by name."""
    levels = _LEVELS[choices.mode]
    if choices.tables is None:
        return chosen_tables(levels, choices.without)
    tables = {name: one for name, one in read_line_tables(choices.tables).items() if one.lowest in levels}
    for level in levels:
        if all(one.lowest != level for one in tables.values()):
            raise UsageError(
                f'{choices.tables}: there is no table of {level}s; allowed: tables with lowest = "{level}"'
            )
    return tables


def attackers_of(truth: People, choices: AttackChoices) -> tuple[Attacker, ...]:
    """The attacker with everything but race and origin, the one with errors, and a file where one is given."""
    attackers = [exact_attacker(truth, choices.seed), noisy_attacker(truth, choices.agreement, choices.seed)]
    if choices.attacker is not None:
        attackers.append(attacker_of_file(read_attacker(choices.attacker), truth))
    return tuple(attackers)


def reconstruct_records(data: Path, out: Path, choices: AttackChoices, observer: Observer) -> Evaluated:
    """Reconstruct records from tables, those of the true records or published ones; with true records, match the result with the data of attackers."""
    tables = _tables(choices)
    with evaluation_folder(out, {"kind": "reconstruction"}):
        truth: People | None = None
        attackers: tuple[Attacker, ...] = ()
        known = line_tables() if choices.tables is None else read_line_tables(choices.tables)
        source = published_source(data, known)
        if source is not None:
            if choices.attacker is not None:
                raise UsageError(
                    "an attacker's file is matched with true records, and these are tables; fix: leave out `attacker`, or give records"
                )
            observer.note(f"{data}: {source.words}.")
            with observer.stage("read tables"):
                published = read_published_tables(source, tables, known)
        else:
            with observer.stage("read persons"):
                truth = read_people(data)
                attackers = attackers_of(truth, choices)
                _remark_missing(truth, attackers, observer)
            with observer.stage("tabulate"):
                published = PublishedTables.of(truth, tables)

        def people_of(reconstruction: Reconstruction, ages: _Ints | None) -> People:
            space = published.workload.space
            return reconstructed_people(reconstruction, space, published.blocks, choices.seed, ages)

        return attack_tables(data, out, published, truth, attackers, people_of, choices, observer)


def _remark_missing(truth: People, attackers: Sequence[Attacker], observer: Observer) -> None:
    repeated = len(truth) - len(attackers[0].people)
    if repeated:
        observer.remark(
            f"{repeated:,} persons without a person_id, or with that of another in their block, are in the tables and not looked for."
        )
    elsewhere = sum(len(one.elsewhere) for one in attackers)
    if elsewhere:
        observer.remark(
            f"{elsewhere:,} records of the attacker's file are in blocks without persons; they are counted, and match no one."
        )


def attack_tables(
    data: Path,
    out: Path,
    published: PublishedTables[Any],
    truth: AttackedRecords | None,
    attackers: Sequence[Attacker],
    people_of: Callable[[Reconstruction, _Ints | None], AttackedRecords],
    choices: AttackChoices,
    observer: Observer,
    words: ComparisonWords = CENSUS_WORDS,
) -> Evaluated:
    """Reconstruct records from tables, match them with the true ones where there are any, and write all of it.

    Args:
        people_of: records of a reconstruction, with the lower end of the class of single years of each where tables of tracts determined it.
    """
    lines, low, high, blocks = published.workload, published.low, published.high, published.blocks
    tracts, name = None, words.areas_key
    with observer.stage(f"reconstruct {name}"):
        if published.lines is None:
            done = work_done(observer, len(blocks), name)
            reconstruction = reconstruct(lines, low, high, choices.solving, done)
        else:
            tracts = reconstruct_tracts(
                published.lines, low, published.tract_values, published.tract, choices.solving, choices.seed
            )
            reconstruction = tracts.records
        finder = ConflictFinder(lines, choices.seconds)
        wrong = np.flatnonzero(np.isin(reconstruction.status, (INFEASIBLE, NEAREST))).tolist()
        conflicts = [finder.first(low[one], high[one]) for one in wrong]
    with observer.stage("write" if truth is None else "match"):
        people = people_of(reconstruction, None if tracts is None else tracts.ages)
        frames = {
            "reconstruction": reconstruction_frame(reconstruction, lines, blocks),
            "records": people.frame(),
        }
        if truth is not None:
            target = AttackTarget.of(truth, reconstruction.variability if choices.variability else None)
            rates = [
                reidentification_rows(RECONSTRUCTION, people, attacker, target, choices.seed)
                for attacker in attackers
            ]
            frames |= {
                "agreement": agreement_rows(RECONSTRUCTION, people, truth),
                "reidentification": pa.concat_tables(rates),
                "uniques": unique_rows(truth),
            }
        if choices.variability:
            frames |= {
                "variability": variability_frame(reconstruction, blocks, lines.area),
                "variability_percentiles": percentile_frame(reconstruction),
            }
        if conflicts:
            frames["conflicts"] = pa.table({lines.area: blocks[wrong], "conflict": conflicts})
        frames |= {"tables": table_frame(lines, low, blocks, lines.area)}
        workloads: list[CountedLines] = [lines]
        if tracts is not None and published.lines is not None:
            workload = published.lines.tracts
            frames["tracts"] = tract_frame(tracts, published)
            frames["tract_tables"] = table_frame(workload, published.tract_values, published.tracts, "tract")
            workloads.append(workload)
        frames |= {"lines": pa.concat_tables(line_frame(one) for one in workloads)}
    known = ~np.isnan(reconstruction.variability)
    populated = reconstruction.population > 0
    certain = known & (reconstruction.variability == 0) & populated
    late = (reconstruction.status == UNKNOWN) | (
        choices.variability & ~known & (reconstruction.status == "exact")
    )
    document = {
        "kind": "reconstruction",
        "data": str(data),
        "mode": choices.mode,
        "records_known": truth is not None,
        "persons": int(reconstruction.population.sum()) if truth is None else len(truth),
        name: len(blocks),
        "populated": int(populated.sum()),
        "tables": [table for one in workloads for table in dict.fromkeys(one.names)],
        **{one: int((reconstruction.status == one).sum()) for one in ("exact", INFEASIBLE, NEAREST)},
        "unknown": int(late.sum()),
        "conflict": next(iter(conflicts), None),
        "variability": choices.variability,
        f"certain_{name}": int(certain.sum()),
        "certain_persons": int(reconstruction.population[certain].sum()),
        "proven": int(reconstruction.least.sum()) if choices.claims else None,
        "tracts_met": None if tracts is None else [int((tracts.status == "exact").sum()), len(tracts.status)],
        "seed": choices.seed,
        "agreement": choices.agreement,
        "seconds": round(float((reconstruction if tracts is None else tracts).seconds.sum()), 3),
        "workers": choices.workers,
        **({} if words.census else {"words": asdict(words)}),
    }
    return write_attack(
        out,
        in_words(frames, words),
        document,
        reconstruction_page,
        _summary(frames, document, words),
        parquet=_PARQUET,
        wide=published if words.census else None,
        words=words,
    )


def write_attack(
    out: Path,
    frames: Mapping[str, pa.Table],
    document: Mapping[str, Any],
    page: Callable[[Path], Page],
    lines: Sequence[str],
    *,
    parquet: Collection[str],
    wide: PublishedTables[Any] | None = None,
    words: ComparisonWords = CENSUS_WORDS,
) -> Evaluated:
    """Write frames, codebook, document and page of an attack.

    Args:
        parquet: frames that are written as Parquet as well.
        wide: tables that are written with one row an area; None without.
    """
    files = [write_frame(out, name, frame, parquet=name in parquet) for name, frame in frames.items()]
    if wide is not None:
        files += write_wide_tables(out, wide)
    columns = {name: frame.column_names for name, frame in frames.items()}
    files.append(write_frame_codebook(out, columns, partial(column_meaning, words)))
    write_document(out, document)
    files += write_page(out, page(out))
    return Evaluated(tuple(lines), tuple(out / name for name in files))


def _summary(
    frames: Mapping[str, pa.Table], document: Mapping[str, Any], words: ComparisonWords
) -> tuple[str, ...]:
    lines = [
        f"CONFIDENTIAL. {document['exact']:,} of {document[words.areas_key]:,} {words.areas} reconstructed."
    ]
    if not words.census and document["variability"]:
        lines.append(f"In {document[f'certain_{words.areas_key}']:,} the reconstruction is the only one.")
    if document["tracts_met"] is not None:
        met, tracts = document["tracts_met"]
        lines.append(f"In {met:,} of {tracts:,} tracts the records have all tables of the tract.")
    if document["conflict"] is not None:
        lines.append(
            f"{frames['conflicts'].num_rows:,} {words.areas} have tables that no records have; first conflict: {document['conflict']}. "
            + (
                "The records whose tables differ least were taken."
                if document[NEAREST]
                else "With `nearest` the records whose tables differ least are taken."
            )
        )
    if not document["records_known"]:
        return tuple(lines)
    rates = {
        (row["attacker"], row["data"], row["population_attacked"]): row
        for row in frames["reidentification"].to_pylist()
        if row["block_size"] == "all"
    }
    agree = frames["agreement"].to_pylist()[0]
    lines.append(
        f"{share_text(agree['binned_percent'])} of the persons are in the reconstruction with their {words.record}."
    )
    for population in ("all", words.risk):
        own = rates["exact", RECONSTRUCTION, population]
        guess = rates["exact", GUESSER, population]
        lines.append(
            f"Who knows {words.known} finds {words.target} of {share_text(own['confirmed_percent'])} of {population.replace('all', 'all persons')}, "
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
