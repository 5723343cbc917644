"""A census that no file of the package knows: its levels, schemas, kinds of quarters, constraints and layouts are one TOML file."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from support.histograms import write_table

TOML = """
title = "Census of an island: residents, homes and dwellings"
levels = [
    { name = "Island", prefix = 0, code = "I" },
    { name = "Region", prefix = 1 },
    { name = "Health_District", crosswalk = "health_district", digits = 2 },
    { name = "Parish", crosswalk = "parish", digits = 3 },
    { name = "Block", prefix = 5 },
]
stacks = [["dwellings", "homes"]]

[rho]
residents = "RHO"
dwellings = "RHO"
homes = "RHO"

# Residents: where they live (three relationships in a home, barracks, a boarding school), age and sex.
[schemas.residents]
attributes = [
    { name = "place", levels = 5, labels = ["owner", "partner", "other", "barracks", "boarding school"] },
    { name = "age", levels = 4, labels = ["0 to 14", "15 to 29", "30 to 64", "65 and over"] },
    { name = "sex", levels = 2, labels = ["female", "male"] },
]
zeros = [
    { name = "young_owners", when = { place = [0, 1], age = [0] } },
    { name = "old_pupils", when = { place = [4], age = ["2-3"] } },
]
[schemas.residents.recodes.quarters]
attribute = "place"
groups = ["0-2", "3", "4"]
[schemas.residents.recodes.adult]
attribute = "age"
groups = ["0", "1-3"]
[schemas.residents.facilities]
attribute = "quarters"
minimum = [0, 1, 2]
largest = [999, 400, 60]

[schemas.dwellings]
record = "household"
attributes = [{ name = "status", levels = 3, labels = ["owned", "rented", "empty"] }]
[schemas.dwellings.recodes.lived_in]
attribute = "status"
groups = ["0", "1"]

[schemas.homes]
record = "household"
attributes = [{ name = "tenure", levels = 2 }, { name = "size", levels = 4 }]

[histograms.residents]
schema = "residents"
exact_totals = "Region"
[[histograms.residents.passes]]
levels = ["Island", "Region", "Health_District", "Parish", "Block"]
l2 = [[["total"], ["quarters * sex", "age", "detailed"]]]
rounding = [[["total"], ["quarters", "quarters * sex", "detailed"]]]

[histograms.dwellings]
schema = "dwellings"
exact_totals = "Block"

[histograms.homes]
schema = "homes"
[[histograms.homes.constraints]]
name = "as_many_homes_as_dwellings"
cells = "tenure"
relation = "="
right = { histogram = "dwellings", cells = "lived_in" }

[outputs.residents]
title = "Residents of the island by TopDown"
microdata = ["people"]
intervals = ["total", "age", "quarters"]
report = [["total", "residents"], ["adult * sex", "adults by sex"]]

[microdata.people]
schema = "residents"
file = "people.txt"
records = "residents"
columns = [
    { name = "REGION", geocode = 1 },
    { name = "DISTRICT", geocode = 2 },
    { name = "PARISH", geocode = 3 },
    { name = "BLOCK", geocode = 4 },
    { name = "NUMBER", number = "record" },
    { name = "QUARTERS", of = "quarters", codes = ["1", "2", "3"] },
    { name = "PLACE", of = "place", first = 1 },
    { name = "AGE", of = "age", codes = ["00", "15", "30", "65"] },
    { name = "SEX", of = "sex", codes = ["2", "1"] },
]

[tables.R1]
title = "AGE BY SEX IN HOMES"
universe = "Residents of homes"
histogram = "residents"
where = "place=0-2"
lines = '''
Total:
. Under 15 years | age=0
. 15 years and over: | age=1-3
. . Female | sex=0
. . Male | sex=1
'''

[level_shares]
residents = { Island = "1/5", Region = "1/5", Health_District = "1/5", Parish = "1/5", Block = "1/5" }
dwellings = { Island = "1/5", Region = "1/5", Health_District = "1/5", Parish = "1/5", Block = "1/5" }
homes = { Island = "1/5", Region = "1/5", Health_District = "1/5", Parish = "1/5", Block = "1/5" }
"""
LEVELS = ("Island", "Region", "Health_District", "Parish", "Block")
SHARES = {
    "residents": '{ total = "1/4", "quarters * sex" = "1/4", age = "1/4", detailed = "1/4" }',
    "dwellings": '{ detailed = "1" }',
    "homes": '{ detailed = "1" }',
}
SHAPES = {"residents": (5, 4, 2), "dwellings": (3,), "homes": (2, 4)}
_Counts = npt.NDArray[np.int64]


def write_island_config(path: Path, rho: str = "1/2", text: str = TOML) -> Path:
    """The configuration, with the same loss for each of the three histograms."""
    shares = "\n".join(
        f"[query_shares.{name}]\n" + "\n".join(f"{level} = {own}" for level in LEVELS)
        for name, own in SHARES.items()
    )
    path.write_text(text.replace("RHO", rho) + shares + "\n", encoding="utf-8")
    return path


def island_codes(regions: int = 3, blocks: int = 14) -> tuple[list[str], list[str]]:
    """Geocodes of five digits, and the codes with district and parish in them; blocks of a parish are not neighbors."""
    plain = [f"{region}{7 * block + 13:04d}" for region in range(1, regions + 1) for block in range(blocks)]
    whole = [
        f"{code[0]}{1 + number % 2:02d}{100 * (number % 2) + number % 6:03d}{code[1:]}"
        for number, code in enumerate(plain)
    ]
    return plain, whole


def island_counts(seed: int, blocks: int) -> tuple[dict[str, _Counts], _Counts]:
    """Counts of every histogram that fit each other, shape (blocks, cells), and of units by kind, shape (blocks, 3)."""
    rng = np.random.default_rng(seed)
    homes = rng.poisson(2.0, (blocks, 2, 4))
    dwellings = np.concatenate([homes.sum(axis=2), rng.poisson(1.0, (blocks, 1))], axis=1)
    residents = np.zeros((blocks, 5, 4, 2), np.int64)
    residents[:, :3] = rng.poisson(2.0, (blocks, 3, 4, 2)) * (dwellings.sum(axis=1) > 0)[:, None, None, None]
    residents[:, :2, 0] = 0
    quarters = rng.random((blocks, 2)) < 0.2
    residents[:, 3, 1:] = rng.integers(1, 9, (blocks, 3, 2)) * quarters[:, :1, None]
    residents[:, 4, :2] = rng.integers(1, 9, (blocks, 2, 2)) * quarters[:, 1:, None]
    units = np.concatenate([dwellings.sum(axis=1, keepdims=True), quarters], axis=1).astype(np.int64)
    counts = {"residents": residents, "dwellings": dwellings, "homes": homes}
    return {name: one.reshape(blocks, -1) for name, one in counts.items()}, units


def write_island_data(folder: Path, counts: dict[str, _Counts], units: _Counts, codes: list[str]) -> Path:
    """histogram.parquet (residents), dwellings.parquet, homes.parquet and units.parquet, in no order of the geocodes."""
    folder.mkdir(parents=True)
    order = np.random.default_rng(3).permutation(len(codes))
    for name, own in counts.items():
        block, cell = np.nonzero(own[order])
        file = "histogram" if name == "residents" else name
        rows = {"geocode": [codes[order[at]] for at in block], "cell": cell, "count": own[order][block, cell]}
        write_table(folder / f"{file}.parquet", rows)
    kinds = {f"gq{kind}": units[order, kind] for kind in range(units.shape[1])}
    write_table(folder / "units.parquet", {"geocode": [codes[at] for at in order], **kinds})
    return folder


def write_island_crosswalk(path: Path, plain: list[str], whole: list[str]) -> Path:
    """The crosswalk of the blocks to districts and parishes, with a column and a block more."""
    rows = [f"{code},{own[1:3]},{own[3:6]},x" for code, own in zip(plain, whole, strict=True)]
    path.write_text(
        "\n".join(["block,health_district,parish,else", *reversed(rows), "90000,01,001,x"]) + "\n"
    )
    return path
