"""CONFIDENTIAL. ``censafe attack`` with a configuration: tables of records of an own schema, of a run or as published, and defenses of the table of quasi-identifiers by target."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from censafe.attack.comparison.entry import DefenseStudy, compared, comparison_identity, require_defenses
from censafe.attack.comparison.files import places_of_lines, read_tables
from censafe.attack.comparison.published import (
    AttackKeys,
    PublishedData,
    data_of_people,
)
from censafe.attack.comparison.releases import run_topdown
from censafe.attack.defenses.households import Households
from censafe.attack.defenses.named import NO_VALUE, AreaWords, Defense
from censafe.attack.defenses.registry import parse_defense
from censafe.attack.matching import exact_attacker
from censafe.attack.own.reading import AttackNames, OwnSchema, areas_of_codes, read_own_records
from censafe.attack.own.records import OwnAreas, OwnLines, OwnRecords
from censafe.attack.published import PublishedTables
from censafe.attack.ranking.study import RankChoices, ranked_areas, write_ranking
from censafe.attack.reconstruction.problem import NO_LIMIT
from censafe.attack.reconstruction.solve import Reconstruction
from censafe.attack.results import ComparisonWords
from censafe.attack.study import AttackChoices, attack_tables
from censafe.attack.tables import tabulate_lines
from censafe.errors import DataError, UsageError
from censafe.evaluation.confidential import evaluation_folder
from censafe.evaluation.outputs import Evaluated, write_frame
from censafe.geography.files import texts_of
from censafe.geography.own_codes import AREA_CODES, AreaCodes
from censafe.model.entries import listed
from censafe.model.observer import Observer
from censafe.model.plan import Definition
from censafe.products.topdown.census_tables.microdata_source import open_source
from censafe.products.topdown.census_tables.own_source import OWN
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.results.table_files import table_rows

_Ints = NDArray[np.int64]
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
    """

    truth: OwnRecords
    workload: OwnLines
    schema: OwnSchema
    codes: AreaCodes
    source: tuple[str, Mapping[str, str]]

    @property
    def words(self) -> ComparisonWords:
        """The user's own."""
        return own_words(self.schema)

    def records(self, reconstruction: Reconstruction, codes: NDArray[np.str_]) -> OwnRecords:
        """Records of the reconstructed types."""
        area = self.truth.places(codes)[reconstruction.block]
        return self.truth.of_counts(area, reconstruction.types, reconstruction.counts)

    def published(self, defense: Defense | None) -> PublishedData:
        """What a defense publishes; exact tables without one."""
        published = super().published(defense)
        files = {name: _own_columns(frame, self.workload.area) for name, frame in published.files.items()}
        return replace(published, keys=AttackKeys(self.words.known), files=files)

    def released(self, config: str) -> PublishedData:
        """The counts of a run of the configuration with a test key."""
        folder, (source, settings) = self.out / "releases" / config, self.source
        run_topdown(source, self.data, folder, settings, self.choices.seed, self.observer)
        return read_published(folder, self.schema, self.truth, self.codes)


def own_words(schema: OwnSchema) -> ComparisonWords:
    """Words of the page and of the files for an own schema."""
    lines = schema.lines
    alone = listed([one.name for one in lines.quasi])
    known = [lines.area, *(one.name for one in lines.quasi)]
    return ComparisonWords(
        area=lines.area,
        areas=f"areas ({lines.area})",
        known=listed(known),
        record=listed([*known, lines.target.name]),
        target=lines.target.name,
        alone=alone,
        risk="nonmodal",
        at_risk=f"differ from the most frequent {lines.target.name} of their {lines.area}",
        levels=(lines.area, *schema.above),
        prefix="own_",
        size="area_size",
        areas_key="areas",
        agreement="true_percent",
        unique=("unique_percent",),
    )


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
        study = OwnStudy(data, out, truth, schema.lines, choices, observer, read, schema, codes, source)
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


def _read_file(path: Path, lines: OwnLines) -> tuple[NDArray[np.str_], _Ints, _Ints]:
    """Areas of a file of tables, and lowest and highest values of their lines; a line that is not listed is 0, a table of which none is is withheld."""
    rows = table_rows(path, None)
    rows = rows.rename_columns([name.lower() for name in rows.column_names])
    names = rows.column_names
    area = next((name for name in (lines.area.lower(), "geounit", "geocode") if name in names), None)
    line = next((name for name in ("line", "variable") if name in names), None)
    if area is None or line is None or not {"table", "value"} <= set(names):
        raise DataError(
            f"{path}: no tables of areas; it has the columns {', '.join(names)}; allowed: columns geounit (or {lines.area}), table, line and value, as 'attack "
            "reconstruct' writes tables, or geocode, table, variable and value, as 'censafe tables' does; fix: name the columns so, or give a folder of records"
        )
    if "level" in names:
        rows = rows.filter(pc.equal(rows["level"], lines.area))
    texts = {name: texts_of(rows[name]).fill_null("").to_pylist() for name in (area, "table", line, "value")}
    numbers = [
        text if line == "line" else text.removeprefix(f"{table}_").removesuffix("N")
        for table, text in zip(texts["table"], texts[line], strict=True)
    ]
    wrong = sum(
        not (text.isdecimal() and (not value or value.isdecimal()))
        for text, value in zip(numbers, texts["value"], strict=True)
    )
    if wrong:
        raise DataError(
            f"{path}: {wrong:,} rows have a line or value that is no whole number of 0 and more; allowed: lines from 1, or variables such as {lines.names[0]}_001N, and counts, empty "
            "where they were withheld; fix: correct these rows"
        )
    keys = pa.table({"geocode": texts[area], "table": texts["table"], "line": list(map(int, numbers))})
    codes, place, number, chosen = places_of_lines(keys, lines, path)
    value = np.array([int(text) if text else NO_VALUE for text in texts["value"]], np.int64)[chosen]
    unlisted = ~np.isin(lines.names, np.asarray(lines.names)[number])
    high = np.where(unlisted, NO_LIMIT, np.zeros((len(codes), len(lines.names)), np.int64))
    low = np.zeros_like(high)
    low[place, number] = np.maximum(value, 0)
    high[place, number] = np.where(value == NO_VALUE, NO_LIMIT, value)
    return codes, low, high


def _read_attacked(
    schema: OwnSchema, data: Path, observer: Observer
) -> tuple[OwnRecords, bool, _Ints, _Ints]:
    """Records, or none in the areas of published tables; whether they are the true ones; lowest and highest values of the lines of every area."""
    lines, none = schema.lines, np.zeros(0, np.int64)
    tables = read_tables(data, lines, (lines.area,)) if data.is_dir() else None
    if tables is not None or data.is_file():
        if tables is None:
            codes, low, high = _read_file(data, lines)
        else:
            codes, values = tables[lines.area].codes, tables[lines.area].tables
            low = values.low
            high = np.where(~values.published & (values.high == low), NO_LIMIT, values.high)
        place = {lines.area: np.arange(len(codes))}
        areas = OwnAreas((lines.area,), {lines.area: codes}, place, codes)
        return OwnRecords(lines, areas, none, none, none), False, low, high
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
    with evaluation_folder(out, {"kind": "reconstruction"}):
        with observer.stage("read"):
            people, known, low, high = _read_attacked(schema, data, observer)
        blocks, none = people.blocks, np.zeros(0, np.str_)
        published = PublishedTables(blocks, schema.lines, low, high, None, none, np.zeros((0, 0), np.int64))
        truth, attackers = (people, (exact_attacker(people, choices.seed),)) if known else (None, ())

        def people_of(reconstruction: Reconstruction, _: _Ints | None) -> OwnRecords:
            return people.of_counts(reconstruction.block, reconstruction.types, reconstruction.counts)

        words = own_words(schema)
        return attack_tables(data, out, published, truth, attackers, people_of, choices, observer, words)


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
    lines = schema.lines
    choices = replace(choices, level=lines.area)
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
            every = ranked_areas(truth, lines, (truth.blocks, seeds), around, choices, observer)
        return write_ranking(data, out, truth, lines, every, choices, own_words(schema))
