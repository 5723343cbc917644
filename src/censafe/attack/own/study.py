"""CONFIDENTIAL. ``censafe attack compare`` with a configuration: defenses of the table of quasi-identifiers by target, on records of an own schema."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.attack.comparison.entry import DefenseStudy, compared, comparison_identity, require_defenses
from censafe.attack.comparison.files import read_tables
from censafe.attack.comparison.keys import AttackKeys
from censafe.attack.comparison.published import (
    PublishedData,
    data_of_people,
    perturbed_data,
    swapped_data,
)
from censafe.attack.comparison.releases import run_topdown
from censafe.attack.comparison.words import ComparisonWords
from censafe.attack.defenses.households import Households
from censafe.attack.defenses.named import AreaWords, Defense
from censafe.attack.defenses.registry import parse_defense
from censafe.attack.matching import exact_attacker
from censafe.attack.own.reading import AttackNames, OwnSchema, read_own_records
from censafe.attack.own.records import OwnLines, OwnRecords
from censafe.attack.reconstruction.solve import Reconstruction
from censafe.attack.results import column_words
from censafe.attack.study import AttackChoices
from censafe.errors import UsageError
from censafe.evaluation.confidential import evaluation_folder
from censafe.evaluation.outputs import Evaluated, write_frame
from censafe.geography.own_codes import AREA_CODES, AreaCodes
from censafe.model.observer import Observer
from censafe.model.plan import Definition
from censafe.products.topdown.census_tables.microdata_source import open_source
from censafe.products.topdown.census_tables.own_source import OWN
from censafe.products.topdown.configuration.config import TopdownConfig

_TOPDOWN: Final = "topdown"
_AGES: Final = (
    "it groups ages or races of records of the U.S. census; fix: give the attribute fewer levels (bands or values in [read.attributes]), or name a recode "
    "of the schema as quasi-identifier"
)
_REFUSED: Final[Mapping[str, str]] = {
    "suppress:1980": "its rules are those of tables of race and origin; fix: give suppress:threshold=COUNT",
    "swap:targeted": "its risk is the rarity of the races in a household; fix: give swap:LO, swap:HI or swap:permutation:p=P",
    "merge": "it joins neighbors in the order of the numbers of U.S. blocks, and codes of any text have no such order; fix: name a wider level as area",
    **dict.fromkeys(("topcode", "ages", "races"), _AGES),
}
_FORMS: Final = (
    "swap:LO[:rate=R][:sizes=A,B,C][:areas=A,B,C]", "swap:HI[:rate=R][:sizes=A,B,C][:areas=A,B,C]", "swap:permutation:p=P[:within=LEVEL]", "round:BASE[:zero=apart]",
    "random-round:BASE", "ranges[:0,A,B,...]", "suppress:threshold=COUNT", "threshold:PERSONS[:LEVEL=PERSONS][:by=table]", "cellkey[:bound=B][:variance=V]",
    "topdown", "topdown:RUN", "published:FOLDER",
)  # fmt: skip
"""How the defenses of an own schema are named."""


@dataclass(frozen=True, eq=False)
class OwnStudy(DefenseStudy):
    """Records of an own schema.

    Args:
        source: the file of the configuration, and the keys of it that were changed.
        read: what was published before, by defense.
    """

    truth: OwnRecords
    workload: OwnLines
    schema: OwnSchema
    codes: AreaCodes
    source: tuple[str, Mapping[str, str]]
    read: Mapping[str, PublishedData]

    @property
    def words(self) -> ComparisonWords:
        """The user's own."""
        return own_words(self.schema)

    def meaning(self, column: str) -> tuple[str, str]:
        """Meaning and unit of a column of the files."""
        return own_meaning(self.words, column)

    def records(self, reconstruction: Reconstruction, codes: NDArray[np.str_]) -> OwnRecords:
        """Records of the reconstructed types."""
        area = self.truth.places(codes)[reconstruction.block]
        return self.truth.of_counts(area, reconstruction.types, reconstruction.counts)

    def published(self, defense: Defense | None) -> PublishedData:
        """What a defense publishes; exact tables without one."""
        published = self._published(defense)
        files = {name: _own_columns(frame, self.workload.area) for name, frame in published.files.items()}
        return replace(published, keys=AttackKeys(self.words.known), files=files)

    def _published(self, defense: Defense | None) -> PublishedData:
        truth, lines, seed = self.truth, self.workload, self.choices.seed
        if defense is None:
            return data_of_people(lines, truth, microdata=False)
        if defense.swap is not None:
            return swapped_data(lines, truth, defense, seed)
        if defense.tables is not None:
            return perturbed_data(lines, truth, defense, seed)
        published = self.read.get(defense.spec)
        if published is None:
            folder, (source, settings) = self.out / "releases" / _TOPDOWN, self.source
            run_topdown(source, self.data, folder, settings, seed, self.observer)
            published = read_published(folder, self.schema, truth, self.codes)
        return replace(published, claim=defense.claim)


def own_meaning(words: ComparisonWords, column: str) -> tuple[str, str]:
    """Meaning and unit of a column in the words of an own schema."""
    own = column_words("own_columns")
    for level in words.levels:
        for name in ("error_LEVEL", "withheld_LEVEL_percent"):
            if column == name.replace("LEVEL", level):
                meaning, unit = own[name]
                return meaning.replace("LEVEL", level), unit
    if column in (*words.levels, f"{words.area}_taken"):
        return f"code of the area ({words.area})", ""
    if column.endswith("_level"):
        return f"level of {column.removesuffix('_level')}", ""
    meaning, unit = own[column] if column in own else column_words()[column]
    return meaning.format(area=words.area, known=words.known, target=words.target, alone=words.alone), unit


def own_words(schema: OwnSchema) -> ComparisonWords:
    """Words of the page and of the files for an own schema."""
    lines = schema.lines
    alone = _listed([one.name for one in lines.quasi])
    return ComparisonWords(
        area=lines.area,
        areas=f"areas ({lines.area})",
        known=_listed([lines.area, *(one.name for one in lines.quasi)]),
        target=lines.target.name,
        alone=alone,
        risk="nonmodal",
        at_risk=f"differ from the most frequent {lines.target.name} of their {lines.area}",
        levels=(lines.area, *schema.above),
        exhibits="own_attack",
        size="area_size",
        areas_key="areas",
        agreement="true_percent",
        unique=("unique_percent",),
    )


def _listed(words: Sequence[str]) -> str:
    """Words in a sentence.

    Example:
        >>> _listed(["sex"]), _listed(["Grid", "sex", "age"])
        ('sex', 'Grid, sex and age')
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _own_columns(frame: pa.Table, area: str) -> pa.Table:
    """A list of swapped households without U.S. words."""
    names = {"block": area, "block_taken": f"{area}_taken"}
    columns = [name for name in frame.column_names if not name.endswith("adults")]
    return frame.select(columns).rename_columns([names.get(name, name) for name in columns])


def own_areas(schema: OwnSchema) -> AreaWords:
    """The areas of an own schema in the words of defenses."""
    area, above = schema.lines.area, schema.above
    near = (*above, *above[-1:] * 3)[:3]
    return AreaWords(
        areas=f"areas ({area})", area=area, levels=(area, *above), around=above, near=(near[0], near[1], near[2]), sizes=" and size", by_size="size",
        quarters="units of kinds that cannot be empty, and in none", forms=_FORMS, refused=_REFUSED,
    )  # fmt: skip


_CLAIMS: Final = {
    Definition.ZCDP: "zero-concentrated differential privacy, as the plan states",
    Definition.PURE: "pure differential privacy, as the plan states",
}


def own_defense(spec: str, areas: AreaWords, definition: Definition) -> Defense:
    """A defense by its name; TopDown is a finished run, or one of the same records with a test key."""
    name, _, folder = spec.partition(":")
    if name != _TOPDOWN:
        return parse_defense(spec, areas)
    keeps = "what the configuration publishes exactly"
    if folder:
        if not Path(folder).exists():
            raise UsageError(
                f"defense {spec!r}: there is no such folder; allowed: topdown:RUN with the folder of a finished run of the same schema, or topdown alone, "
                "which runs the configuration on the records with a test key"
            )
        certified = (Path(folder) / "certificate.json").is_file()
        claim = "differential privacy, as the certificate of the run states" if certified else ""
        return Defense(spec, "a finished run of TopDown", keeps, claim, _TOPDOWN, folder=Path(folder))
    return Defense(
        spec,
        "TopDown with the budget of the configuration, under a test key",
        keeps,
        _CLAIMS[definition],
        _TOPDOWN,
        run=_TOPDOWN,
    )


def read_published(folder: Path, schema: OwnSchema, truth: OwnRecords, codes: AreaCodes) -> PublishedData:
    """Tables that a comparison wrote, or the counts of a finished run."""
    tables = read_tables(folder, schema.lines, truth.table_levels) if folder.is_dir() else None
    if tables is not None:
        return PublishedData(tables, attacked=tables[schema.lines.area])
    return data_of_people(schema.lines, read_release(folder, schema, truth, codes), microdata=True)


def read_release(folder: Path, schema: OwnSchema, truth: OwnRecords, codes: AreaCodes | None) -> OwnRecords:
    """The published counts of a finished run of the same schema as records in the areas of the attacked level."""
    source, name, area = open_source(folder), schema.histogram.name, schema.lines.area
    if source.product != OWN:
        raise UsageError(
            f"{folder}: not a run of a configuration with schemas of its own; fix: give a run of {schema.config.origin}"
        )
    if name not in source.histogram_names:
        raise UsageError(
            f"{folder}: the run has no histogram {name}; it has {', '.join(source.histogram_names)}; fix: give a run of {schema.config.origin}"
        )
    own = source.histogram(name)
    if own.digest != schema.schema.digest or own.labels != schema.schema.labels:
        raise UsageError(
            f"{folder}: {name} has another schema in the run than in {schema.config.origin}; fix: give a run of the same attributes, levels and labels"
        )
    if area.lower() not in source.levels:
        raise UsageError(
            f"{folder}: the run does not publish the level {area}; allowed: a run that does; it publishes {', '.join(source.levels)}"
        )
    listed = folder / AREA_CODES
    if codes is not None and not (
        listed.is_file() and listed.read_text(encoding="utf-8") == codes.files[AREA_CODES]
    ):
        raise UsageError(
            f"{folder}: the run has other areas than the records; fix: give a run of the same list of areas"
        )
    order = np.argsort(truth.geography.geocodes)
    level = source.read(name, area.lower(), truth.geography.geocodes[order])
    place = order[np.repeat(np.arange(level.nodes), np.diff(level.node_ptr))]
    return truth.of_counts(place, schema.type_of_cell[level.cell], level.count)


def compare_own_defenses(
    data: Path,
    out: Path,
    specs: Sequence[str],
    config: TopdownConfig,
    source: tuple[str, Mapping[str, str]],
    names: AttackNames,
    choices: AttackChoices,
    observer: Observer,
) -> Evaluated:
    """Apply defenses to the table of quasi-identifiers by target of every area, attack what each publishes, and put error and success side by side."""
    require_own_choices(choices)
    require_defenses(specs)
    schema = OwnSchema.of(config, names)
    areas = own_areas(schema)
    defenses = [own_defense(one, areas, config.definition) for one in specs]
    truth, codes = read_own_records(schema, data, observer)
    for defense in defenses:
        if defense.swap is not None:
            _require_households(defense.spec, schema, truth)
    read = {  # before anything is written
        defense.spec: read_published(defense.folder, schema, truth, codes)
        for defense in defenses
        if defense.folder is not None
    }
    arrays = (truth.block, truth.type, truth.household, truth.blocks)
    words = own_words(schema)
    settings = json.dumps([config.settings, asdict(names)], sort_keys=True)
    with evaluation_folder(out, comparison_identity(arrays, choices, settings)):
        study = OwnStudy(data, out, truth, schema.lines, choices, observer, schema, codes, source, read)
        lines = pa.table({"line": schema.lines.numbers, "label": pa.array(schema.lines.labels, pa.string())})
        write_frame(out, "lines", lines)
        attackers = (exact_attacker(truth, choices.seed),)
        return compared(study, defenses, attackers, words=asdict(words))


def require_own_choices(choices: AttackChoices) -> None:
    """Refuse what is for records of the U.S. census."""
    usual = AttackChoices()
    for name in ("without", "tables", "attacker", "agreement"):
        if getattr(choices, name) != getattr(usual, name):
            raise UsageError(
                f"{name}: is for records in the layouts of the U.S. census; with a configuration the table is that of quasi-identifiers by target, and the "
                "attacker knows these of everybody; fix: leave it out"
            )


def _require_households(spec: str, schema: OwnSchema, truth: OwnRecords) -> None:
    """Refuse to swap where households are not known, or have nowhere to go."""
    if not schema.layout.key:
        raise UsageError(
            f'defense {spec!r}: households exchange their areas, and [read] does not say who lives together; needed: key = "COLUMN" of the household of '
            "every person; fix: add it, or choose a defense of tables"
        )
    if len(truth.blocks) < 2:
        raise UsageError(
            f"defense {spec!r}: there is one {schema.lines.area}, so that no household can move; fix: name a level with several areas"
        )
    if (truth.household < 0).all():
        raise UsageError(
            f"defense {spec!r}: every person is in a unit of a kind that cannot be empty, or has no {schema.layout.key}, so that there is no household to "
            "move; needed: units of a kind with minimum 0; fix: choose a defense of tables"
        )
    Households.of(truth)  # refuses households in several areas
