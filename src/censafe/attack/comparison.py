"""CONFIDENTIAL. ``censafe attack compare``: defenses on the same records, their errors, and what an attacker still finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array

from censafe.attack.defenses.intervals import TableIntervals
from censafe.attack.defenses.recoding import MergedCategories
from censafe.attack.defenses.registry import Defense, Publish, TableAreas, parse_defense
from censafe.attack.matching.attackers import Attacker
from censafe.attack.matching.rates import AttackTarget, agreement_rows, reidentification_rows, unique_rows
from censafe.attack.pages.comparison import comparison_page
from censafe.attack.people import People
from censafe.attack.reading import read_people
from censafe.attack.reconstruction.problem import NO_LIMIT
from censafe.attack.reconstruction.solve import BlockTables, Reconstruction, SolveChoices, reconstruct
from censafe.attack.results import reconstructed_people
from censafe.attack.study import AttackChoices, attackers_of, share_text, workload_of, write_columns
from censafe.attack.tables import Workload, tabulate_lines
from censafe.errors import UsageError
from censafe.evaluation.confidential import evaluation_folder
from censafe.evaluation.outputs import Evaluated, write_document, write_frame, write_page
from censafe.model.observer import Observer
from censafe.products.registry import planner_of, recipe_of
from censafe.products.run.options import ReadOptions, RunOptions

__all__ = ["compare_defenses_on"]

_LEVELS: Final = {"block": 15, "tract": 11, "county": 5}
_NO_DEFENSE: Final = "exact tables"
_COARSE_SECONDS: Final = 5.0
_Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Attacked:
    """A defense after the attack.

    Args:
        defense: None for exact tables.
        people: published or reconstructed records, in the blocks of the truth.
        found: the reconstruction; None where microdata are attacked as they are.
        errors: mean absolute error of the lines that are not 0 in truth, and share of them that is withheld, in percent, by level.
        claim: formal privacy, in words.
    """

    defense: Defense | None
    people: People
    found: Reconstruction | None
    errors: dict[str, tuple[float, float]] = field(repr=False)
    claim: str = ""

    @property
    def name(self) -> str:
        """As it stands in the files."""
        return _NO_DEFENSE if self.defense is None else self.defense.spec


@dataclass(frozen=True, eq=False)
class _Study:
    """What all defenses have in common.

    Args:
        data: of the true records.
        out: folder of the evaluation.
        truth: the true records.
        workload: lines of the tables of blocks.
        choices: of the attack.
        observer: receives stages.
    """

    data: Path
    out: Path
    truth: People
    workload: Workload
    choices: AttackChoices
    observer: Observer

    def attacked(self, defense: Defense | None) -> _Attacked:
        """Apply a defense and attack what it publishes."""
        if defense is None:
            return self._exact(None, self.truth, "")
        if defense.swap is not None:
            people, claim = defense.swap(self.truth, self.choices.seed)
            return self._exact(defense, people.within(self.truth.blocks), claim or defense.claim)
        if defense.recode is not None:
            return self._recoded(defense, defense.recode)
        if defense.tables is not None:
            return self._coarse(defense, defense.tables)
        people = read_people(self._run(defense) if defense.folder is None else defense.folder)
        return _Attacked(defense, people.within(self.truth.blocks), None, self._errors(people), defense.claim)

    def _exact(self, defense: Defense | None, people: People, claim: str) -> _Attacked:
        """Exact tables of some persons, reconstructed."""
        values = tabulate_lines(self.workload, people)
        found = reconstruct(self.workload, BlockTables.exact(values), self.choices.solving)
        records = reconstructed_people(found, self.workload.space, self.truth.blocks, self.choices.seed)
        return _Attacked(defense, records, found, self._errors(people), claim)

    def _recoded(self, defense: Defense, recode: MergedCategories) -> _Attacked:
        """Exact tables of persons with fewer categories."""
        space = self.workload.space
        rows = recode.rows(space.edges)
        workload = Workload(space, self.workload.lines, csr_array(self.workload.matrix[rows]))
        found = reconstruct(
            workload, BlockTables.exact(tabulate_lines(workload, self.truth)), self._quick(variability=False)
        )
        records = reconstructed_people(found, space, self.truth.blocks, self.choices.seed)
        return _Attacked(defense, records, found, self._errors(recode.people(self.truth)), defense.claim)

    def _coarse(self, defense: Defense, tables: Publish) -> _Attacked:
        """Tables of which every value is an interval; a published 0 is first taken to be one."""
        published = self._published(tables, np.arange(len(self.truth.blocks)))
        high = np.minimum(published.high, NO_LIMIT)
        zero = published.value == 0
        narrow = BlockTables(np.where(zero, 0, published.low), np.where(zero, 0, high))
        found = reconstruct(self.workload, narrow, self._quick(variability=bool((high[zero] == 0).all())))
        records = reconstructed_people(found, self.workload.space, self.truth.blocks, self.choices.seed)
        errors = {}
        for level in _LEVELS:
            area = _areas(self.truth.blocks, level)
            errors[level] = _error(self._published(tables, area), self._true(area))
        return _Attacked(defense, records, found, errors, defense.claim)

    def _quick(self, *, variability: bool) -> SolveChoices:
        seconds = min(self.choices.seconds, _COARSE_SECONDS)
        return SolveChoices(
            variability and self.choices.variability, False, True, seconds, self.choices.workers
        )

    def _published(self, tables: Publish, area: _Ints) -> TableIntervals:
        areas = TableAreas(self.truth, area[self.truth.block], self.workload, self._true(area))
        return tables(areas, self.choices.seed)

    def _true(self, area: _Ints) -> _Ints:
        return tabulate_lines(
            self.workload, self.truth, area[self.truth.block], int(area.max(initial=-1)) + 1
        )

    def _errors(self, people: People) -> dict[str, tuple[float, float]]:
        """Errors of the tables of some persons; persons in blocks without true persons count in their tract and county."""
        found = {}
        for level, digits in _LEVELS.items():
            own, names = (np.unique(one.blocks.astype(f"U{digits}")) for one in (self.truth, people))
            every = np.union1d(own, names)
            tables = [
                tabulate_lines(
                    self.workload,
                    one,
                    np.searchsorted(every, one.blocks.astype(f"U{digits}"))[one.block],
                    len(every),
                )
                for one in (people, self.truth)
            ]
            found[level] = _error(TableIntervals.exact(tables[0]), tables[1])
        return found

    def _run(self, defense: Defense) -> Path:
        """Run TopDown on the records with a test key."""
        folder = self.out / "releases" / defense.run
        states = np.unique(self.truth.blocks.astype("U2"))
        settings = {"root": "State"} if len(states) == 1 else {}
        options = RunOptions(test_key=self.choices.seed, confidence=planner_of("topdown").CONFIDENCE)
        folder.parent.mkdir(exist_ok=True)
        recipe_of("topdown").run(
            defense.run, self.data, folder, settings, ReadOptions(observer=self.observer), options
        )
        return folder


def compare_defenses_on(
    data: Path, out: Path, specs: Sequence[str], choices: AttackChoices, observer: Observer
) -> Evaluated:
    """Apply defenses to the same records, attack what each publishes, and put error and success of the attack side by side.

    Args:
        data: the true records; see :func:`~censafe.attack.reading.read_people`.
        out: a new or empty folder.
        specs: names of the defenses; see :data:`~censafe.attack.defenses.registry.DEFENSE_WORDS`.
        choices: of the attack.
        observer: receives stages.

    Raises:
        DataError: the records break a rule.
        UsageError: a defense is not there, or is named twice, or the folder holds something else.
    """
    defenses = [parse_defense(one) for one in specs]
    if not defenses or len(set(specs)) < len(specs):
        raise UsageError("name every defense once, and one at least, such as swap:LO or round:5")
    with evaluation_folder(out, {"kind": "comparison of defenses"}):
        with observer.stage("read persons"):
            truth = read_people(data)
            study = _Study(data, out, truth, workload_of(choices), choices, observer)
            attackers = attackers_of(truth, choices)
        every = []
        for defense in (None, *defenses):
            with observer.stage(_NO_DEFENSE if defense is None else defense.spec):
                every.append(study.attacked(defense))
        frames = _frames(every, attackers, truth, choices)
        files = [write_frame(out, name, frame) for name, frame in frames.items()]
        files.append(write_columns(out, frames))
        write_document(
            out,
            {
                "kind": "defenses",
                "data": str(data),
                "persons": len(truth),
                "blocks": len(truth.blocks),
                "seed": choices.seed,
            },
        )
        files += write_page(out, comparison_page(out))
        return Evaluated(_summary(frames["defenses"]), tuple(out / name for name in files))


def _frames(
    every: Sequence[_Attacked], attackers: Sequence[Attacker], truth: People, choices: AttackChoices
) -> dict[str, pa.Table]:
    """The files; exact tables come first."""
    exact = every[0].found
    target = AttackTarget.of(truth, exact.variability if exact is not None and choices.variability else None)
    rates = [
        reidentification_rows(one.name, one.people, attacker, target, choices.seed)
        for attacker in attackers
        for one in every
    ]
    return {
        "defenses": _defense_rows(every, truth, rates),
        "agreement": pa.concat_tables([agreement_rows(one.name, one.people, truth) for one in every]),
        "reidentification": pa.concat_tables(rates),
        "uniques": unique_rows(truth),
    }


def _areas(blocks: NDArray[np.str_], level: str) -> _Ints:
    return np.unique(blocks.astype(f"U{_LEVELS[level]}"), return_inverse=True)[1].ravel().astype(np.int64)


def _error(published: TableIntervals, true: _Ints) -> tuple[float, float]:
    """Mean absolute error of the lines that are not 0 in truth, a withheld one read as 0, and the share of these that is withheld."""
    here = true > 0
    shown = published.value[here] >= 0
    difference = np.abs(np.where(shown, published.value[here], 0) - true[here])
    return float(difference.mean()) if here.any() else 0.0, 100 * float(
        1 - shown.mean()
    ) if here.any() else 0.0


def _defense_rows(every: Sequence[_Attacked], truth: People, rates: Sequence[pa.Table]) -> pa.Table:
    """A row for each defense: errors, agreement, certainty, and precision on those whom guessing misses, beyond the guesser."""
    rows: list[dict[str, Any]] = []
    populated = truth.population > 0
    for one, table in zip(
        every, rates, strict=False
    ):  # the first attacker knows block, sex and age of everybody
        found = {
            row["data"]: row
            for row in table.to_pylist()
            if (row["population_attacked"], row["block_size"]) == ("nonmodal unique", "all")
        }
        own, guess = found[one.name], found["proportional guesser, target left out"]
        agree = agreement_rows(one.name, one.people, truth).to_pylist()[0]
        known = None if one.found is None else ~np.isnan(one.found.variability) & populated
        rows.append(
            {"defense": one.name, "does": "nothing" if one.defense is None else one.defense.words, "keeps": "everything" if one.defense is None else one.defense.keeps,
             "claim": one.claim}
            | {f"error_{level}": value for level, (value, _) in one.errors.items()}
            | {f"withheld_{level}_percent": value for level, (_, value) in one.errors.items()}
            | {
                "binned_percent": agree["binned_percent"],
                "certain_percent": None if one.found is None or known is None or not known.any()
                else 100 * float((one.found.variability[known] == 0).sum() / populated.sum()),
                "putative_percent": own["putative_percent"], "confirmed_percent": own["confirmed_percent"], "precision": own["precision"],
                "guesser_precision": guess["precision"],
                "beyond_guessing": None if own["precision"] is None or guess["precision"] is None else own["precision"] - guess["precision"],
                "confirmed_beyond_guessing": own["confirmed_percent"] - guess["confirmed_percent"] if own["records"] else None,
            }
        )  # fmt: skip
    return pa.Table.from_pylist(rows)


def _summary(defenses: pa.Table) -> tuple[str, ...]:
    lines = [
        "CONFIDENTIAL. Race and origin of the persons whom guessing misses most, by an attacker who knows block, sex and age; mean absolute error of tract counts."
    ]
    lines += [
        f"  {row['defense']}: right in {share_text(row['precision'])} of the matches (guessing {share_text(row['guesser_precision'])}), error {row['error_tract']:.2f}"
        for row in defenses.to_pylist()
    ]
    return tuple(lines)
