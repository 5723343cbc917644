"""Census tables for any areas, from finished runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from censafe.api.frames import Frame
from censafe.errors import UsageError

if TYPE_CHECKING:
    from censafe.products.topdown.census_tables.definitions import CensusTable
    from censafe.products.topdown.census_tables.source import Geography, TableSource

__all__ = ["table_names", "tables", "write_tables"]


def table_names(product: str = "dhc") -> Frame:
    """The tables of a product: name, title, universe, lowest areas, number of cells, and what the records do not tell.

    Args:
        product: ``dhc``, or ``pl94`` for the redistricting data.

    Raises:
        UsageError: another product.

    Source: 2020 Census DHC technical documentation.

    Example:
        >>> import censafe
        >>> censafe.table_names().arrow.column("table").to_pylist()[:3]
        ['P1', 'P2', 'P3']
    """
    import pyarrow as pa

    from censafe.products.topdown.census_tables.definitions import SCHEMAS, census_tables

    if product not in SCHEMAS:
        raise UsageError(f"product {product!r}: allowed are {', '.join(SCHEMAS)}")
    rows = census_tables(product).values()
    return Frame(
        pa.table(
            {
                "table": [one.name for one in rows],
                "title": [one.title for one in rows],
                "universe": [one.universe for one in rows],
                "lowest": [one.lowest for one in rows],
                "cells": [len(one.lines) for one in rows],
                "needs": [one.needs for one in rows],
            }
        )
    )


def tables(
    run: str | Path,
    table: str | Sequence[str],
    geography: str | None = None,
    *,
    state: str | None = None,
    areas: str | Path | None = None,
    wide: bool = False,
) -> Frame:
    """Tables of the DHC or of the redistricting data from the published histograms of a finished run, or from microdata.

    Args:
        run: folder of a run of topdown (dhc-us, dhc-pr, pl94-us, pl94-pr), or of microdata in the Bureau's layout: pipe-delimited text.
        table: one or more names, such as ``P12``; with `wide`, or where it is a table of medians, one.
        geography: ``us``, ``state``, ``county``, ``tract``, ``block_group`` or ``block``; None with `areas`.
        state: two-digit code of the only state wanted.
        areas: CSV with a column of blocks (``GEOID``, ``GEOID20``, ``GISJOIN`` or ``geocode``) and one column with the code of the area.
        wide: one row an area, with a column for each cell.

    Returns:
        ``GEOID``, ``GISJOIN`` and ``NAME`` (with `areas` the code of the area), then ``table``, ``variable``, ``label`` and ``value``, or one column
        for each variable. Areas in which nothing was counted have no row.

    Raises:
        ConfigError: there is no such table.
        UsageError: a level that the run does not publish, a table below its lowest areas, or that the run does not count.
        DataError: the file of areas breaks a rule.
        StorageError: there is no finished run, or a file cannot be read.

    Source: 2020 Census P.L. 94-171 and DHC technical documentation.

    Example:
        >>> import tempfile, censafe
        >>> folder = Path(tempfile.mkdtemp())
        >>> data = censafe.synthesize(folder / "data", persons=300, states=["44"], layout="dhc")
        >>> chosen = censafe.configuration("topdown", "dhc-us", root="State", measure="units,households")
        >>> made = censafe.release(chosen, data, folder / "dhc", test_key=1)
        >>> tables(folder / "dhc", "H3", "state")
        Frame(3 rows: GEOID, GISJOIN, NAME, table, variable, label, value)
    """
    import pyarrow as pa

    names = [table] if isinstance(table, str) else list(table)
    source, chosen, places = _asked(Path(run), names, geography, state, areas)
    if wide and len(chosen) > 1:
        raise UsageError(
            f"wide: {len(chosen)} tables do not stand in one row; ask for one, or leave wide out"
        )
    if len(places) > 1:
        raise UsageError(
            f"areas: the file has {len(places)} kinds of areas ({', '.join(one.name for one in places)}); give one column"
        )
    return Frame(pa.concat_tables(_pieces(source, chosen, places[0], wide=wide)))


def write_tables(
    run: str | Path,
    out: str | Path,
    table: Sequence[str] = (),
    geography: str | None = None,
    *,
    state: str | None = None,
    areas: str | Path | None = None,
    wide: bool = False,
) -> tuple[Path, ...]:
    """The same, written some areas at a time: for all tables of a state to the block.

    Args:
        run: see :func:`tables`.
        out: a file that ends in ``.csv``, ``.parquet`` or ``.xlsx``; or a folder, for one Parquet file a table, as TABLE_GEOGRAPHY.parquet.
        table: names; all that the geography allows and the run can fill without.
        geography: see :func:`tables`.
        state: see :func:`tables`.
        areas: see :func:`tables`; of several columns each is a geography, which needs a folder.
        wide: one row an area; files of a folder are so always.

    Returns:
        The files written.

    Raises:
        ConfigError: there is no such table.
        UsageError: see :func:`tables`, or several tables in one wide file.
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

    path = Path(out)
    source, chosen, places = _asked(Path(run), table, geography, state, areas)
    if path.suffix not in FORMATS:
        if path.suffix or path.is_file():
            raise UsageError(f"{path}: give a file that ends in {', '.join(FORMATS)}, or a folder")
        found = []
        for place in places:
            for one in chosen:
                found.append(path / f"{one.name}_{place.name}.parquet")
                write_pieces(found[-1], table_pieces(source, one, place, wide=True))
        return tuple(found)
    if len(places) > 1 or (wide and len(chosen) > 1):
        raise UsageError(
            f"{path}: several geographies, or several wide tables, need a folder; give one without an ending"
        )
    write_pieces(path, _pieces(source, chosen, places[0], wide=wide))
    return (path,)


def _asked(
    run: Path, names: Sequence[str], geography: str | None, state: str | None, areas: str | Path | None
) -> tuple[TableSource, list[CensusTable], tuple[Geography, ...]]:
    from censafe.products.topdown.census_tables.definitions import table_named
    from censafe.products.topdown.census_tables.microdata_source import open_source
    from censafe.products.topdown.census_tables.source import is_published, require_published

    source = open_source(run)
    asked = [table_named(name, source.product) for name in dict.fromkeys(names)]
    places = source.geographies(
        [] if geography is None else [geography], [] if areas is None else [Path(areas)], state
    )
    for one in asked:
        source.require(one)
        for place in places:
            require_published(one, place)
    known = [
        one
        for one in source.tables.values()
        if source.holds(one) and not one.needs and all(is_published(one, place) for place in places)
    ]
    return source, asked or known, places


def _pieces(
    source: TableSource, chosen: Sequence[CensusTable], place: Geography, *, wide: bool
) -> Iterator[object]:
    from censafe.products.topdown.census_tables.writing import table_pieces

    if len({bool(one.median) for one in chosen}) > 1:
        raise UsageError(
            "medians and counts are no numbers of one kind; ask for tables P13 on their own, or give a folder"
        )
    for one in chosen:
        yield from table_pieces(source, one, place, wide=wide)
