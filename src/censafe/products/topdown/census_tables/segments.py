"""Tables as the Bureau publishes them: for every state 44 segment files and a geographic header, joined on LOGRECNO.

What the records do not have of an area, such as its area of land, is an empty field of the header; so are cells of tables that cannot be made.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.geography.regions import states
from censafe.model.cells.lines import CensusTable
from censafe.model.observer import Observer, work_done
from censafe.products.topdown.census_tables.source import OFF_SPINE, Geography, TableSource, is_published
from censafe.publication.atomic import atomic_folder

_OWN: Final = {"place": "PLACE", "cousub": "COUSUB", "aiannh": "AIANHH"}
_COUNTS: Final = {"POP100": "P1", "HU100": "H1"}


@lru_cache(maxsize=1)
def segment_layout() -> Mapping[str, Any]:
    """The layout of the Demographic and Housing Characteristics File.

    Example:
        >>> layout = segment_layout()
        >>> len(layout["segments"]), len(layout["header"]), layout["segments"][3]
        (44, 97, ['HCT1', 'HCT2', 'HCT3'])
    """
    text = resources.files(__package__).joinpath("data", "segments.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def write_segment_files(
    source: TableSource, out: Path, state: str | None, observer: Observer
) -> tuple[Path, ...]:
    """Write the files of every state, a folder each, which appear complete or not at all."""
    if source.product != "dhc":
        raise UsageError(
            "segments: the layout is that of the Demographic and Housing Characteristics File; fix: give a run of topdown dhc-us or dhc-pr"
        )
    if "state" not in source.levels:
        raise UsageError("segments: files are written state by state, and the run publishes no states")
    source.expect(source.tables.values())
    codes = source.level("state")[2].names.tolist() if state is None else [state]
    names = []
    with atomic_folder(out) as folder:
        for code in codes:
            with observer.stage(f"segments of {code}"):
                done = work_done(observer, len(segment_layout()["segments"]) + 1, "files")
                for number, path in enumerate(_write_state(source, folder, code), 1):
                    names.append(path.relative_to(folder))
                    done(number)
    return tuple(out / name for name in names)


@dataclass(frozen=True, eq=False)
class _Records:
    """The records of one summary level in a state."""

    level: Mapping[str, Any]
    geography: Geography
    first: int

    @property
    def codes(self) -> NDArray[np.str_]:
        return self.geography.areas.names

    @property
    def numbers(self) -> pa.Array:
        """Logical record numbers."""
        return _texts([f"{self.first + place:07d}" for place in range(len(self.codes))])


def _write_state(source: TableSource, folder: Path, state: str) -> Iterator[Path]:
    layout, postal = segment_layout(), {one.code: one.postal for one in states()}
    if state not in postal:
        raise UsageError(f"state {state!r}: there is no such state; give its two-digit code")
    place, short = folder / state, postal[state].lower()
    place.mkdir()
    records: list[_Records] = []
    for level in layout["levels"]:
        if level["geography"] in source.levels:
            geography = source.geography(level["geography"], state)
            first = records[-1].first + len(records[-1].codes) if records else 1
            records.append(_Records(level, geography, first))
    counts: dict[str, dict[int, pa.Array]] = {name: {} for name in _COUNTS.values()}
    for number, tables in enumerate(layout["segments"], 1):
        path = place / f"{short}{number:05d}2020.{layout['file']}"
        _write_rows(path, _segment_rows(source, records, (number, tables), postal[state], counts))
        yield path
    path = place / f"{short}geo2020.{layout['file']}"
    _write_rows(path, (_header_rows(source, one, records, postal[state], counts) for one in records))
    yield path


def _write_rows(path: Path, pieces: Iterator[pa.Table]) -> None:
    """Records without a line of names; a segment none of whose tables is published at a level of the run is an empty file."""
    options = pa_csv.WriteOptions(include_header=False, delimiter="|", quoting_style="none")
    writer = None
    with path.open("xb") as stream:
        for piece in pieces:
            writer = writer or pa_csv.CSVWriter(stream, piece.schema, write_options=options)
            writer.write_table(piece)
        if writer is not None:
            writer.close()


def _segment_rows(
    source: TableSource,
    records: list[_Records],
    segment: tuple[int, list[str]],
    postal: str,
    counts: dict[str, dict[int, pa.Array]],
) -> Iterator[pa.Table]:
    """The records of a segment, level by level; the counts of the header are noted on the way."""
    number, names = segment
    layout, tables = segment_layout(), [source.tables[name] for name in names]
    for section in records:
        if not any(is_published(table, section.geography) for table in tables):
            continue
        size = len(section.codes)
        same = dict(
            zip(layout["variables"], (layout["fileid"], postal, "000", f"{number:02d}"), strict=False)
        )
        columns: dict[str, pa.Array] = {name: pa.repeat(text, size) for name, text in same.items()}
        columns[layout["variables"][-1]] = section.numbers
        for table in tables:
            cells = _cells(source, table, section.geography)
            if table.name in counts:
                counts[table.name][section.first] = cells[0]
            columns.update({f"{table.name} {place}": cell for place, cell in enumerate(cells)})
        yield pa.table(columns)


def _cells(source: TableSource, table: CensusTable, geography: Geography) -> list[pa.Array]:
    """Values of every cell as they are written: counts, medians with one decimal, empty where there is none."""
    size = len(geography.areas.names)
    if table.needs or not source.holds(table) or not is_published(table, geography):
        cells = segment_layout()["empty"].get(table.name, len(table.lines))
        return [pa.nulls(size, pa.string())] * cells
    values = np.empty((size, len(table.lines)), np.float64)
    for areas, piece in source.values(table, geography):
        values[areas] = piece
    if not table.median:
        return [pa.array(np.rint(column).astype(np.int64)) for column in values.T]
    return [
        _texts(["" if np.isnan(value) else f"{value:.1f}" for value in column.tolist()])
        for column in values.T
    ]


def _texts(values: list[str]) -> pa.Array:
    return pa.array(values, pa.string())


def _header_rows(
    source: TableSource,
    section: _Records,
    records: list[_Records],
    postal: str,
    counts: dict[str, dict[int, pa.Array]],
) -> pa.Table:
    """The geographic header of the areas of one level."""
    layout, codes, size = segment_layout(), section.codes, len(section.codes)
    sumlev, word = section.level["sumlev"], section.level["geography"]
    # a geocode of the spine names the block group of a block as well, which a GEOID does not
    identifiers = {} if word in OFF_SPINE else source.names.codes_and_names(codes)
    geoids = identifiers.get("GEOID", codes)
    names = identifiers["NAME"] if identifiers else source.names.names_by_code(codes)
    state = str(records[0].codes[0])
    if not OFF_SPINE.get(word, 1):  # areas that may lie in several states
        geoids = np.char.add(state, geoids)
    known: dict[str, pa.Array] = {
        "FILEID": pa.repeat(layout["fileid"], size),
        "STUSAB": pa.repeat(postal, size),
        "SUMLEV": pa.repeat(sumlev, size),
        "GEOVAR": pa.repeat("00", size),
        "GEOCOMP": pa.repeat("00", size),
        "CHARITER": pa.repeat("000", size),
        "CIFSN": pa.repeat("00", size),
        "LOGRECNO": section.numbers,
        "GEOID": _texts([f"{sumlev}0000US{code}" for code in geoids.tolist()]),
        "GEOCODE": _texts(geoids.tolist()),
        "STATE": pa.repeat(state, size),
        "NAME": _texts([str(name).replace("|", " ") for name in names.tolist()]),
    }
    for name, (first, last) in section.level["parts"].items():
        known[name] = _texts([code[first:last] for code in codes.tolist()])
    if word == "block":
        known.update(_areas_of_blocks(section, records))
    for name, table in _COUNTS.items():
        known[name] = counts[table].get(section.first, pa.nulls(size, pa.string()))
    empty = pa.nulls(size, pa.string())
    return pa.table({name: known.get(name, empty).cast(pa.string()) for name in layout["header"]})


def _areas_of_blocks(blocks: _Records, records: list[_Records]) -> Iterator[tuple[str, pa.Array]]:
    """Place, county subdivision and American Indian area of every block, empty for none."""
    for section in records:
        word = section.level["geography"]
        if word not in _OWN:
            continue
        digits = list(section.level["parts"].values())[-1]
        geography = section.geography
        own = dict(zip(geography.geounits.tolist(), geography.areas.area.tolist(), strict=True))
        names = [code[digits[0] : digits[1]] for code in section.codes.tolist()]
        areas = [own.get(code, -1) for code in blocks.codes.tolist()]
        yield _OWN[word], _texts([names[area] if area >= 0 else "" for area in areas])
