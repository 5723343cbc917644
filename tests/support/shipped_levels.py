"""The shipped tables of levels, every column read."""

from types import SimpleNamespace

from censafe.products.topdown.configuration.shipped import level_rows
from censafe.products.topdown.configuration.shipped import race_sets as races_of_levels


def race_sets() -> list[SimpleNamespace]:
    """The 63 combinations of races in order, with their items in tables P1 and P2 of the redistricting data."""
    rows = zip(level_rows("cenrace_levels.csv"), races_of_levels(), strict=True)
    return [
        SimpleNamespace(
            level=int(row["level"]),
            code=row["mdf_code"],
            races=races,
            p1_item=row["p1_item"],
            p2_item=row["p2_item"],
        )
        for row, races in rows
    ]


def gq_kinds() -> list[SimpleNamespace]:
    """The eight levels of hhgq in order."""
    return [
        SimpleNamespace(
            level=int(row["hhgq8"]),
            label=row["label"],
            codes=_codes(row["gq_codes"]),
            ipums1940=int(row["ipums1940_gqtype"]),
        )
        for row in level_rows("hhgq8_levels.csv")
    ]


def gq_types() -> list[SimpleNamespace]:
    """The 25 detailed kinds of unit in order, with the group quarters codes of the confidential file."""
    return [
        SimpleNamespace(
            level=int(row["hhgq25"]),
            hhgq=int(row["hhgq8"]),
            input_codes=_codes(row["input_gqtype"]),
            mdf_code=row["mdf_gqtype"],
        )
        for row in level_rows("hhgq_levels.csv")
    ]


def _codes(text: str) -> tuple[str, ...]:
    return tuple(code for code in text.split() if code.isdigit())
