"""Tables whose texts are stored as codes compare like tables of texts."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from censafe.evaluation.pair_tables import match_tables


def test_columns_of_codes_are_read_as_their_values(tmp_path: Path) -> None:
    areas = pa.array(["b", "a"])
    pq.write_table(pa.table({"area": areas.dictionary_encode(), "count": [2, 1]}), tmp_path / "true.parquet")
    pq.write_table(pa.table({"area": areas, "count": [5, 1]}), tmp_path / "public.parquet")
    matched = match_tables(tmp_path / "true.parquet", tmp_path / "public.parquet")
    assert dict(matched.facts) == {"only_confidential": 0, "only_published": 0}
