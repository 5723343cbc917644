"""CONFIDENTIAL. A defense applied to true records and attacked: what is published, and the records that an attacker makes of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np
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
from censafe.attack.comparison.releases import published_data, run_topdown
from censafe.attack.defenses.named import Defense
from censafe.attack.people import People
from censafe.attack.reconstruction.solve import Reconstruction, SolveChoices, reconstruct
from censafe.attack.results import reconstructed_people
from censafe.attack.study import AttackChoices
from censafe.attack.tables import Workload
from censafe.model.observer import Observer
from censafe.model.safe_text import file_name

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
    found: Reconstruction | None
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
        write_published(self.out / name, self.workload, published)
        people, found = published.people, None
        if published.attacked is not None:
            space, codes = self.workload.space, published.attacked.codes
            found = read_reconstruction(self.out / name, space, codes)
            if found is None:
                found = self._solved(defense, published.attacked)
                write_reconstruction(self.out / name, found, space, codes)
            people = reconstructed_people(found, space, codes, self.choices.seed)
        if people is None:
            raise ValueError("what was published has neither records nor tables")
        errors = table_errors(self.workload, self.truth, published)
        return AttackedDefense(
            defense, people.within(self.truth.blocks), found, published.keys, errors, published.claim, name
        )

    def redistricting(self) -> AttackedDefense:
        """Exact redistricting data attacked: race, origin and voting age of everybody in every block, beside which protected ones stand."""
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
        shown = np.asarray((published.tables.value > 0).any(axis=1))
        high = np.where(shown[:, None], high, 0)  # an area without any published count has no records
        if np.array_equal(low, high):
            solving = self.choices.solving
            if (
                defense is not None and defense.folder is not None
            ):  # tables of others need not agree with each other
                solving = replace(solving, nearest=True)
            return reconstruct(workload, low, high, solving)
        zero = published.tables.value == 0
        quick = self._quick(variability=bool((high[zero] == 0).all()))
        found = reconstruct(workload, np.where(zero, 0, low), np.where(zero, 0, high), quick)
        return replace(found, variability=np.where(shown, found.variability, np.nan))

    def _quick(self, *, variability: bool) -> SolveChoices:
        seconds = min(self.choices.seconds, _COARSE_SECONDS)
        return SolveChoices(
            variability and self.choices.variability, False, True, seconds, self.choices.workers
        )
