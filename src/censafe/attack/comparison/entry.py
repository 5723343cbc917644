"""CONFIDENTIAL. ``censafe attack compare``: defenses on the same records, their errors, and what an attacker still finds."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from censafe.attack.comparison.files import read_reconstruction, write_published, write_reconstruction
from censafe.attack.comparison.published import (
    VOTING_AGE_KEYS,
    AttackKeys,
    LevelTables,
    LineErrors,
    PublishedData,
    by_voting_age,
    changed_data,
    data_of_people,
    perturbed_data,
    redistricting_lines,
    swapped_data,
    table_errors,
)
from censafe.attack.comparison.releases import published_data, require_dhc_records, run_topdown
from censafe.attack.defenses.households import Households
from censafe.attack.defenses.named import Defense
from censafe.attack.defenses.registry import parse_defense
from censafe.attack.matching import (
    GUESSER,
    Attacker,
    AttackTarget,
    agreement_rows,
    reidentification_rows,
    unique_rows,
)
from censafe.attack.pages import comparison_page
from censafe.attack.people import AttackedRecords, People, block_size_class
from censafe.attack.reading import read_people
from censafe.attack.reconstruction.solve import Reconstruction, SolveChoices, reconstruct
from censafe.attack.results import (
    CENSUS_WORDS,
    ComparisonWords,
    in_words,
    percentile_frame,
    reconstructed_people,
)
from censafe.attack.study import AttackChoices, attackers_of, share_text, workload_of, write_attack
from censafe.attack.tables import CountedLines, Workload
from censafe.errors import UsageError
from censafe.evaluation.confidential import evaluation_folder
from censafe.evaluation.outputs import Evaluated
from censafe.model.observer import Observer, work_done
from censafe.model.safe_text import file_name
from censafe.population.synthetic.dhc import synthesize_dhc
from censafe.privacy.keys import TestKey, keyed_commitment
from censafe.publication.atomic import sha256_file

NO_DEFENSE: Final = "exact tables"
EXACT_REDISTRICTING: Final = Defense(
    "exact redistricting data",
    "race, origin and voting age of every person by block, without protection",
    "everything",
)
"""What protected redistricting data are beside."""
_COARSE_SECONDS: Final = 5.0
_SYMBOLS: Final = re.compile(r"[^A-Za-z0-9]+")


@dataclass(frozen=True, eq=False)
class AttackedDefense:
    """A defense after the attack."""

    defense: Defense | None
    people: AttackedRecords
    reconstruction: Reconstruction | None
    keys: AttackKeys
    errors: Mapping[str, LineErrors] = field(repr=False)
    claim: str = ""
    folder: str = ""

    @property
    def name(self) -> str:
        """As it stands in the files."""
        return NO_DEFENSE if self.defense is None else self.defense.spec


@dataclass(frozen=True, eq=False)
class DefenseStudy(ABC):
    """What all defenses have in common.

    Args:
        read: what was published before, by defense.
    """

    data: Path
    out: Path
    truth: AttackedRecords
    workload: CountedLines
    choices: AttackChoices
    observer: Observer
    read: Mapping[str, PublishedData]

    @property
    def words(self) -> ComparisonWords:
        """What areas, quasi-identifiers and target are called."""
        return CENSUS_WORDS

    def published(self, defense: Defense | None) -> PublishedData:
        """What a defense publishes; exact tables without one."""
        lines, truth, seed = self.workload, self.truth, self.choices.seed
        if defense is None:
            return data_of_people(lines, truth, microdata=False)
        if defense.swap is not None:
            return swapped_data(lines, truth, defense, seed)
        if defense.tables is not None:
            return perturbed_data(lines, truth, defense, seed)
        return replace(self.read.get(defense.spec) or self.released(defense.run), claim=defense.claim)

    @abstractmethod
    def released(self, config: str) -> PublishedData:
        """What a run of TopDown on the records publishes."""

    @abstractmethod
    def records(self, reconstruction: Reconstruction, codes: NDArray[np.str_]) -> AttackedRecords:
        """The records of a reconstruction of areas."""

    def errors(self, published: PublishedData) -> Mapping[str, LineErrors]:
        """Errors of what is published, by level."""
        return table_errors(self.workload, self.truth, published)

    def references(self, attacked: Sequence[AttackedDefense]) -> list[AttackedDefense]:
        """What stands beside exact tables to compare some of the defenses with."""
        return []

    def attacked(self, defense: Defense | None) -> AttackedDefense:
        """Apply a defense, write what it publishes, and attack that; a reconstruction that an earlier start stored is read."""
        published = self.published(defense)
        spec = NO_DEFENSE if defense is None else defense.spec
        name = f"published/{file_name(spec) if defense is not None and defense.folder is not None else _SYMBOLS.sub('-', spec)}"
        if defense is not None and defense.points is not None:
            name += f"-{defense.points.digest[:8]}"  # another file under the same name is another defense
        write_published(self.out / name, self.workload, published)
        people, reconstruction = published.people, None
        if published.attacked is not None:
            codes = published.attacked.codes
            reconstruction = read_reconstruction(self.out / name, self.workload, codes)
            if reconstruction is None:
                reconstruction = self.solved(defense, published.attacked)
                write_reconstruction(self.out / name, reconstruction, self.workload, codes)
            people = self.records(reconstruction, codes)
        if people is None:
            raise ValueError("what was published has neither records nor tables")
        return AttackedDefense(
            defense,
            people.within(self.truth.blocks),
            reconstruction,
            published.keys,
            self.errors(published),
            published.claim,
            name,
        )

    def solved(self, defense: Defense | None, published: LevelTables) -> Reconstruction:
        """Records whose tables are the published ones. Where values are ranges of counts, a published 0 is first taken to be one."""
        low, high, workload = published.tables.low, published.tables.high, self.workload
        published_areas = np.asarray((published.tables.value > 0).any(axis=1))
        high = np.where(
            published_areas[:, None], high, 0
        )  # an area without any published count has no records
        if np.array_equal(low, high):
            solving = self.choices.solving
            if (
                defense is not None and defense.folder is not None
            ):  # tables of others need not agree with each other
                solving = replace(solving, nearest=True)
            return reconstruct(workload, low, high, solving)
        zero = published.tables.value == 0
        quick = self.quick(variability=bool((high[zero] == 0).all()))
        reconstruction = reconstruct(workload, np.where(zero, 0, low), np.where(zero, 0, high), quick)
        return replace(
            reconstruction, variability=np.where(published_areas, reconstruction.variability, np.nan)
        )

    def quick(self, *, variability: bool) -> SolveChoices:
        """Choices for values that are not exact: the nearest records where none fit, in little time."""
        seconds = min(self.choices.seconds, _COARSE_SECONDS)
        return SolveChoices(
            variability and self.choices.variability, False, True, seconds, self.choices.workers
        )


@dataclass(frozen=True, eq=False)
class CensusStudy(DefenseStudy):
    """Persons of U.S. blocks."""

    truth: People
    workload: Workload

    def records(self, reconstruction: Reconstruction, codes: NDArray[np.str_]) -> People:
        """Persons, with an age drawn from the class of each."""
        return reconstructed_people(reconstruction, self.workload.space, codes, self.choices.seed)

    def errors(self, published: PublishedData) -> Mapping[str, LineErrors]:
        """Errors by level, also those of race, origin and voting age alone."""
        return table_errors(self.workload, self.truth, published, redistricting_lines(self.workload))

    def references(self, attacked: Sequence[AttackedDefense]) -> list[AttackedDefense]:
        """Exact redistricting data beside protected ones: race, origin and voting age of all persons in every block."""
        if not any(one.keys.race_alone for one in attacked):
            return []
        people = by_voting_age(self.truth)
        hidden = ~redistricting_lines(self.workload)
        published = data_of_people(self.workload, people, VOTING_AGE_KEYS, microdata=True, hidden=hidden)
        return [AttackedDefense(EXACT_REDISTRICTING, people, None, published.keys, self.errors(published))]

    def solved(self, defense: Defense | None, published: LevelTables) -> Reconstruction:
        """Records whose tables are the published ones; recoded tables are lines over the categories that are written."""
        if defense is None or defense.recode is None:
            return super().solved(defense, published)
        tables, quick = published.tables, self.quick(variability=False)
        rows = defense.recode.rows(self.workload.space.edges)
        return reconstruct(self.workload, tables.low, tables.high, quick, rows=rows)

    def published(self, defense: Defense | None) -> PublishedData:
        """What a defense publishes; exact tables without one."""
        if defense is not None and defense.change is not None:
            return changed_data(self.workload, self.truth, defense, self.choices.seed)
        if defense is not None and defense.recode is not None:
            keys = AttackKeys.of_categories(defense.recode)
            recoded = defense.recode.people(self.truth)
            return replace(data_of_people(self.workload, recoded, keys, microdata=False), claim=defense.claim)
        return super().published(defense)

    def released(self, config: str) -> PublishedData:
        """The microdata of a run with a test key."""
        folder = self.out / "releases" / config
        one_state = len(np.unique(self.truth.blocks.astype("U2"))) == 1
        settings = {"root": "State"} if one_state and config.endswith("-us") else {}
        run_topdown(config, self.data, folder, settings, self.choices.seed, self.observer)
        return published_data(folder, self.workload)


def require_defenses(specs: Sequence[str]) -> None:
    """Refuse a comparison of nothing, or of one defense twice."""
    if not specs or len(set(specs)) < len(specs):
        raise UsageError("name every defense once, and one at least, such as swap:LO or round:5")


def compare_defenses_on(
    data: Path, out: Path, specs: Sequence[str], choices: AttackChoices, observer: Observer
) -> Evaluated:
    """Apply defenses to the same records, attack what each publishes, and put error and success of the attack side by side.

    The same call continues a comparison that was stopped, and one with further defenses adds them.
    """
    require_defenses(specs)
    defenses = [parse_defense(one) for one in specs]
    workload = workload_of(choices)
    for defense in defenses:  # before anything is written
        if defense.run:
            require_dhc_records(data, defense.spec)
    read = {
        defense.spec: published_data(defense.folder, workload)
        for defense in defenses
        if defense.folder is not None
    }
    with observer.stage("read persons"):
        truth = read_people(data)
        attackers = attackers_of(truth, choices)
        if any(one.spec.startswith("swap:") for one in defenses):
            Households.of(truth)  # refuses persons without households
        for defense in defenses:
            if defense.points is not None:
                defense.points.of(truth.blocks)  # refuses blocks without points
    with evaluation_folder(out, comparison_identity(vars(truth).values(), choices)):
        return compared(CensusStudy(data, out, truth, workload, choices, observer, read), defenses, attackers)


def compared(
    study: DefenseStudy, defenses: Sequence[Defense], attackers: Sequence[Attacker], **facts: Any
) -> Evaluated:
    """Attack the exact tables and what each defense publishes, and write what came of it.

    Args:
        facts: further entries of the document.
    """
    observer, truth, words = study.observer, study.truth, study.words
    every = []
    with observer.stage("attack the defenses"):
        done = work_done(observer, len(defenses) + 1, "defenses")
        for number, applied in enumerate((None, *defenses), 1):
            with observer.stage(NO_DEFENSE if applied is None else applied.spec):
                every.append(study.attacked(applied))
            done(number)
    every[1:1] = study.references(every)
    frames = in_words(_frames(every, attackers, study), words)
    document = {
        "kind": "defenses",
        "data": str(study.data),
        "persons": len(truth),
        words.areas_key: len(truth.blocks),
        "defenses": len(defenses),
        "tables": list(dict.fromkeys(study.workload.names)),
        "seed": study.choices.seed,
        **facts,
    }
    lines = _summary(frames["defenses"], words)
    return write_attack(study.out, frames, document, comparison_page, lines, parquet=frames, words=words)


def comparison_identity(
    columns: Iterable[NDArray[Any]], choices: AttackChoices, settings: str = ""
) -> dict[str, str]:
    """What calls for one folder have in common: records, tables, attackers and seed; the number of processes does not matter.

    Args:
        columns: of the records.
        settings: by which they were read.
    """
    files = [None if path is None else sha256_file(path) for path in (choices.tables, choices.attacker)]
    chosen = replace(choices, workers=1, tables=None, attacker=None)
    with TestKey(0) as key:
        records = b"|".join(np.ascontiguousarray(column).tobytes() for column in columns)
        options = json.dumps([astuple(chosen), files], default=str) + settings
        commitments = {
            "records": keyed_commitment(key, records).hex(),
            "options": keyed_commitment(key, options.encode()).hex(),
        }
    return {"kind": "comparison of defenses", **commitments}


def _frames(
    every: Sequence[AttackedDefense],
    attackers: Sequence[Attacker],
    study: DefenseStudy,
) -> dict[str, pa.Table]:
    """The files; exact tables come first."""
    truth, choices = study.truth, study.choices
    exact = every[0].reconstruction
    target = AttackTarget.of(truth, exact.variability if exact is not None and choices.variability else None)
    rates = {one.name: _rates(one, attackers, target, choices.seed) for one in every}
    guessers = rates[NO_DEFENSE].filter(pc.not_equal(rates[NO_DEFENSE]["data"], NO_DEFENSE))
    own = [table.filter(pc.equal(table["data"], name)) for name, table in rates.items()]
    agreement = {
        defense.name: agreement_rows(
            defense.name, defense.keys.rewritten(defense.people), defense.keys.rewritten(truth)
        )
        for defense in every
    }
    known = [
        named_frame(percentile_frame(reconstruction), one.name)
        for one in every
        if (reconstruction := _known(one)) is not None
    ]
    frames = {
        "defenses": _defense_rows(every, study.words.risk, pa.concat_tables([*own, guessers]), agreement),
        "agreement": pa.concat_tables(agreement.values()),
        "reidentification": pa.concat_tables([*own, guessers]),
        "uniques": unique_rows(truth),
    }
    return frames | ({"variability": pa.concat_tables(known)} if known else {})


def _rates(
    attacked: AttackedDefense, attackers: Sequence[Attacker], target: AttackTarget, seed: int
) -> pa.Table:
    """Rates of all attackers, who match by what is published; blocks published together have the size of their area."""
    people = attacked.keys.rewritten(target.people)
    own = replace(target, people=people, size=block_size_class(people.population))
    published = attacked.keys.rewritten(attacked.people)
    return pa.concat_tables(
        [
            reidentification_rows(
                attacked.name,
                published,
                replace(attacker, people=attacked.keys.rewritten(attacker.people)),
                own,
                seed,
            )
            for attacker in attackers
        ]
    )


def named_frame(frame: pa.Table, name: str) -> pa.Table:
    """A frame with the name of the data as first column."""
    return frame.add_column(0, "data", pa.array([name] * frame.num_rows, pa.string()))


def _known(attacked: AttackedDefense) -> Reconstruction | None:
    """The reconstruction where its variability is known of most populated blocks; None otherwise."""
    if attacked.reconstruction is None or not attacked.reconstruction.population.any():
        return None
    populated = attacked.reconstruction.population > 0
    return (
        attacked.reconstruction
        if np.isnan(attacked.reconstruction.variability[populated]).mean() < 0.5
        else None
    )


def _defense_rows(
    every: Sequence[AttackedDefense],
    risk: str,
    rates: pa.Table,
    agreement: Mapping[str, pa.Table],
) -> pa.Table:
    """A row for each defense: errors, agreement, certainty, and precision on those whom guessing misses, beyond the guesser."""
    own_rates = {
        row["data"]: row
        for row in rates.to_pylist()
        if (row["attacker"], row["population_attacked"], row["block_size"]) == ("exact", risk, "all")
    }
    guess = own_rates[GUESSER]
    rows = []
    for attacked in every:
        own, errors, done, certain = (
            own_rates[attacked.name],
            attacked.errors,
            attacked.defense,
            _known(attacked),
        )
        row: dict[str, Any] = {
            "defense": attacked.name, "family": "" if done is None else done.family, "strength": None if done is None or not done.family else float(done.strength),
            "does": "nothing" if done is None else done.words, "keeps": "everything" if done is None else done.keeps, "claim": attacked.claim, "matched_by": attacked.keys.words,
        }  # fmt: skip
        for column, value in (
            ("error_{}", "mean"),
            ("race_error_{}", "race_mean"),
            ("withheld_{}_percent", "withheld"),
        ):
            values = {level: getattr(error, value) for level, error in errors.items()}
            row |= {column.format(level): own for level, own in values.items() if own is not None}
        row |= {
            "binned_percent": agreement[attacked.name].to_pylist()[0]["binned_percent"],
            "certain_percent": None if certain is None else 100 * float((certain.variability[certain.population > 0] == 0).mean()),
            "persons_at_risk": own["records"],
            "putative_percent": own["putative_percent"], "confirmed_percent": own["confirmed_percent"], "precision": own["precision"],
            "guesser_precision": guess["precision"],
            "beyond_guessing": None if own["precision"] is None or guess["precision"] is None else own["precision"] - guess["precision"],
            "confirmed_beyond_guessing": own["confirmed_percent"] - guess["confirmed_percent"] if own["records"] else None,
            "folder": attacked.folder,
        }  # fmt: skip
        rows.append(row)
    return pa.Table.from_pylist(rows)


def _summary(defenses: pa.Table, words: ComparisonWords) -> tuple[str, ...]:
    level = words.levels[:2][-1]
    target = words.target[0].upper() + words.target[1:]
    lines = [
        f"CONFIDENTIAL. {target} of the persons whom guessing misses most, by an attacker who knows {words.known}; mean absolute error of {level} counts."
    ]
    lines += [
        f"  {row['defense']}: right in {share_text(row['precision'])} of the matches (guessing {share_text(row['guesser_precision'])}), error {row[f'error_{level}']:.2f}"
        for row in defenses.to_pylist()
    ]
    return tuple(lines)


_DEMO_SHARE: Final = (
    300  # of the persons of the demonstration, so that an attack on all defenses takes ten seconds
)
_DEMO_LEAST: Final = 1_000
_DEMO_SECONDS: Final = 20.0  # many times what a block takes, so that results are the same on a slow machine
_DEMO_DEFENSES: Final = (
    "swap:LO",
    "swap:HI",
    "round:3",
    "round:5",
    "suppress:threshold=3",
    "topdown:pl94-us",
)


def demonstrate_defenses(
    out: Path, persons: int, state: str, seed: int, observer: Observer
) -> tuple[str, Mapping[str, str]]:
    """Draw a few thousand persons of a state, apply defenses to them, and attack what each publishes."""
    observer.remark("attack and defenses")
    records, place = out / "records", out / "attack"
    with observer.stage("synthetic records"):
        synthesize_dhc(records, persons=max(_DEMO_LEAST, persons // _DEMO_SHARE), states=(state,), seed=seed)
    choices = AttackChoices(seconds=_DEMO_SECONDS, seed=seed)
    evaluated = compare_defenses_on(records, place, _DEMO_DEFENSES, choices, observer)
    return "\n".join(evaluated.lines), {
        "attack/report.html": "which defense hides whom, and at what price: all of them attacked (open in a browser)"
    }
