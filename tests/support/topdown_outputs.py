"""What finished TopDown runs published, in plain Python types."""

from collections import defaultdict
from pathlib import Path

import pyarrow.parquet as pq


def histogram_sums(path: Path, digits: int) -> dict[str, dict[int, int]]:
    """Records by cell of a published histogram, its geounits added up by the first digits of their codes."""
    sums: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for row in pq.read_table(path).to_pylist():
        sums[row["geocode"][:digits]][row["cell"]] += row["count"]
    return {code: dict(cells) for code, cells in sums.items()}
