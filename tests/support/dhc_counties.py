"""Counties of one state that differ in one thing alone: their blocks, their persons, or their kinds of group quarters."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from censafe import synthesize

_QUARTERS = "4"  # RTYPE of a facility of group quarters
_BLOCKS_OF_GROUP = 20
_GROUPS_OF_TRACT = 3
_HEAD = "OIDTABBLK|TABBLKST|TABBLKCOU|TABTRACTCE|TABBLKGRPCE|TABBLK|AIANNHCE|PLACEFP|COUSUBFP|PLACEFS|COUSUBFS|SDUNILEA|SDSECLEA|SDELMLEA"


@dataclass(frozen=True)
class County:
    """What a county holds.

    Args:
        blocks: number of them; units are dealt over all of them at random.
        homes: number of housing units.
        kinds: of group quarters, with one facility each.
    """

    blocks: int
    homes: int
    kinds: int


SOURCE = 60_000
"""Persons of the source of :data:`STATES`."""
ALIKE = 3
"""Counties of every size in a state of :data:`STATES`."""
STATES = {
    "blocks": {size: County(size, 860, 4) for size in (20, 60, 180, 540)},
    "persons": {size: County(60, size, 0) for size in (95, 285, 860, 2_570)},
    "kinds": {size: County(60, 860, size) for size in (1, 2, 4, 8)},
}
"""By what differs between the counties of a state: the counties by size."""


def write_state(folder: Path, name: str) -> np.ndarray:
    """Write one of :data:`STATES` into a folder; returns the size of every county.

    Args:
        folder: which must be there; the state is in ``data`` below it.
        name: of the state.
    """
    synthesize(folder / "source", persons=SOURCE, states=["50"], layout="dhc")
    size = np.repeat(list(STATES[name]), ALIKE)
    write_counties(folder / "source", folder / "data", [STATES[name][one] for one in size.tolist()])
    return size.astype(float)


def write_counties(source: Path, out: Path, counties: Sequence[County], seed: int = 0) -> None:
    """A state of such counties; those with as many homes and kinds have the same records.

    Args:
        source: synthetic records of persons and units.
        out: the new folder.
        counties: of the state; they have homes of one random order, and the smallest facilities of different kinds.
        seed: of the order and of the dealing.
    """
    units, persons = (pq.read_table(source / f"{name}.parquet") for name in ("units", "persons"))
    quarters = np.array(units["RTYPE"].to_pylist()) == _QUARTERS
    homes = np.random.default_rng(seed).permutation(np.flatnonzero(~quarters))
    smallest: dict[str, int] = {}
    for place in sorted(np.flatnonzero(quarters).tolist(), key=units["FINAL_POP"].to_numpy().__getitem__):
        smallest.setdefault(units["QGQTYP"][place].as_py(), place)
    facilities = list(smallest.values())
    out.mkdir()
    lines, parts = [_HEAD], []
    for number, county in enumerate(counties):
        if len(homes) < county.homes or len(facilities) < county.kinds:
            raise ValueError(
                f"the source has {len(homes)} homes and {len(facilities)} kinds of group quarters"
            )
        rows = np.sort([*homes[: county.homes], *facilities[: county.kinds]])
        dealt = np.random.default_rng((seed, number)).integers(county.blocks, size=len(rows))
        dealt[: min(len(rows), county.blocks)] = np.arange(min(len(rows), county.blocks))  # none is empty
        lines += _block_lines(number, county.blocks)
        codes = [lines[block - county.blocks].split("|")[0] for block in dealt.tolist()]
        parts.append(_moved(units.take(rows), persons, codes, number))
    (out / "GRF-C.txt").write_text("\n".join(lines) + "\n")
    for place, name in enumerate(("units", "persons")):
        tables = [part[place] for part in parts]
        pq.write_table(pa.concat_tables(tables).unify_dictionaries(), out / f"{name}.parquet")


def _block_lines(number: int, blocks: int) -> list[str]:
    """Lines of the geographic reference file; the first blocks of a county fill its first block group."""
    county, found = f"{2 * number + 1:03d}", []
    for block in range(blocks):
        group = block // _BLOCKS_OF_GROUP
        tract, digit = 100 * (group // _GROUPS_OF_TRACT + 1), group % _GROUPS_OF_TRACT + 1
        own = f"{digit}{block % _BLOCKS_OF_GROUP:03d}"
        code = f"50{county}{tract:06d}{digit}{own}"
        places = "9999|00100|00111|A|A|99999|00102|00102"
        found.append(f"210000{code}|50|{county}|{tract:06d}|{digit}|{own}|{places}")
    return found


def _moved(units: pa.Table, persons: pa.Table, codes: list[str], number: int) -> tuple[pa.Table, pa.Table]:
    """Units in other blocks, with their persons, under numbers that no other county has."""
    inside = persons.filter(pc.is_in(persons["MAFID"], units["MAFID"].combine_chunks()))
    ids = units["MAFID"].to_numpy()
    found = []
    for table in (units, inside):
        fresh = np.searchsorted(np.sort(ids), table["MAFID"].to_numpy()) + 1 + 1_000_000 * (number + 1)
        place = table.column_names.index("MAFID")
        found.append(table.set_column(place, table.schema.field("MAFID"), pa.array(fresh.astype(np.int32))))
    place = units.column_names.index("OIDTB")
    field = units.schema.field("OIDTB")
    found[0] = found[0].set_column(place, field, pa.array(codes).cast(field.type))
    return found[0], found[1]
