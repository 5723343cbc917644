"""CONFIDENTIAL. ``censafe attack compare``: defenses on the same records, their errors, and what an attacker still finds."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_array

from censafe.attack.comparison.files import read_reconstruction, write_published, write_reconstruction
from censafe.attack.comparison.keys import VOTING_AGE_KEYS, AttackKeys, by_voting_age
from censafe.attack.comparison.published import (
    LevelTables,
    LineErrors,
    PublishedData,
    changed_data,
    data_of_people,
    perturbed_data,
    table_errors,
)
from censafe.attack.comparison.releases import published_data, require_dhc_records, run_topdown
from censafe.attack.defenses.households import Households
from censafe.attack.defenses.named import Defense
from censafe.attack.defenses.registry import parse_defense
from censafe.attack.matching.attackers import Attacker
from censafe.attack.matching.guessers import GUESSER
from censafe.attack.matching.rates import AttackTarget, agreement_rows, reidentification_rows, unique_rows
from censafe.attack.pages.comparison import comparison_page
from censafe.attack.people import People, block_size_class
from censafe.attack.reading import read_people
from censafe.attack.reconstruction.solve import Reconstruction, SolveChoices, reconstruct
from censafe.attack.results import percentile_frame, reconstructed_people
from censafe.attack.study import AttackChoices, attackers_of, share_text, workload_of, write_attack
from censafe.attack.tables import Workload
from censafe.errors import UsageError
from censafe.evaluation.confidential import evaluation_folder
from censafe.evaluation.outputs import Evaluated
from censafe.model.observer import Observer, work_done
from censafe.model.safe_text import file_name
from censafe.population.synthetic.dhc.writing import synthesize_dhc
from censafe.privacy.keys.run_keys import TestKey, keyed_commitment
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
    people: People
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
class DefenseStudy:
    """What all defenses have in common."""

    data: Path
    out: Path
    truth: People
    workload: Workload
    choices: AttackChoices
    observer: Observer

    def attacked(self, defense: Defense | None) -> AttackedDefense:
        """Apply a defense, write what it publishes, and attack that; a reconstruction that an earlier start stored is read."""
        published = self._published(defense)
        spec = NO_DEFENSE if defense is None else defense.spec
        name = f"published/{file_name(spec) if spec.startswith('published:') else _SYMBOLS.sub('-', spec)}"
        if defense is not None and defense.points is not None:
            name += f"-{defense.points.digest[:8]}"  # another file under the same name is another defense
        write_published(self.out / name, self.workload, published)
        people, reconstruction = published.people, None
        if published.attacked is not None:
            space, codes = self.workload.space, published.attacked.codes
            reconstruction = read_reconstruction(self.out / name, space, codes)
            if reconstruction is None:
                reconstruction = self._solved(defense, published.attacked)
                write_reconstruction(self.out / name, reconstruction, space, codes)
            people = reconstructed_people(reconstruction, space, codes, self.choices.seed)
        if people is None:
            raise ValueError("what was published has neither records nor tables")
        errors = table_errors(self.workload, self.truth, published)
        return AttackedDefense(
            defense,
            people.within(self.truth.blocks),
            reconstruction,
            published.keys,
            errors,
            published.claim,
            name,
        )

    def redistricting(self) -> AttackedDefense:
        """Exact redistricting data attacked: race, origin and voting age of all persons in every block, as the reference of protected ones."""
        people = by_voting_age(self.truth)
        published = data_of_people(self.workload, people, VOTING_AGE_KEYS, microdata=True)
        errors = table_errors(self.workload, self.truth, published)
        return AttackedDefense(EXACT_REDISTRICTING, people, None, published.keys, errors)

    def _published(self, defense: Defense | None) -> PublishedData:
        if defense is None:
            return data_of_people(self.workload, self.truth, microdata=False)
        if defense.change is not None:
            return changed_data(self.workload, self.truth, defense, self.choices.seed)
        if defense.tables is not None:
            return perturbed_data(self.workload, self.truth, defense, self.choices.seed)
        if defense.recode is not None:
            keys = AttackKeys.of_categories(defense.recode)
            recoded = defense.recode.people(self.truth)
            return replace(data_of_people(self.workload, recoded, keys, microdata=False), claim=defense.claim)
        folder = defense.folder if defense.folder is not None else self._run(defense.run)
        return replace(published_data(folder, self.workload), claim=defense.claim)

    def _run(self, config: str) -> Path:
        folder = self.out / "releases" / config
        one_state = len(np.unique(self.truth.blocks.astype("U2"))) == 1
        settings = {"root": "State"} if one_state and config.endswith("-us") else {}
        run_topdown(config, self.data, folder, settings, self.choices.seed, self.observer)
        return folder

    def _solved(self, defense: Defense | None, published: LevelTables) -> Reconstruction:
        """Records whose tables are the published ones. Where values are ranges of counts, a published 0 is first taken to be one."""
        low, high, workload = published.tables.low, published.tables.high, self.workload
        if defense is not None and defense.recode is not None:
            rows = defense.recode.rows(workload.space.edges)
            workload = replace(workload, matrix=csr_array(workload.matrix[rows]))
            return reconstruct(workload, low, high, self._quick(variability=False))
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
        quick = self._quick(variability=bool((high[zero] == 0).all()))
        reconstruction = reconstruct(workload, np.where(zero, 0, low), np.where(zero, 0, high), quick)
        return replace(
            reconstruction, variability=np.where(published_areas, reconstruction.variability, np.nan)
        )

    def _quick(self, *, variability: bool) -> SolveChoices:
        seconds = min(self.choices.seconds, _COARSE_SECONDS)
        return SolveChoices(
            variability and self.choices.variability, False, True, seconds, self.choices.workers
        )


RISK: Final = "nonmodal unique"


def compare_defenses_on(
    data: Path, out: Path, specs: Sequence[str], choices: AttackChoices, observer: Observer
) -> Evaluated:
    """Apply defenses to the same records, attack what each publishes, and put error and success of the attack side by side.

    The same call continues a comparison that was stopped, and one with further defenses adds them.
    """
    if not specs or len(set(specs)) < len(specs):
        raise UsageError("name every defense once, and one at least, such as swap:LO or round:5")
    defenses = [parse_defense(one) for one in specs]
    workload = workload_of(choices)
    for defense in defenses:  # before anything is written
        if defense.run:
            require_dhc_records(data, defense.spec)
        if defense.folder is not None:
            published_data(defense.folder, workload)
    with observer.stage("read persons"):
        truth = read_people(data)
        attackers = attackers_of(truth, choices)
        if any(one.spec.startswith("swap:") for one in defenses):
            Households.of(truth)  # refuses persons without households
        for defense in defenses:
            if defense.points is not None:
                defense.points.of(truth.blocks)  # refuses blocks without points
    with evaluation_folder(out, _identity(truth, choices)):
        study = DefenseStudy(data, out, truth, workload, choices, observer)
        every = []
        with observer.stage("attack the defenses"):
            done = work_done(observer, len(defenses) + 1, "defenses")
            for number, applied in enumerate((None, *defenses), 1):
                with observer.stage(NO_DEFENSE if applied is None else applied.spec):
                    every.append(study.attacked(applied))
                done(number)
        if any(one.keys.race_alone for one in every):
            every.insert(1, study.redistricting())
        frames = _frames(every, attackers, truth, choices)
        document = {
            "kind": "defenses",
            "data": str(data),
            "persons": len(truth),
            "blocks": len(truth.blocks),
            "defenses": len(defenses),
            "tables": list(dict.fromkeys(workload.names)),
            "seed": choices.seed,
        }
        lines = _summary(frames["defenses"])
        return write_attack(out, frames, document, comparison_page, lines, parquet=frames)


def _identity(truth: People, choices: AttackChoices) -> dict[str, str]:
    """What calls for one folder have in common: records, tables, attackers and seed; the number of processes does not matter."""
    files = [None if path is None else sha256_file(path) for path in (choices.tables, choices.attacker)]
    chosen = replace(choices, workers=1, tables=None, attacker=None)
    with TestKey(0) as key:
        records = b"|".join(np.ascontiguousarray(column).tobytes() for column in vars(truth).values())
        commitments = {
            "records": keyed_commitment(key, records).hex(),
            "options": keyed_commitment(
                key, json.dumps([astuple(chosen), files], default=str).encode()
            ).hex(),
        }
    return {"kind": "comparison of defenses", **commitments}


def _frames(
    every: Sequence[AttackedDefense], attackers: Sequence[Attacker], truth: People, choices: AttackChoices
) -> dict[str, pa.Table]:
    """The files; exact tables come first."""
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
        _named(percentile_frame(reconstruction), one.name)
        for one in every
        if (reconstruction := _known(one)) is not None
    ]
    frames = {
        "defenses": _defense_rows(every, truth, pa.concat_tables([*own, guessers]), agreement),
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


def _named(frame: pa.Table, name: str) -> pa.Table:
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
    every: Sequence[AttackedDefense], truth: People, rates: pa.Table, agreement: Mapping[str, pa.Table]
) -> pa.Table:
    """A row for each defense: errors, agreement, certainty, and precision on those whom guessing misses, beyond the guesser."""
    own_rates = {
        row["data"]: row
        for row in rates.to_pylist()
        if (row["attacker"], row["population_attacked"], row["block_size"]) == ("exact", RISK, "all")
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
            row |= {column.format(level): getattr(error, value) for level, error in errors.items()}
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


def _summary(defenses: pa.Table) -> tuple[str, ...]:
    lines = [
        "CONFIDENTIAL. Race and origin of the persons whom guessing misses most, by an attacker who knows block, sex and age; mean absolute error of tract counts."
    ]
    lines += [
        f"  {row['defense']}: right in {share_text(row['precision'])} of the matches (guessing {share_text(row['guesser_precision'])}), error {row['error_tract']:.2f}"
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
