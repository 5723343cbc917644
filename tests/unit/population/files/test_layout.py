import pytest

from censafe.geography.regions import REGION_TYPES
from censafe.population.files.layout import TABLES, Column, layout

SAFETAB = ("safetab-persons", "safetab-households", "safetab-totals")


def column(table: str, name: str) -> Column:
    return next(entry for entry in layout(table).columns if entry.name == name)


def test_layouts_have_the_columns_of_the_specification_in_order() -> None:
    assert layout("persons").header == ("RTYPE", "MAFID", "QAGE", "CENHISP", "CENRACE", "RELSHIP")
    assert layout("units").header == (
        "RTYPE", "MAFID", "FINAL_POP", "NPF", "HHSPAN", "HHRACE", "TEN", "HHT", "HHT2", "CPLT",
    )  # fmt: skip
    assert layout("geo").header == (
        "RTYPE", "MAFID", "TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLK", "TABBLKGRPCE", "REGIONCE",
        "DIVISIONCE", "PLACEFP", "AIANNHCE",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("table", "name", "count", "first", "last"),
    [
        ("persons", "RTYPE", 2, "3", "5"),
        ("persons", "QAGE", 116, "0", "115"),
        ("persons", "CENRACE", 63, "01", "63"),
        ("persons", "RELSHIP", 19, "20", "38"),
        ("units", "NPF", 97, "0", "97"),
        ("units", "HHRACE", 64, "00", "63"),
        ("units", "HHT2", 13, "00", "12"),
        ("geo", "REGIONCE", 5, "1", "9"),
    ],
)
def test_domains_are_those_of_the_specification(
    table: str, name: str, count: int, first: str, last: str
) -> None:
    values = column(table, name).values()
    assert values is not None
    assert (count, first, last) == (len(values), values[0], values[-1])


def test_one_is_no_number_of_persons_in_a_family() -> None:
    assert "1" not in (column("units", "NPF").values() or ())


def test_large_domains_are_compared_as_ranges() -> None:
    assert column("units", "FINAL_POP").values() is None
    assert column("geo", "MAFID").ranges == ((100_000_001, 899_999_999),)


def test_every_column_says_what_it_means_and_what_is_allowed() -> None:
    for table in (*TABLES, *SAFETAB):
        for entry in layout(table).columns:
            assert entry.meaning
            assert entry.allowed
            assert not entry.allowed.startswith(",")


def test_geo_fits_its_faults_into_sixteen_bits() -> None:
    assert len(layout("geo").checked) <= 16


def test_types_of_regions_are_those_of_the_geography() -> None:
    assert column("safetab-totals", "REGION_TYPE").words == ", ".join(kind.name for kind in REGION_TYPES)
