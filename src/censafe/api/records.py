"""Records in files of one's own: what a configuration reads of them, and a first configuration for a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from censafe.api.arguments import public
from censafe.api.options import ReadKeywords, read_options, require_configuration
from censafe.api.releases import Findings
from censafe.errors import DataError, UsageError

if TYPE_CHECKING:
    from censafe.api.plans import Configuration


@dataclass(frozen=True)
class Reading:
    """CONFIDENTIAL. What a configuration reads of some files; made by :func:`read`. Nothing was measured or spent.

    Args:
        rows: of each table.
        columns: names of the columns of each file that are read, and of those that are not.
        levels: of each attribute (``histogram.attribute``), every level with the number of its records.
        areas: number of areas of each level of the geography.
        several: codes of a level that stand under several areas of the level above, by name of the level.
    """

    findings: Findings
    rows: Mapping[str, int]
    columns: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]
    levels: Mapping[str, Mapping[str, int]] = field(repr=False)
    areas: Mapping[str, int]
    several: Mapping[str, int]

    @property
    def valid(self) -> bool:
        """Whether a run could read the files."""
        return self.findings.valid

    def text(self, *, confidential: bool = False) -> str:
        """What was read in lines: of each level whether it occurs, or with how many records where these may be shown."""
        return "\n".join(self._lines(confidential))

    def document(self, *, confidential: bool = False) -> dict[str, Any]:
        """The same as values of JSON."""
        levels = {
            name: dict(own) if confidential else {label: count > 0 for label, count in own.items()}
            for name, own in self.levels.items()
        }
        return {
            "valid": self.valid,
            "rows": dict(self.rows),
            "columns": {
                name: {"read": own, "not_read": other} for name, (own, other) in self.columns.items()
            },
            "levels": levels,
            "areas": dict(self.areas),
            "findings": [asdict(one) for one in self.findings],
        }

    def _lines(self, confidential: bool) -> Iterator[str]:
        yield "CONFIDENTIAL: what is said here is computed from the records."
        for table, rows in self.rows.items():
            yield f"{table}: {rows:,} rows"
        for name, (own, other) in self.columns.items():
            yield f"{name}: read {', '.join(own)}" + (f"; not read {', '.join(other)}" if other else "")
        for name, levels in self.levels.items():
            if confidential:
                yield f"{name}: " + ", ".join(f"{label} {count:,}" for label, count in levels.items())
                continue
            there = [label for label, count in levels.items() if count]
            absent = [label for label, count in levels.items() if not count]
            yield f"{name}: {', '.join(there) or 'no level'}" + (
                f"; does not occur: {', '.join(absent)}" if absent else ""
            )
        if self.areas:
            yield "areas: " + ", ".join(f"{name} {number:,}" for name, number in self.areas.items())
        for name, number in self.several.items():
            yield f"areas: {number:,} codes of {name} stand under several areas above, which makes them different areas"
        yield self.findings.text()


@public
def read(configuration: Configuration, data: Path | str, **reading: Unpack[ReadKeywords]) -> Reading:
    """Read records in files of one's own as a run does, and say what was read and what does not match; nothing is measured or spent.

    Args:
        configuration: of topdown, with a table ``[read]``.
        data: folder with the files.
        reading: see :class:`~censafe.api.options.ReadKeywords`; ``examples`` gets numbers of rows that break a rule.

    Raises:
        UsageError: a configuration that reads files of a known layout, which :func:`censafe.validate` checks.
        DataError: a file is not there.

    Source: the table ``[read]`` of the configuration.

    Example:
        >>> import censafe
        >>> read(censafe.configuration("topdown", "pl94-us"), "anywhere")
        Traceback (most recent call last):
        censafe.errors.UsageError: pl94-us has no table [read]; validate checks records of its layout
    """
    from censafe.population.records.areas import repeated_codes
    from censafe.products.topdown.intake.intake import OwnIntake

    require_configuration(configuration)
    options = read_options(configuration.product, reading)
    layout = getattr(configuration.checked, "read", None)
    if layout is None:
        raise UsageError(f"{configuration.source} has no table [read]; validate checks records of its layout")
    config = configuration.checked
    with OwnIntake(Path(data), config, options, layout) as intake:
        inspection = intake.inspect()
    levels = {}
    for (histogram, attribute), counts in inspection.counts.items():
        labels = config.histogram(histogram).schema.labels.get(attribute, tuple(map(str, range(len(counts)))))
        levels[f"{histogram}.{attribute}"] = dict(zip(labels, counts.tolist(), strict=True))
    return Reading(
        Findings(inspection.findings),
        {one.table: one.rows for one in inspection.tables},
        {name: own for one in inspection.tables for name, own in one.files.items()},
        levels,
        {} if inspection.codes is None else {one.name: len(one.codes) for one in inspection.codes.levels},
        {} if inspection.codes is None else repeated_codes(inspection.codes),
    )


@public
def draft_configuration(records: Path | str) -> str:
    r"""A first configuration for a file of records: its columns, levels of common values, bands of numbers and dates, likely areas; no counts.

    Args:
        records: CSV or Parquet, one row a person.

    Returns:
        TOML. Comments with DECIDE name what it could not know.

    Raises:
        DataError: the file cannot be read as a table.

    Source: the values of the file.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "persons.csv"
        >>> rows = [f"{place % 3};{place % 6};{'fm'[place % 2]}" for place in range(60)]
        >>> _ = path.write_text(chr(10).join(["region;district;sex", *rows]))
        >>> [line for line in draft_configuration(path).splitlines() if line.startswith("geography")]
        ['geography = ["region", "district"]']
    """
    from censafe.population.records.drafts import draft_of
    from censafe.products.run.scratch import private_scratch
    from censafe.products.topdown.configuration.drafts import draft_configuration as drafted

    path = Path(records)
    if not path.is_file():
        raise DataError(
            f"{path}: there is no such file; allowed: a CSV or Parquet file with one row a person"
        )
    with private_scratch(path) as scratch:
        return drafted(draft_of(path, scratch))
