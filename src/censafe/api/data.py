"""Synthetic populations, data frames as input, records in files of one's own, the page of budgets, and the keys of configurations."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, get_args

from censafe.api.arguments import public
from censafe.api.frames import Frame
from censafe.api.options import ReadKeywords, RunKeywords, read_options, require_configuration
from censafe.api.releases import Findings, Release, release
from censafe.errors import DataError, UsageError

if TYPE_CHECKING:
    from http.server import HTTPServer

    import pyarrow as pa

    from censafe.api.plans import Configuration
    from censafe.model.observer import Observer
    from censafe.population.synthetic.writing import SynthReport


LayoutName = Literal["phsafe", "safetab", "all", "pl94", "e2e-1940", "ipums-1940", "cef", "dhc", "dhc-cef"]
LAYOUTS: tuple[LayoutName, ...] = get_args(LayoutName)
"""Layouts of synthetic populations: records, block histograms, and fixed-width files."""

_HISTOGRAMS: Mapping[str, Literal["pl94", "e2e"]] = {"pl94": "pl94", "e2e-1940": "e2e"}


@dataclass(frozen=True)
class SyntheticData(os.PathLike[str]):
    """A folder of synthetic records, which stands for its path wherever one is expected; made by :func:`synthesize`.

    Args:
        folder: with the files.
        summary: how many persons, units and states, in one line.
    """

    folder: Path
    summary: str = field(repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", Path(self.folder))

    @property
    def name(self) -> str:
        """Name of the folder."""
        return self.folder.name

    def __fspath__(self) -> str:
        return str(self.folder)


@public
def synthesize(
    out: Path | str,
    *,
    persons: int,
    states: Sequence[str] | None = None,
    seed: int = 0,
    layout: LayoutName = "phsafe",
    file_format: Literal["parquet", "csv"] = "parquet",
    areas_of: int | None = None,
    progress: Observer | None = None,
) -> SyntheticData:
    """Write synthetic records: households, group quarters and a geography down to blocks. The same seed gives the same records.

    Args:
        out: a new or empty folder.
        persons: number of person records.
        states: two-digit state codes; the 50 states and D.C. without; 72 for Puerto Rico.
        seed: 0 or more.
        layout: whose input files: records (phsafe, safetab, all, cef, ipums-1940; dhc and dhc-cef: persons and households drawn
            together, as Parquet and of fixed width) or block histograms (pl94, e2e-1940).
        file_format: of records and histograms.
        areas_of: tracts and places of a population of this many persons.
        progress: receives how many persons are written; none without.

    Raises:
        UsageError: a folder that is not empty, or arguments that do not go together.

    Source: marginal distributions of published 2010 and 2020 tables; no person's record.

    Example:
        >>> import tempfile
        >>> synthesize(tempfile.mkdtemp(), persons=1000, states=["44"], layout="pl94").summary.split(" in ")[0]
        '1,000 persons'
    """
    from censafe.model.observer import SilentObserver, work_done

    if layout not in LAYOUTS:
        raise UsageError(f"layout {layout!r} is none of {', '.join(LAYOUTS)}")
    if areas_of is not None and layout not in ("phsafe", "safetab", "all"):
        raise UsageError(
            f"`areas_of`: files of the layout {layout} have the areas of their own persons; leave it out"
        )
    observer = progress or SilentObserver()
    population: dict[str, Any] = {
        "persons": persons,
        "states": None if states is None else tuple(states),
        "seed": seed,
        "progress": work_done(observer, persons, "persons"),
    }
    if layout in _HISTOGRAMS:
        from censafe.population.synthetic.blocks import synthesize_histograms

        if file_format != "parquet":
            raise UsageError("`file_format`: block histograms are written as Parquet only; leave it out")
        with observer.stage("synthetic histograms"):
            report = synthesize_histograms(Path(out), layout=_HISTOGRAMS[layout], **population)
        units = f"{report.blocks:,} blocks with {report.housing_units:,} housing units"
    else:
        with observer.stage("synthetic population"):
            report = _records(Path(out), layout, file_format, areas_of, population)
        units = f"{report.housing_units:,} housing units ({report.vacant:,} vacant)"
    return SyntheticData(
        report.folder,
        f"{report.persons:,} persons in {units} and {report.group_quarters:,} group quarters of {report.states} "
        f"state{'' if report.states == 1 else 's'}, in {report.folder}",
    )


def _records(
    out: Path,
    layout: LayoutName,
    file_format: Literal["parquet", "csv"],
    areas_of: int | None,
    population: Mapping[str, Any],
) -> SynthReport:
    if layout in ("dhc", "dhc-cef"):
        from censafe.population.synthetic.dhc import synthesize_dhc

        return synthesize_dhc(out, file_format="parquet" if layout == "dhc" else "fixed", **population)
    if layout in ("cef", "ipums-1940"):
        from censafe.population.synthetic.fixed_width import synthesize_fixed

        return synthesize_fixed(out, layout="cef" if layout == "cef" else "ipums-1940", **population)
    from censafe.population.synthetic.population import synthesize as write

    known: Literal["phsafe", "safetab", "all"] = (
        "phsafe" if layout == "phsafe" else "safetab" if layout == "safetab" else "all"
    )
    return write(out, file_format=file_format, layout=known, areas_of=areas_of, **population)


@public
def release_histograms(
    configuration: Configuration,
    histogram: object,
    units: object,
    out: Path | str,
    **options: Unpack[RunKeywords],
) -> Release:
    """Run TopDown on data frames. Records in memory become files in the private scratch folder for the time of the run.

    Args:
        configuration: of topdown, with ``reader=histogram``.
        histogram: one row a block and cell (``geocode``; ``cell`` or one column an attribute, levels from 0; ``count``), or one row
            a person; an Arrow table, a pandas or Polars data frame, or anything that has the Arrow stream interface.
        units: one row a block with the units that bound its records (``geocode``, ``gq0`` to ``gq7``, ``occupied``), and with it the
            spine: blocks are those of this frame. None for schemas whose records no unit bounds.
        out: a new or empty folder, or the folder of the same run.
        options: see :class:`~censafe.api.options.RunKeywords`. Without `test_key` a `ledger` must be named, since frames lie in no
            folder, and the account of the records by `dataset`, since frames are another file in every run.

    Raises:
        UsageError: another product or reader, or no ledger and account for a release.
        DataError: the frames break a rule; nothing was spent.

    Source: as :func:`censafe.release`.

    Example:
        >>> import tempfile, censafe, pyarrow.parquet as pq
        >>> folder = Path(tempfile.mkdtemp())
        >>> data = censafe.synthesize(folder / "data", persons=1000, states=["44"], layout="pl94")
        >>> frames = [pq.read_table(folder / "data" / f"{name}.parquet") for name in ("histogram", "units")]
        >>> chosen = censafe.configuration("topdown", "pl94-us", root="State")
        >>> made = release_histograms(chosen, *frames, folder / "out", test_key=1)
        >>> sum(made.tables()["tables/State"].arrow.column("P1_001").to_pylist())
        1000
    """
    if configuration.product != "topdown" or configuration.checked.reader != "histogram":
        raise UsageError("data frames are read by topdown with reader=histogram")
    _require_account(options)
    frames = {
        f"{name}.parquet": frame
        for name, frame in (("histogram", histogram), ("units", units))
        if frame is not None
    }
    return _release_frames(configuration, frames, Path(out), options)


@public
def release_records(
    configuration: Configuration,
    frames: Mapping[str, object],
    out: Path | str,
    **options: Unpack[RunKeywords],
) -> Release:
    """Run TopDown on records of one's own in data frames, which become files in the private scratch folder for the time of the run.

    Args:
        configuration: of topdown, with a table ``[read]``.
        frames: by the name of the file that ``[read]`` gives (``persons.csv``, ``areas.csv``), an Arrow table, a pandas or Polars data frame,
            or anything that has the Arrow stream interface; columns as ``[read]`` names them.
        out: a new or empty folder, or the folder of the same run.
        options: as in :func:`release_histograms`; without `test_key` a `ledger` and an account of the records (`dataset`) are needed.

    Raises:
        UsageError: a configuration without ``[read]``, a table that it does not name, or no ledger and account for a release.
        DataError: the frames break a rule; nothing was spent.

    Source: as :func:`censafe.release`.

    Example:
        >>> import censafe
        >>> release_records(censafe.configuration("topdown", "pl94-us"), {}, "anywhere", test_key=1)
        Traceback (most recent call last):
        censafe.errors.UsageError: pl94-us has no table [read], which says what the data frames are
    """
    layout = getattr(configuration.checked, "read", None)
    if layout is None:
        raise UsageError(f"{configuration.source} has no table [read], which says what the data frames are")
    known = {*layout.files.values(), *(layout.geography.areas if layout.geography.listed else ())}
    if set(frames) != known:
        raise UsageError(
            f"data frames for {', '.join(frames) or 'nothing'}; allowed: one for each of {', '.join(sorted(known))}, as [read] names them"
        )
    _require_account(options)
    return _release_frames(configuration, frames, Path(out), options)


def _require_account(options: Mapping[str, Any]) -> None:
    if options.get("test_key") is None and not (options.get("ledger") and options.get("dataset")):
        raise UsageError("a release from data frames needs ledger= and dataset=; test_key= is for tests")


def _release_frames(
    configuration: Configuration, frames: Mapping[str, object], out: Path, options: RunKeywords
) -> Release:
    """Run on frames that are written as Parquet under the names of files."""
    import pyarrow.parquet as pq

    from censafe.products.run.scratch import private_scratch

    place = Path(options.get("scratch") or out.resolve().parent)
    place.mkdir(parents=True, exist_ok=True)
    with private_scratch(place, place, out=out) as scratch:
        folder = scratch / "frames"
        folder.mkdir()
        for name, frame in frames.items():
            pq.write_table(_arrow(name, frame), folder / name)
        options["scratch"] = place
        return release(configuration, folder, out, **options)


def _arrow(name: str, frame: object) -> pa.Table:
    import pyarrow as pa

    if isinstance(frame, Frame):
        return frame.arrow
    if isinstance(frame, pa.Table):
        return frame
    if hasattr(frame, "__arrow_c_stream__"):
        return pa.table(frame)
    if type(frame).__module__.startswith("pandas"):
        return pa.Table.from_pandas(frame, preserve_index=False)
    raise UsageError(f"{name} is a {type(frame).__name__}; give an Arrow table or a data frame")


def explorer_page() -> str:
    """A page on which budgets and margins of error of all products are tried out: one HTML text that needs no network.

    Source: the plans of the shipped configurations.

    Example:
        >>> explorer_page()[:15]
        '<!doctype html>'
    """
    from censafe.planning.explorer.page import explorer_page as written
    from censafe.products.registry import shipped_sheets
    from censafe.version import __version__

    return written(shipped_sheets(), __version__)


@public
def write_explorer(path: Path | str) -> None:
    """Write the page of :func:`explorer_page`.

    Args:
        path: of the page; what stood there before gives way when the new page is complete.

    Raises:
        StorageError: the disk is full, the folder not there or not writable, or ``path`` is not a file; nothing is left behind.
    """
    from censafe.publication.atomic import named_file

    with named_file(Path(path)) as stream:
        stream.write(explorer_page().encode("utf-8"))


def explorer_server(page: str, port: int) -> tuple[HTTPServer, str]:
    """A server of the page that no other machine sees, and its address.

    Args:
        page: of :func:`explorer_page`.
        port: 0 for any free one.

    Raises:
        OSError: the port is taken.
    """
    from censafe.planning.explorer.page import ADDRESS, content_policy, page_server

    server = page_server(page, content_policy(), port)
    return server, f"http://{ADDRESS}:{server.server_address[1]}/"


@public
def demonstrate(
    out: Path | str,
    *,
    persons: int = 650_000,
    state: str = "50",
    seed: int = 1,
    progress: Observer | None = None,
) -> str:
    """A synthetic state through all products and their evaluations, and defenses beside each other, under test keys: nothing is private, nothing is spent.

    Args:
        out: a new or empty folder.
        persons: of the state, 1,000 or more.
        state: two-digit code.
        seed: of records and test keys.
        progress: receives stages; none without.

    Returns:
        What to open, in a few lines.

    Raises:
        UsageError: the folder is not empty, or too few persons.

    Source: the shipped configurations.

    Example:
        >>> demonstrate("anywhere", persons=10)
        Traceback (most recent call last):
        censafe.errors.UsageError: a demonstration has 1,000 persons or more
    """
    from censafe.attack.comparison.entry import demonstrate_defenses
    from censafe.evaluation.demo import run_demo
    from censafe.model.observer import SilentObserver

    if persons < 1_000:
        raise UsageError("a demonstration has 1,000 persons or more")
    observer = progress or SilentObserver()
    attack = partial(demonstrate_defenses, Path(out), persons, state, seed, observer)
    return run_demo(Path(out), persons=persons, state=state, seed=seed, observer=observer, last=attack)


@public
def configuration_keys(product: str) -> Frame:
    """Every key that a configuration of a product may have, one row each.

    Args:
        product: ``phsafe``, ``safetab-p``, ``safetab-h`` or ``topdown``.

    Returns:
        Text columns ``key`` (with dots; capitals stand for any name), ``bureau`` (the Bureau's key, where it differs), ``kind``,
        ``allowed``, ``default``, ``unit``, ``meaning``, ``example``, and ``settable``: whether ``--set`` changes it.

    Raises:
        UsageError: there is no such product.

    Source: the types that read configurations; the Bureau's keys are those of its released code.

    Example:
        >>> keys = configuration_keys("phsafe").arrow.to_pylist()
        >>> [(row["key"], row["default"]) for row in keys if row["kind"] == "word"]
        [('privacy_definition', ''), ('reader', ''), ('sensitivity', 'bureau')]
    """
    import pyarrow as pa

    from censafe.products.configuration.document import described_keys
    from censafe.products.registry import product_of

    return Frame(pa.Table.from_pylist(described_keys(product, product_of(product).fields)))


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
