from collections.abc import Mapping
from pathlib import Path

import pytest

from censafe.errors import ConfigError, DataError
from censafe.evaluation.confidential import STAMP_FILE
from censafe.evaluation.tables.flow import TableProduct, TableRequest, TrueTables, write_truth
from censafe.evaluation.tables.registry import TABLE_PRODUCTS
from censafe.products.run.options import ReadOptions


def one_table(config: str, settings: Mapping[str, str], private_path: bool) -> TrueTables:
    """Writes the number of records of a file; an empty file breaks a rule."""

    def write(data: Path, scratch: Path, reading: ReadOptions, folder: Path) -> list[str]:
        assert scratch.is_dir()
        records = (data / "records.txt").read_text().split()
        (folder / "N").mkdir()
        (folder / "N" / "n.csv").write_text(f"{len(records)}|{private_path}\n")
        if not records:
            raise DataError("there are no records")
        return ["N/n.csv"]

    return write


def toy() -> TableProduct:
    return TableProduct("toy", "Toy", TABLE_PRODUCTS["phsafe"].trials, one_table)


def request_of(folder: Path, records: str, config: str = "any") -> TableRequest:
    data = folder / "data"
    data.mkdir()
    (data / "records.txt").write_text(records)
    return TableRequest(config, {}, data, folder / "out", ReadOptions())


def test_true_tables_are_stamped_in_every_folder(tmp_path: Path) -> None:
    (path,) = write_truth(toy(), request_of(tmp_path, "a b c"), private_path=True)
    assert path == tmp_path / "out" / "tables" / "N" / "n.csv"
    assert path.read_text() == "3|True\n"
    for folder in (path.parent, path.parent.parent, tmp_path / "out"):
        assert (folder / STAMP_FILE).read_text().startswith("CONFIDENTIAL")


def test_tables_of_records_that_break_a_rule_do_not_appear(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        write_truth(toy(), request_of(tmp_path, ""), private_path=False)
    assert not (tmp_path / "out" / "tables").exists()
    assert not (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.parametrize("product", TABLE_PRODUCTS)
def test_a_wrong_configuration_leaves_no_folder(tmp_path: Path, product: str) -> None:
    with pytest.raises(ConfigError):
        write_truth(TABLE_PRODUCTS[product], request_of(tmp_path, "", "nowhere"), private_path=False)
    assert not (tmp_path / "out").exists()
