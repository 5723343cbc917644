"""First lines that are no headers are findings, not faults of the program."""

from pathlib import Path

import pytest

from censafe.errors import CensafeError, DataError
from censafe.geography.area_tables import column_names, read_table
from censafe.population.blocks.columns import batches
from censafe.population.files.delimited import csv_relation
from censafe.population.files.relation import TableFiles
from censafe.population.findings import Finding
from censafe.publication.measurements.geography import read_exact_totals

TEXTS = {
    "lines end as on old computers": b"geocode,cell,count\r4400103010011000,1,2\r",
    "a name without an end": b"geocode,cell,count," + b"x" * 200_000 + b"\n1,2,3,4\n",
}


@pytest.mark.parametrize("text", TEXTS)
def test_headers_that_cannot_be_parsed_are_findings(tmp_path: Path, text: str) -> None:
    path = tmp_path / "histogram.csv"
    path.write_bytes(TEXTS[text])
    found: list[Finding] = []
    assert list(batches(path, (("geocode", "cell", "count"),), (), found)) == []
    assert [one.severity for one in found] == ["stop"]
    relation = csv_relation(TableFiles("persons", "text", (path,), "persons"))
    assert relation.findings
    for read in (read_table, column_names):
        with pytest.raises(DataError, match=r"histogram\.csv"):
            read(path, "the list")
    with pytest.raises(CensafeError):
        read_exact_totals(path)
