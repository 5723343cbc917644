"""Attacks on tables of confidential records. CONFIDENTIAL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from censafe.api.arguments import public
from censafe.api.evaluations import Evaluation
from censafe.api.options import require_configuration
from censafe.errors import UsageError
from censafe.model.observer import SilentObserver

if TYPE_CHECKING:
    from censafe.api.plans import Configuration
    from censafe.attack.own.reading import AttackNames
    from censafe.attack.study import AttackChoices
    from censafe.model.observer import Observer
    from censafe.products.topdown.configuration.config import TopdownConfig


class AttackKeywords(TypedDict, total=False):
    """How records are attacked.

    Args:
        without: names of tables of blocks that are left out, such as P8 and P10.
        tables: TOML file with tables in place of the 18 of the 2010 Summary File.
        agreement: share of the noisy attacker's records that agree with the truth; 0.371 without, as the Bureau found of commercial files.
        attacker: CSV or Parquet of an attacker: person_id, block, sex, age.
        variability: whether it is computed how many records another consistent data set can change; True without.
        claims: whether it is proven how many persons of each type every consistent data set has.
        seconds: limit of one integer program; 60 without.
        workers: processes; 1 without.
        seed: of orders, of ages within classes, and of the noisy attacker.
        progress: receives stages; none without.
    """

    without: Sequence[str]
    tables: Path | str | None
    agreement: float
    attacker: Path | str | None
    variability: bool
    claims: bool
    seconds: float
    workers: int
    seed: int
    progress: Observer | None


class OwnKeywords(TypedDict, total=False):
    """What is attacked of records of a schema of one's own.

    Args:
        configuration: of topdown, with a table ``[read]``, which reads the records.
        quasi: attributes or recodes that the attacker knows of every person.
        target: the attribute or recode that the attacker looks for.
        area: the level of the areas that the attacker knows, by its name or its column.
        query: queries of the schema whose tables are attacked; without these and ``tables``, that of `quasi` by `target`.
    """

    configuration: Configuration | None
    quasi: Sequence[str]
    target: str
    area: str
    query: Sequence[str]


class ReconstructKeywords(AttackKeywords, OwnKeywords, total=False):
    """How tables are reconstructed; see also :class:`AttackKeywords`.

    Args:
        mode: ``b``, the default: tables of blocks; ``bt``: those of their tracts too, with single years of age.
        nearest: whether the records whose tables differ least are taken where no records have the tables.
    """

    mode: str
    nearest: bool


@public
def reconstruct(data: Path | str, out: Path | str, **options: Unpack[ReconstructKeywords]) -> Evaluation:
    r"""CONFIDENTIAL. Tabulate records, reconstruct them from these tables alone, and match the result with what attackers know.

    Args:
        data: CSV or Parquet with block, sex, age, race and hispanic, or a folder of DHC records or of DHC microdata; or published tables, which are
            reconstructed without any records: CSV or Parquet with geounit, table, line and value; with a configuration also files of ``censafe tables``.
        out: a new or empty folder.
        options: see :class:`AttackKeywords` and :class:`ReconstructKeywords`.

    Raises:
        DataError: the records break a rule.
        ConfigError: a table is not there, or the file of tables breaks a rule.
        UsageError: keywords that do not go together, or the folder holds something else.
        TypeError: a keyword that is none.

    Source: "A Simulated Reconstruction and Reidentification Attack on the 2010 U.S. Census" (Harvard Data Science Review, 2025).

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "p.csv").write_text("block,sex,age,race,hispanic\n500070001001001,1,30,1,0\n500070001001001,2,31,2,0\n")
        >>> reconstruct(folder / "p.csv", folder / "out")
        Evaluation(out: 11 frames, 4 figures)
    """
    from censafe.attack.study import reconstruct_records

    keywords: dict[str, Any] = dict(options)
    own = _own(keywords)
    choices, observer = _attack_choices(keywords)
    if own is not None:
        from censafe.attack.own.study import reconstruct_own_records

        return Evaluation(
            Path(out), reconstruct_own_records(Path(data), Path(out), *own, choices, observer).text()
        )
    return Evaluation(Path(out), reconstruct_records(Path(data), Path(out), choices, observer).text())


class DefenseKeywords(AttackKeywords, total=False):
    """How defenses are compared; see also :class:`AttackKeywords`.

    Args:
        configuration: of topdown, with a table ``[read]``: records of a schema of one's own. One table is published and attacked: `quasi` by `target` of
            every area. ``without``, ``tables``, ``agreement`` and ``attacker`` are for U.S. records.
        quasi: with a configuration, attributes or recodes that the attacker knows of every person.
        target: with a configuration, the attribute or recode that the attacker looks for.
        area: with a configuration, the level of the areas that the attacker knows, by its name or its column.
    """

    configuration: Configuration | None
    quasi: Sequence[str]
    target: str
    area: str


@public
def compare_defenses(
    data: Path | str, out: Path | str, defenses: Sequence[str], **options: Unpack[DefenseKeywords]
) -> Evaluation:
    r"""CONFIDENTIAL. Defenses on the same records: the error of their tables, and what an attacker still finds beyond guessing.

    Args:
        data: as of :func:`reconstruct`; with a configuration, the folder with the files that its ``[read]`` names.
        out: a new or empty folder.
        defenses: names, such as ``swap:LO``, ``round:5``, ``topdown:pl94-us`` or ``published:FOLDER``; with a configuration ``topdown`` for a run of it
            with a test key, and ``topdown:RUN`` for a finished run of the same schema.
        options: see :class:`AttackKeywords` and :class:`DefenseKeywords`.

    Raises:
        DataError: the records break a rule, or hold no households for a swap.
        ConfigError: a parameter of a defense is out of range, or there is no such attribute.
        UsageError: a defense is not there, keywords do not go together, or the folder holds something else.
        TypeError: a keyword that is none.

    Source: "A Simulated Reconstruction and Reidentification Attack on the 2010 U.S. Census" (Harvard Data Science Review, 2025), sections on swapping and suppression.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "p.csv").write_text("block,sex,age,race,hispanic\n500070001001001,1,30,1,0\n500070001001001,2,31,2,0\n")
        >>> compare_defenses(folder / "p.csv", folder / "out", ["round:5", "ages:10"])
        Evaluation(out: 18 frames, 4 figures)
    """
    from censafe.attack.comparison.entry import compare_defenses_on

    keywords: dict[str, Any] = dict(options)
    configuration: Any = keywords.get("configuration")
    own = _own(keywords)
    choices, observer = _attack_choices(keywords)
    place, folder, names = Path(data), Path(out), tuple(defenses)
    if own is not None:
        from censafe.attack.own.study import compare_own_defenses

        config, attacked, _ = own
        source = (configuration.source, configuration.settings)
        compared = compare_own_defenses(place, folder, names, config, source, attacked, choices, observer)
        return Evaluation(folder, compared.text())
    return Evaluation(folder, compare_defenses_on(place, folder, names, choices, observer).text())


class RankKeywords(OwnKeywords, total=False):
    """How candidate records are ranked.

    Args:
        level: of the areas: ``block``, the default, or ``tract``.
        areas: how many, from the smallest of ten persons to the largest in equal steps; 10 without.
        without: names of tables that are left out.
        tables: TOML file with tables in place of the 18 of the 2010 Summary File.
        generators: relaxed data sets; 10 without, 100 as published.
        rows: of each; 100 without, 1,000 as published.
        steps: of the gradient; 300 without, 1,000 as published.
        seed: of halves, first rows and ties.
        progress: receives stages; none without.
    """

    level: str
    areas: int
    without: Sequence[str]
    tables: Path | str | None
    generators: int
    rows: int
    steps: int
    seed: int
    progress: Observer | None


@public
def rank_records(data: Path | str, out: Path | str, **options: Unpack[RankKeywords]) -> Evaluation:
    r"""CONFIDENTIAL. Candidate records of some areas ranked without a solver, from tables of half of their records, beside rankings by the records of others.

    Args:
        data: as of :func:`reconstruct`, with records.
        out: a new or empty folder.
        options: see :class:`RankKeywords`.

    Raises:
        DataError: the records break a rule, or no area has ten persons.
        ConfigError: a table is not there.
        UsageError: a number is too small, or the folder holds something else.

    Source: Dick and others, "Confidence-ranked reconstruction of census microdata from published statistics" (PNAS, 2023).

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> rows = [f"500070001001001,{1 + age % 2},{age},1,0" for age in range(30, 42)]
        >>> _ = (folder / "p.csv").write_text("\n".join(["block,sex,age,race,hispanic", *rows]))
        >>> rank_records(folder / "p.csv", folder / "out", generators=2, rows=20, steps=50)
        Evaluation(out: 4 frames, 1 figure)
    """
    from censafe.attack.ranking.generators import GeneratorChoices
    from censafe.attack.ranking.study import RankChoices, rank_records_of

    keywords: dict[str, Any] = dict(options)
    own = _own(keywords)

    def chosen(*names: str) -> dict[str, Any]:
        return {name: keywords[name] for name in names if name in keywords}

    attack, observer = _attack_choices(chosen("without", "tables", "seed", "progress"))
    fit = GeneratorChoices(**chosen("generators", "rows", "steps"))
    choices = RankChoices(attack, fit, **chosen("level", "areas"))
    if own is not None:
        from censafe.attack.own.study import rank_own_records

        return Evaluation(Path(out), rank_own_records(Path(data), Path(out), *own, choices, observer).text())
    return Evaluation(Path(out), rank_records_of(Path(data), Path(out), choices, observer).text())


def _own(keywords: dict[str, Any]) -> tuple[TopdownConfig, AttackNames, tuple[str, ...]] | None:
    """Configuration, names and queries of records of an own schema, taken from the keywords; None where none are given."""
    configuration = keywords.pop("configuration", None)
    own = {name: keywords.pop(name, None) for name in ("quasi", "target", "area", "query")}
    if configuration is None:
        if any(own.values()):
            raise UsageError(
                f"{', '.join(name for name, value in own.items() if value)}: for records of a schema of one's own, which a configuration reads; fix: give "
                "`configuration` too, or leave these out"
            )
        return None
    from censafe.attack.own.reading import AttackNames

    require_configuration(configuration)
    if configuration.product != "topdown":
        raise UsageError(
            f"{configuration.source}: a configuration of {configuration.product}; allowed: one of topdown with a table [read]"
        )
    names = AttackNames(tuple(own["quasi"] or ()), own["target"] or "", own["area"] or "")
    query = own["query"] or ()
    return configuration.checked, names, (query,) if isinstance(query, str) else tuple(query)


def _attack_choices(options: Mapping[str, Any]) -> tuple[AttackChoices, Observer]:
    from censafe.attack.study import AttackChoices

    keywords = {name: value for name, value in options.items() if value is not None}
    observer = keywords.pop("progress", None) or SilentObserver()
    return AttackChoices(**keywords), observer
