"""What the columns of an evaluation's files mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from censafe.evaluation.shipped import shipped_rows

CODEBOOK: Final[Mapping[str, tuple[str, str]]] = {
    row["column"]: (row["meaning"], row["unit"]) for row in shipped_rows("codebook.csv")
}
"""Meaning and unit by column."""
