"""Stored measurements of a DHC run as the Bureau's public files have them (DHC specification, section 10).

Every partition has integers of other widths, rows in any order, folders by state and county, no metadata, and constraints that state the
published redistricting counts and the bounds by facility; state totals, geography and configuration are left out.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

ABOVE = 99_999  # persons of one facility
_ALL_STATED = ("pl94", "hhgq_total_lb", "hhgq_total_ub", "h1", "h1_vacant", "gq_vect")
_WIDTHS = (pa.int64(), pa.int16(), pa.int32(), pa.uint32())
_PLACES = {"US_DHCP_PROD": "persons", "US_DHCH_PROD": "households", "units": "units"}
_CENSUS = 16


def write_bureau_files(run: Path, redistricting: Path, out: Path) -> Path:
    """Write all measurements of a run that stored them, with what the redistricting run published in the constraints."""
    exact = _exact(run, redistricting)
    for product in _PLACES:
        for level in sorted((run / "measurements" / product).iterdir()):
            blocks = pq.read_table(level.with_name("Block.parquet") / "Constraint", columns=["geocode"])
            codes = sorted(set(blocks["geocode"].to_pylist()))
            target = out / product / level.name
            _write(target / "DPQuery", _read(level / "DPQuery"), level.stem)
            stated = _stated(_read(level / "Constraint"), codes, exact, _PLACES[product])
            _write(target / "Constraint", stated, level.stem)
    return out


def _read(folder: Path) -> pa.Table:
    files = sorted(folder.rglob("*.parquet"))
    tables = [pq.ParquetFile(path).read().replace_schema_metadata(None) for path in files]
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()


def _exact(run: Path, redistricting: Path) -> Callable[[str, str], np.ndarray]:
    """Figures of a census block by constraint."""
    geography = pq.read_table(run / "measurements" / "geography.parquet")
    units = np.stack([geography[f"units_{kind}"].to_numpy() for kind in range(25)], axis=1)
    places = {code: at for at, code in enumerate(geography["geocode"].to_pylist())}
    people, homes = (
        _histogram(redistricting / "histograms" / f"{name}_Block.parquet", places, cells)
        for name, cells in (("persons", 2016), ("units", 2))
    )
    figures = {
        "pl94": people,
        "hhgq_total_lb": units * np.array([0] + [1] * 24),
        "hhgq_total_ub": units * ABOVE,
        "h1": homes[:, 1:],
        "h1_vacant": homes[:, :1],
        "gq_vect": units,
    }
    return lambda name, block: figures[name][places[block]]


def _histogram(path: Path, places: dict[str, int], cells: int) -> np.ndarray:
    table = pq.read_table(path, columns=["geocode", "cell", "count"])
    found = np.zeros((len(places), cells), np.int64)
    rows = [places[code] for code in table["geocode"].to_pylist()]
    np.add.at(found, (rows, table["cell"].to_numpy()), table["count"].to_numpy())
    return found


def _stated(
    table: pa.Table, blocks: list[str], exact: Callable[[str, str], np.ndarray], histogram: str
) -> pa.Table:
    """The constraints of a level without totals and with sums over its blocks."""
    kept = table.filter(pc.not_equal(table["query_name"].cast(pa.string()), "total_con"))
    names = _ALL_STATED[:3] if histogram == "persons" else _ALL_STATED[3:4]
    names = _ALL_STATED[4:] if histogram == "units" else names
    attributes = table.schema.names[7:]
    rows = []
    for code in sorted(set(table["geocode"].to_pylist())):
        own = [block[-_CENSUS:] for block in blocks if block.startswith(code)]
        for name in names:
            value = sum(exact(name, block) for block in own)
            shape = [len(value), *([1] * (len(attributes) - 1))]
            sign = {"hhgq_total_lb": ">=", "hhgq_total_ub": "<="}.get(name, "=")
            text = {
                "geocode": code, "query_name": f"{name}_con", "query_shape": shape, "sign": sign, "plb": 0.0,
            }  # fmt: skip
            rows.append(text | {"value": value.tolist(), "variance": 0.0} | dict.fromkeys(attributes, "*"))
    plain = _plain(kept, pa.int64())
    return pa.concat_tables([plain, pa.Table.from_pylist(rows, schema=plain.schema)])


def _plain(table: pa.Table, width: pa.DataType) -> pa.Table:
    """Columns as other engines write them: plain text, lists of integers of one width."""
    columns = {}
    for name in table.schema.names:
        column = table[name]
        if pa.types.is_dictionary(column.type):
            column = column.cast(pa.string())
        elif name == "value":
            column = column.cast(pa.list_(width))
        elif name == "query_shape":
            column = column.cast(pa.list_(pa.int64() if width == pa.int64() else pa.int32()))
        columns[name] = column
    return pa.table(columns)


def _parts(codes: list[str], level: str) -> Iterator[tuple[str, np.ndarray]]:
    """Folder and rows of every partition: by state, and by county as well at that level."""
    states = np.array([code[:3] for code in codes], object)
    for state in sorted(set(states)):
        if not state:
            yield "", np.arange(len(codes))
            continue
        mine = np.flatnonzero(states == state)
        if level != "County":
            yield f"State={state}", mine
            continue
        for code in sorted({codes[at] for at in mine}):
            yield f"State={state}/County={code}", np.array([at for at in mine if codes[at] == code])


def _write(folder: Path, table: pa.Table, level: str) -> None:
    rng = np.random.default_rng(len(level))
    for number, (place, rows) in enumerate(_parts(table["geocode"].to_pylist(), level)):
        (folder / place).mkdir(parents=True, exist_ok=True)
        own = table.take(pa.array(rng.permutation(rows)))
        width = _fitting(own, number)
        for half, cut in enumerate(np.array_split(np.arange(len(own)), 2)):
            if len(cut):
                part = _plain(own.slice(int(cut[0]), len(cut)), width)
                pq.write_table(part, folder / place / f"part-{half:05}.snappy.parquet", row_group_size=400)
        (folder / place / "_SUCCESS").write_text("")


def _fitting(table: pa.Table, number: int) -> pa.DataType:
    """The next width that holds all answers."""
    found = pc.min_max(pc.list_flatten(table["value"]))
    least, most = found["min"].as_py(), found["max"].as_py()
    for width in (*_WIDTHS[number % len(_WIDTHS) :], *_WIDTHS):
        limits = np.iinfo(width.to_pandas_dtype())
        if limits.min <= least and most <= limits.max:
            return width
    raise ValueError("answers beyond 64 bits")
