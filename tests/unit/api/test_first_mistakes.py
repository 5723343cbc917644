"""What people write first, and what they are told: found in dry runs of new users."""

from collections.abc import Callable
from pathlib import Path

import pytest

import censafe
from censafe.errors import CensafeError
from support.commands import CommandLine


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("plan", "sdhc-us"), "'sdhc-us' is a configuration of phsafe; write phsafe sdhc-us."),
        (("plan", "sdhc"), "'sdhc' is not one of 'phsafe', 'safetab-p', 'safetab-h', 'topdown'."),
        (("truth", "pl94-us"), "'pl94-us' is not one of 'phsafe', 'safetab-p', 'safetab-h'."),
    ],
)
def test_a_configuration_in_the_place_of_its_product(
    censafe: CommandLine, arguments: tuple[str, ...], message: str
) -> None:
    censafe(*arguments, ends=2, says=message)


def test_a_folder_of_text_files_under_the_reader_of_the_production(
    censafe: CommandLine, tmp_path: Path
) -> None:
    done = censafe("run", "phsafe", "sdhc-us", tmp_path, tmp_path / "out", "--quiet", ends=1)
    assert "add --set reader=csv" in done.err


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: censafe.plan("sdhc-us"), "'sdhc-us' is not a configuration; write censafe.configuration"),  # type: ignore[arg-type]
        (lambda: censafe.release("sdhc-us", "data", "out"), "is not a configuration"),  # type: ignore[arg-type]
        (lambda: censafe.validate("sdhc-us", "data"), "is not a configuration"),  # type: ignore[arg-type]
        (lambda: censafe.evaluate("sdhc-us", "data", "out"), "is not a configuration"),  # type: ignore[arg-type]
        (lambda: censafe.noise(100, 10), r"give censafe\.NoiseLaw\.gaussian"),  # type: ignore[arg-type]
        (lambda: censafe.choropleth({"44": 1.0}, "none.shp", title="Error"), "there is no such file"),
    ],
)
def test_a_name_in_the_place_of_an_object(call: Callable[[], object], message: str) -> None:
    with pytest.raises(CensafeError, match=message):
        call()


def test_tables_do_not_replace_the_list_of_areas_they_are_made_for(
    censafe: CommandLine, tmp_path: Path
) -> None:
    areas = tmp_path / "districts.csv"
    areas.write_text("GEOID,district\n440010001001000,1\n")
    done = censafe("tables", tmp_path, "--table", "P1", "--areas", areas, "--out", areas, ends=2)
    assert f"{areas}: --out is the file of --areas, which would be lost; name another file" in done.err
    assert areas.read_text() == "GEOID,district\n440010001001000,1\n"
