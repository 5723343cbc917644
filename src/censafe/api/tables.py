"""Census tables for any areas, from finished runs, and cards of areas with the main numbers and how sure they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

from censafe.api.arguments import public
from censafe.api.frames import Frame
from censafe.api.options import CardKeywords, TableKeywords, confidence_of
from censafe.errors import ConfigError, UsageError
from censafe.model.entries import nearest
from censafe.model.observer import SilentObserver, work_done

if TYPE_CHECKING:
    import pyarrow as pa

    from censafe.api.figures import Figure
    from censafe.model.cells.lines import CensusTable
    from censafe.model.observer import Observer
    from censafe.products.topdown.census_tables.source import Geography, TableSource


@public
def table_names(product: str = "dhc", *, run: str | Path | None = None) -> Frame:
    """The tables of a product: name, title, universe, lowest areas, number of cells, and what the records do not have.

    Args:
        product: ``dhc``, or ``pl94`` for the redistricting data.
        run: folder of a run of topdown, or of its microdata, whose product counts in place of `product`.

    Raises:
        UsageError: another product.
        StorageError: there is no finished run.

    Source: 2020 Census DHC technical documentation.

    Example:
        >>> import censafe
        >>> censafe.table_names().arrow.column("table").to_pylist()[:3]
        ['P1', 'P2', 'P3']
    """
    import pyarrow as pa

    from censafe.products.topdown.census_tables.definitions import SCHEMAS, census_tables
    from censafe.products.topdown.census_tables.microdata_source import open_source

    if run is None and product not in SCHEMAS:
        raise UsageError(f"product {product!r}: allowed are {', '.join(SCHEMAS)}")
    source = None if run is None else open_source(Path(run))
    rows = (census_tables(product) if source is None else source.tables).values()
    columns = {
        "table": [one.name for one in rows],
        "title": [one.title for one in rows],
        "universe": [one.universe for one in rows],
        "lowest": [one.lowest if source is None else source.lowest_of(one) for one in rows],
        "cells": [len(one.lines) for one in rows],
        "needs": [one.needs for one in rows],
    }
    return Frame(pa.table(columns))


@public
def tables(
    run: str | Path,
    table: str | Sequence[str] = (),
    geography: str | None = None,
    **options: Unpack[TableKeywords],
) -> Frame:
    """Tables of the DHC or of the redistricting data from the published histograms of a finished run, or from microdata.

    Args:
        run: folder of a run of topdown (dhc-us, dhc-pr, pl94-us, pl94-pr); or results as they were published: microdata (PPMF, MDF), or summary files of
            P.L. 94-171 or the DHC, as a folder, file, ``.zip`` or ``.gz``.
        table: one or more names, such as ``P12``; with `wide`, or where it is a table of medians, one.
        geography: ``us``, ``state``, ``county``, ``tract``, ``block_group`` or ``block``; of runs also ``place``, ``cousub`` or ``aiannh``; of a run with
            schemas of its own the levels of its configuration; None with `areas`.
        options: see :class:`~censafe.api.options.TableKeywords`.

    Returns:
        ``GEOID``, ``GISJOIN`` and ``NAME`` (with `areas` the code of the area), then ``table``, ``variable``, ``label`` and ``value``, or one column
        for each variable. Areas in which nothing was counted have no row. With intervals also ``low``, ``high``, ``bias`` and ``rmse``, or of
        linear ones ``low``, ``high``, ``estimate`` and ``sd``; wide, for each variable the columns ``_low`` and ``_high``.

    Raises:
        ConfigError: there is no such table.
        UsageError: a level that the run does not publish, a table below its lowest areas, or that the run does not count; too few replicates.
        TypeError: a keyword that is none.
        DataError: the file of areas breaks a rule.
        StorageError: there is no finished run, or a file cannot be read.

    Source: 2020 Census P.L. 94-171 and DHC technical documentation; intervals: arXiv 2503.19714.

    Example:
        >>> import tempfile, censafe
        >>> folder = Path(tempfile.mkdtemp())
        >>> data = censafe.synthesize(folder / "data", persons=300, states=["44"], layout="pl94")
        >>> chosen = censafe.configuration("topdown", "pl94-us", root="State")
        >>> made = censafe.release(chosen, data, folder / "run", test_key=1)
        >>> tables(folder / "run", "H1", "state")
        Frame(3 rows: GEOID, GISJOIN, NAME, table, variable, label, value)
    """
    import pyarrow as pa

    names = [table] if isinstance(table, str) else list(table)
    choices = _TableOptions.of(options)
    with choices.observer.stage("read"):
        source, chosen, places = _chosen_tables(Path(run), names, geography, choices)
    if choices.wide and len(chosen) > 1:
        raise UsageError(
            f"wide: {len(chosen)} tables do not stand in one row; ask for one, or leave wide out"
        )
    if len(places) > 1:
        raise UsageError(
            f"`areas`: the file has {len(places)} kinds of areas ({', '.join(one.name for one in places)}); give one column, or a folder as `out`"
        )
    with choices.observer.stage(_stage_of(chosen)):
        return Frame(pa.concat_tables(_pieces(source, chosen, places[0], choices)))


def stamp_of_run(run: str | Path) -> str:
    """Why tables of a run, or of a folder with microdata, protect no one, as a sentence; empty for those of a release.

    Example:
        >>> stamp_of_run("nowhere")
        ''
    """
    from censafe.publication.manifest import read_manifest
    from censafe.publication.stamps import STAMP_NOTES, STAMP_REASONS

    folder = Path(run)
    if (folder / "manifest.json").is_file():
        stamp = read_manifest(folder / "manifest.json").stamp
    else:
        stamp = next((one for one, (note, _) in STAMP_NOTES.items() if (folder / note).exists()), None)
    return "" if stamp is None else f"{stamp}: {STAMP_REASONS[stamp]}."


@public
def write_tables(
    run: str | Path,
    out: str | Path,
    table: Sequence[str] = (),
    geography: str | None = None,
    **options: Unpack[TableKeywords],
) -> tuple[Path, ...]:
    """The same, written some areas at a time: for all tables of a state to the block.

    Args:
        run: see :func:`tables`.
        out: a file that ends in ``.csv``, ``.parquet`` or ``.xlsx``; or a folder, for one Parquet file a table, as TABLE_GEOGRAPHY.parquet.
        table: names; all that the geography allows and the run can fill without.
        geography: see :func:`tables`.
        options: the same; files of a folder are wide always.

    Returns:
        The files written.

    Raises:
        ConfigError: there is no such table.
        UsageError: see :func:`tables`, or several tables in one wide file, or `out` is the list of areas.
        DataError: the file of areas breaks a rule.
        StorageError: the disk is full or a folder not writable.

    Source: 2020 Census DHC technical documentation.

    Example:
        >>> write_tables("no-run", "p12.csv", ["P12"], "tract")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        censafe.errors.StorageError: ...
    """
    from censafe.products.topdown.census_tables.writing import FORMATS, table_pieces, write_pieces

    path, choices = Path(out), _TableOptions.of(options)
    for name in ("areas", "points", "shapes"):
        input_path = options.get(name)
        if (
            isinstance(input_path, str | Path)
            and path.exists()
            and Path(input_path).exists()
            and path.samefile(input_path)
        ):
            raise UsageError(f"{path}: `out` is the file of `{name}`, which would be lost; name another file")
    with choices.observer.stage("read"):
        source, chosen, places = _chosen_tables(Path(run), table, geography, choices)
    if path.suffix not in FORMATS:
        if path.suffix or path.is_file():
            raise UsageError(f"{path}: give a file that ends in {', '.join(FORMATS)}, or a folder")
        written = []
        files = [(place, census_table) for place in places for census_table in chosen]
        with choices.observer.stage(_stage_of(files)):
            done = work_done(choices.observer, len(files), "tables")
            for place, census_table in files:
                written.append(path / f"{census_table.name}_{place.name}.parquet")
                pieces = table_pieces(source, census_table, place, wide=True, confidence=choices.level)
                write_pieces(written[-1], choices.shaped(pieces, source, place))
                done(len(written))
        return tuple(written)
    if choices.shapes is not None and path.suffix != ".parquet":
        raise UsageError(f"{path}: polygons stand in Parquet files; give one, or a folder")
    if len(places) > 1 or (choices.wide and len(chosen) > 1):
        raise UsageError(
            f"{path}: several geographies, or several wide tables, need a folder; give one without an ending"
        )
    with choices.observer.stage(_stage_of(chosen)):
        write_pieces(path, _pieces(source, chosen, places[0], choices))
    return (path,)


@public
def area_map(
    run: str | Path,
    table: Sequence[str] = (),
    geography: str | None = None,
    *,
    line: str = "",
    title: str = "",
    **options: Unpack[TableKeywords],
) -> Figure:
    """A map of one line of a table by area, in five classes of equally many areas.

    Args:
        run: see :func:`tables`.
        table: the name of one table; none with a `query` or a `tables_file`.
        geography: see :func:`tables`.
        line: label of the line, such as ``Female``, with those above where several have it (``Total!!Female``), or its variable; the total, or the only line,
            without.
        title: of the map; the line and the table without.
        options: the same; ``shapes`` are the polygons with the codes of the areas, those of the records where a run has such; ``areas`` without, where these are polygons.

    Raises:
        ConfigError: there is no such table or line.
        UsageError: no polygons, no or several tables, or see :func:`tables`.
        DataError: no polygon has the code of an area.
        StorageError: there is no finished run, or a file cannot be read.

    Source: see :func:`choropleth`.

    Example:
        >>> area_map("no-run", "P1", "county", shapes="counties.geojson")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        censafe.errors.StorageError: ...
    """
    from censafe.api.figures import map_figure
    from censafe.products.topdown.census_tables.shapes import read_shapes
    from censafe.products.topdown.census_tables.writing import line_number

    choices = _TableOptions.of(options)
    polygons = choices.areas if choices.shapes is None and choices.points is not None else choices.shapes
    if choices.wide or choices.intervals:
        raise UsageError("a map shows one number by area; leave out `wide` and `intervals`")
    if polygons is None:
        raise UsageError(
            "a map needs polygons of the areas; give them as `shapes`, or as `areas` with `points`"
        )
    with choices.observer.stage("read"):
        source, chosen, places = _chosen_tables(Path(run), table, geography, choices)
        outlines = read_shapes(Path(polygons), choices.area_property)
    if len(chosen) != 1 or len(places) != 1:
        raise UsageError(
            f"a map shows one table of one kind of areas, not {len(chosen)} of {len(places)}; name a table or a `query`, and a `geography` or a list of one column"
        )
    ((definition,), (place,)) = chosen, places
    number = line_number(definition, line)
    codes = source.codes_of(place).tolist()
    if words := outlines.without(str(polygons), codes):
        choices.observer.remark(words)
    with choices.observer.stage("1 map"):
        values = [float(row[number]) for _, rows in source.values(definition, place) for row in rows]
        known = {
            code: value
            for code, value in zip(codes, values, strict=True)
            if code in outlines.polygons and isfinite(value)
        }
        if not known:
            raise UsageError(f"table {definition.name}: no area has a number of this line")
        stamp = f"{source.stamp}: " if source.stamp else ""
        label = definition.lines[number].label.rstrip(":")
        return map_figure(known, outlines, f"{stamp}{title or f'{label} ({definition.title})'}", "")


@public
def write_segments(
    run: str | Path, out: str | Path, *, state: str | None = None, progress: Observer | None = None
) -> tuple[Path, ...]:
    """All tables of the DHC as the Bureau publishes them: for every state 44 pipe-delimited segments and a geographic header.

    Records have the fields FILEID, STUSAB, CHARITER, CIFSN and LOGRECNO, and then the cells of the tables of the segment in order; LOGRECNO
    joins them to the header. Fields of the header that the records do not have are empty, and so are the cells of P2 and H2.

    Args:
        run: folder of a run of topdown dhc-us or dhc-pr, or of microdata in the Bureau's layout.
        out: a new folder, in which every state has one, such as 44/ri000012020.dhc and 44/rigeo2020.dhc.
        state: two-digit code of the only state; None for all.
        progress: receives stages; none without.

    Returns:
        The files written; all of them or none.

    Raises:
        UsageError: tables of another product, or no such state.
        StorageError: there is no finished run, the folder is there already, or the disk is full.

    Source: 2020 Census DHC technical documentation.

    Example:
        >>> import tempfile, censafe
        >>> folder = Path(tempfile.mkdtemp())
        >>> data = censafe.synthesize(folder / "data", persons=300, states=["44"], layout="pl94")
        >>> chosen = censafe.configuration("topdown", "pl94-us", root="State")
        >>> made = censafe.release(chosen, data, folder / "run", test_key=1)
        >>> write_segments(folder / "run", folder / "segments")
        Traceback (most recent call last):
        ...
        censafe.errors.UsageError: segments: the layout is that of the Demographic and Housing Characteristics File; ...
    """
    from censafe.products.topdown.census_tables.microdata_source import open_source
    from censafe.products.topdown.census_tables.segments import write_segment_files

    observer = progress or SilentObserver()
    with observer.stage("read"):
        source = open_source(Path(run), state)
    return write_segment_files(source, Path(out), state, observer)


@public
def replicate(
    run: str | Path,
    out: str | Path | None = None,
    *,
    count: int = 25,
    seed: int = 1,
    workers: int | None = None,
    results: Mapping[str, str | Path] | None = None,
    progress: Observer | None = None,
) -> tuple[Path, ...]:
    """Runs of the same configuration on the published counts of a finished run of topdown, which stand in for the truth.

    They show how far published numbers may be from the truth, whatever is computed of them, and cost no budget.

    Args:
        run: folder of a finished run.
        out: where they go, a run folder each; RUN-replicates without. Those that are there already stay.
        count: how many; the Bureau found 25 enough.
        seed: of their noise.
        workers: threads; replicates do not depend on them.
        results: by name, run folders of the published results that constrain the run; RUN-NAME without, such as RUN-redistricting.
        progress: receives stages.

    Returns:
        Their folders.

    Raises:
        UsageError: a run of another product, fewer than 2 replicates, or a result that is not there.
        CheckError: files of the run were changed.
        StorageError: there is no finished run, or the disk is full; the same call continues.

    Source: approximate Monte Carlo method, arXiv 2503.19714.

    Example:
        >>> import tempfile, censafe
        >>> folder = Path(tempfile.mkdtemp())
        >>> data = censafe.synthesize(folder / "data", persons=300, states=["44"], layout="pl94")
        >>> chosen = censafe.configuration("topdown", "pl94-us", root="State", measure="persons")
        >>> made = censafe.release(chosen, data, folder / "run", test_key=1)
        >>> [path.name for path in replicate(folder / "run", count=10)][::9]
        ['01', '10']
        >>> result = tables(folder / "run", "P1", "state", intervals="replicates")
        >>> result.columns[-5:]
        ('value', 'low', 'high', 'bias', 'rmse')
    """
    from censafe.products.run.options import RunOptions
    from censafe.products.topdown.census_tables.intervals import replicates_of
    from censafe.products.topdown.census_tables.replicates import make_replicates

    if count < 2:
        raise UsageError(f"`count`: {count} replicates tell no deviation; allowed: 2 or more")
    return make_replicates(
        Path(run),
        replicates_of(Path(run)) if out is None else Path(out),
        count=count,
        seed=seed,
        workers=RunOptions().workers if workers is None else workers,
        results={name: Path(folder) for name, folder in (results or {}).items()},
        observer=progress or SilentObserver(),
    )


@dataclass(frozen=True)
class _TableOptions:
    """The keywords of :class:`~censafe.api.options.TableKeywords`."""

    state: str | None = None
    areas: str | Path | None = None
    points: str | Path | None = None
    area_property: str | None = None
    wide: bool = False
    shapes: str | Path | None = None
    intervals: str | None = None
    replicates: str | Path | None = None
    estimates: str | Path | None = None
    query: str | Sequence[str] = ()
    histogram: str | None = None
    where: str = ""
    tables_file: str | Path | None = None
    confidence: Fraction | int | str = Fraction(9, 10)
    progress: Observer | None = None

    @classmethod
    def of(cls, keywords: Mapping[str, Any]) -> Self:
        """Checked.

        Raises:
            UsageError: a level or kind of intervals that is not allowed.
        """
        options = cls(**keywords)
        confidence_of(options.confidence)
        if options.intervals not in (None, "linear", "replicates"):
            raise UsageError(f"intervals: {options.intervals!r}; allowed: linear, replicates")
        if options.intervals != "replicates" and options.replicates is not None:
            raise UsageError("`replicates` are read for intervals; ask for `intervals` of replicates, too")
        if options.intervals != "linear" and options.estimates is not None:
            raise UsageError("`estimates` are read for intervals; ask for linear `intervals`, too")
        if (options.where or options.histogram) and not options.query:
            raise UsageError("`where` and `histogram` are of a `query`; give one")
        return options

    def own_tables(self, source: TableSource) -> list[CensusTable]:
        """The tables of the file."""
        from censafe.model.cells.lines import parse_table
        from censafe.model.entries import require_keys
        from censafe.model.parsing import read_toml

        if self.tables_file is None:
            return []
        path = Path(self.tables_file)
        document = read_toml(path)
        require_keys(document, path.name, ("tables",))
        if not isinstance(document["tables"], Mapping):
            raise ConfigError(f"{path.name}, tables: give a table for each, such as [tables.T1]")
        tables = []
        for name, entry in document["tables"].items():
            histogram = entry.get("histogram") if isinstance(entry, Mapping) else None
            if histogram not in source.histogram_names:
                raise ConfigError(
                    f"{path.name}, tables.{name}.histogram: give one of {', '.join(source.histogram_names)}"
                )
            if name in source.tables:
                raise ConfigError(
                    f"{path.name}, tables.{name}: a table of the run has this name; give another one"
                )
            tables.append(parse_table(name, entry, source.histogram(histogram)))
        return tables

    def queries(self, source: TableSource) -> list[CensusTable]:
        """A table for each query, of the histogram that is named, or of the first whose schema has its attributes."""
        from censafe.model.cells.lines import query_table

        if self.histogram is not None and self.histogram not in source.histogram_names:
            raise UsageError(
                f"`histogram` {self.histogram!r}: not in {source.place}.{nearest(self.histogram, source.histogram_names)} Allowed: {', '.join(source.histogram_names)}"
            )
        tables = []
        for number, query in enumerate([self.query] if isinstance(self.query, str) else self.query, 1):
            errors = []
            for name in source.histogram_names if self.histogram is None else (self.histogram,):
                try:
                    tables.append(query_table(f"Q{number}", query, name, source.histogram(name), self.where))
                    break
                except ConfigError as error:
                    errors.append(f"{name}: {error}")
            else:
                raise ConfigError("; ".join(dict.fromkeys(errors)))
        return tables

    @cached_property
    def observer(self) -> Observer:
        """What receives stages."""
        return self.progress or SilentObserver()

    @property
    def level(self) -> float:
        """The level of the intervals."""
        return confidence_of(self.confidence)

    def places(self, source: TableSource, geography: str | None) -> tuple[Geography, ...]:
        """The level and the chosen areas."""
        from censafe.products.topdown.census_tables.shapes import listed_areas

        if self.areas is None:
            if self.points is not None:
                raise UsageError("`points` find the blocks of polygons; give these as `areas`")
            if geography is None:
                raise UsageError("name a `geography`, such as county, or a list of areas (`areas`)")
            return (source.geography(geography, self.state),)
        points = None if self.points is None else Path(self.points)
        named = self.area_property if points is not None or self.shapes is None else None
        listed = listed_areas(source, Path(self.areas), points, self.state, named)
        for text in listed[0].remarks:
            self.observer.remark(text)
        return listed if geography is None else (source.geography(geography, self.state), *listed)

    def shaped(self, pieces: Iterator[pa.Table], source: TableSource, place: Geography) -> Iterator[pa.Table]:
        """Pieces of a wide table with the polygons of their areas, where these are given."""
        if self.shapes is None:
            yield from pieces
            return
        from censafe.products.topdown.census_tables.shapes import read_shapes, with_geometry

        shapes = read_shapes(Path(self.shapes), self.area_property)
        own = dict(zip(place.areas.names.tolist(), source.codes_of(place).tolist(), strict=True))
        areas: dict[str, None] = {}
        for piece in pieces:
            codes = [own.get(code, code) for code in piece.column(0).to_pylist()]
            areas |= dict.fromkeys(codes)
            yield with_geometry(piece, codes, shapes)
        if words := shapes.without(str(self.shapes), list(areas)):
            self.observer.remark(words)

    def source(self, run: Path) -> TableSource:
        """What was published, with its replicates for intervals from them."""
        from censafe.products.topdown.census_tables.intervals import open_replicates, replicates_of
        from censafe.products.topdown.census_tables.linear import EstimatedSource, QueryEstimates
        from censafe.products.topdown.census_tables.microdata_source import open_source

        source = open_source(run, self.state)
        if source.recognized:
            self.observer.note(f"{run}: {source.recognized}.")
        if self.intervals is None:
            return source
        if self.intervals == "linear":
            if (self.query or self.tables_file) and not source.card.queries:
                raise UsageError(
                    "a `query` and a table of `tables_file` have intervals of `replicates`; linear estimates are of tables that the run names"
                )
            kind = QueryEstimates if source.card.queries else EstimatedSource
            return kind(source, run if self.estimates is None else Path(self.estimates))
        replicated = open_replicates(
            source, replicates_of(run) if self.replicates is None else Path(self.replicates)
        )
        for text in replicated.remarks:
            self.observer.remark(text)
        return replicated


def _chosen_tables(
    run: Path, names: Sequence[str], geography: str | None, options: _TableOptions
) -> tuple[TableSource, list[CensusTable], tuple[Geography, ...]]:
    from censafe.products.topdown.census_tables.linear import EstimatedSource
    from censafe.products.topdown.census_tables.source import is_published, require_published

    source = options.source(run)
    named = [
        *map(source.named, dict.fromkeys(names)),
        *options.own_tables(source),
        *options.queries(source),
    ]
    places = options.places(source, geography)
    for table in named:
        source.require(table)
        for place in places:
            require_published(table, place)
    known = [
        table
        for table in source.tables.values()
        if source.holds(table) and not table.needs and all(is_published(table, place) for place in places)
    ]
    if isinstance(source, EstimatedSource):
        known = [table for table in known if all(source.has(table, place) for place in places)]
        if not named and not known:
            kinds = ", ".join(place.name for place in places)
            raise UsageError(
                f"{run} has linear estimates of no table for {kinds}; fix: name a table that has some, or a `query`"
            )
        for table, place in product(named or known, places):
            source.require_estimates(table, place)
    source.expect(named or known)
    return source, named or known, places


def _pieces(
    source: TableSource, chosen: Sequence[CensusTable], place: Geography, options: _TableOptions
) -> Iterator[pa.Table]:
    from censafe.products.topdown.census_tables.writing import table_pieces

    if options.shapes is not None and not options.wide:
        raise UsageError("`shapes` are a column of wide tables; ask for `wide`, too")
    if len({bool(table.median) for table in chosen}) > 1:
        raise UsageError(
            "medians and counts are not numbers of one kind; ask for tables P13 on their own, or give a folder"
        )
    done = work_done(options.observer, len(chosen), "tables")
    for number, table in enumerate(chosen, 1):
        pieces = table_pieces(source, table, place, wide=options.wide, confidence=options.level)
        yield from options.shaped(pieces, source, place) if options.wide else pieces
        done(number)


def _stage_of(files: Sequence[object]) -> str:
    return "1 table" if len(files) == 1 else f"{len(files)} tables"


@public
def card(
    run: str | Path, out: str | Path, codes: str | Sequence[str] = (), **options: Unpack[CardKeywords]
) -> tuple[Path, ...]:
    """One page for an area: its main tables with intervals, what can be used, the areas beside it, and a map where shapes are given.

    Args:
        run: folder of a run of topdown (dhc-us, dhc-pr, pl94-us, pl94-pr) with linear estimates of tables or with replicates; of a run with schemas of its own, with
            intervals (:func:`censafe.estimate`) or with replicates; or of microdata in the Bureau's layout with replicates. Linear estimates are used where the run has them for all areas shown, unless `replicates` are named.
        out: for one area a file that ends in ``.html``; otherwise a folder, for a page each.
        codes: GEOIDs of 2 (state), 5 (county), 7 (place), 10 (county subdivision), 11 (tract), 12 (block group) or 15 digits (block), of one kind; of a run
            with schemas of its own the codes of its areas, of one level; or with `areas` codes of the list, none for all of it.
        options: see :class:`~censafe.api.options.CardKeywords`.

    Returns:
        The pages.

    Raises:
        UsageError: no area, areas of several kinds, one that is not there, or too few replicates.
        DataError: the file of areas or of shapes breaks a rule.
        StorageError: there is no finished run, or a file cannot be read or written.
        TypeError: a keyword that is none.

    Source: intervals: arXiv 2503.19714.

    Example:
        >>> card("no-run", "card.html", "44007")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        censafe.errors.StorageError: ...
    """
    from censafe.model.safe_text import file_name
    from censafe.products.topdown.census_tables.card import write_card
    from censafe.products.topdown.census_tables.card_values import card_values, interval_sources
    from censafe.products.topdown.census_tables.microdata_source import open_source
    from censafe.products.topdown.census_tables.shapes import listed_areas, read_shapes

    chosen = tuple(dict.fromkeys([codes] if isinstance(codes, str) else codes))
    listed, points = options.pop("areas", None), options.pop("points", None)
    shapes = options.pop("shapes", listed if points is not None else None)
    area_property = options.pop("area_property", None)
    replicates, confidence = options.pop("replicates", None), options.pop("confidence", "0.9")
    linear, observer = options.pop("estimates", None), options.pop("progress", None) or SilentObserver()
    published = open_source(Path(run))
    if published.recognized:
        observer.note(f"{run}: {published.recognized}.")
    sources = interval_sources(
        published,
        Path(run),
        None if replicates is None else Path(replicates),
        None if linear is None else Path(linear),
    )
    source = sources[0]
    if listed is None:
        level, chosen = published.areas_named(chosen)
        places: tuple[Geography, ...] = (source.geography(level, None),)
    else:
        named = area_property if points is not None else None
        places = listed_areas(source, Path(listed), None if points is None else Path(points), None, named)
        for text in places[0].remarks:
            observer.remark(text)
    values = card_values(sources, places, chosen, confidence_of(confidence))
    for text in values.remarks:
        observer.remark(text)
    targets = chosen or values.codes
    outlines = None if shapes is None else read_shapes(Path(shapes), area_property)
    if outlines is not None and (words := outlines.without(f"{shapes}", targets)):
        observer.remark(words)
    paths = _paths(Path(out), [file_name(code) for code in targets])
    for code, path in zip(targets, paths, strict=True):
        write_card(path, values, code, outlines)
    return paths


def _paths(out: Path, names: Sequence[str]) -> tuple[Path, ...]:
    if out.suffix == ".html":
        if len(names) > 1:
            raise UsageError(f"{out}: {len(names)} areas need a folder; give one without an ending")
        return (out,)
    if len(set(names)) < len(names):
        raise UsageError("two areas of the list would have one file name; give their codes one by one")
    return tuple(out / f"{name}.html" for name in names)
