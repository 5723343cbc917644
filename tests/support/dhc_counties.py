"""Counties of one state that differ in one thing alone: their blocks, their persons, or their kinds of group quarters."""

from __future__ import annotations

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
        blocks: number of them; its housing units are dealt over all of them at random.
        share: of the housing units of the source.
        kinds: of group quarters, the most frequent ones of the source; None for all.
    """

    blocks: int
    share: float = 1.0
    kinds: int | None = None


ALIKE = 3
"""Counties of every size in a state of :data:`STATES`."""
STATES = {
    "blocks": (2_000, (20, 60, 180, 540), lambda blocks: County(blocks)),
    "persons": (6_000, (1 / 27, 1 / 9, 1 / 3, 1), lambda share: County(60, share, 0)),
    "kinds": (2_000, (1, 2, 4, 8), lambda kinds: County(60, 1, kinds)),
}
"""By what differs between its counties: persons of the source, the sizes, and the county of a size."""


def write_state(folder: Path, name: str) -> np.ndarray:
    """Write one of :data:`STATES` into a folder; returns the size of every county.

    Args:
        folder: which must be there; the state is in ``data`` below it.
        name: of the state.
    """
    persons, sizes, county = STATES[name]
    synthesize(folder / "source", persons=persons, states=["50"], layout="dhc")
    size = np.repeat(np.array(sizes, float), ALIKE)
    write_counties(folder / "source", folder / "data", [county(one) for one in sizes for _ in range(ALIKE)])
    return size


def write_counties(source: Path, out: Path, counties: Sequence[County], seed: int = 0) -> None:
    """A state of such counties, each with records of one source; equal shares are the same records.

    Args:
        source: synthetic records of persons and units, and their blocks.
        out: the new folder.
        counties: of the state.
        seed: of the dealing and of the order in which shares are taken.
    """
    units, persons = (pq.read_table(source / f"{name}.parquet") for name in ("units", "persons"))
    quarters = np.array(units["RTYPE"].to_pylist()) == _QUARTERS
    kind = np.array(units["QGQTYP"].to_pylist())
    order = np.random.default_rng(seed).permutation(np.flatnonzero(~quarters))
    frequent = [one for _, one in sorted(((kind[quarters] == one).sum(), one) for one in {*kind[quarters]})][
        ::-1
    ]
    out.mkdir()
    lines, parts = [_HEAD], []
    for number, county in enumerate(counties):
        lines += _block_lines(number, county.blocks)
        named = frequent[: county.kinds]
        homes = order[: round(county.share * len(order))]
        rows = np.sort(np.concatenate([homes, np.flatnonzero(quarters & np.isin(kind, named))]))
        dealt = np.random.default_rng((seed, number)).integers(county.blocks, size=len(rows))
        dealt[: min(len(rows), county.blocks)] = np.arange(min(len(rows), county.blocks))  # none is empty
        codes = [lines[-county.blocks + block].split("|")[0] for block in dealt.tolist()]
        parts.append(_moved(units.take(rows), persons, codes, number))
    (out / "GRF-C.txt").write_text("\n".join(lines) + "\n")
    for place, name in enumerate(("units", "persons")):
        pq.write_table(
            pa.concat_tables([part[place] for part in parts]).unify_dictionaries(), out / f"{name}.parquet"
        )


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
