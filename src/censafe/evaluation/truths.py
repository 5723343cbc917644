"""CONFIDENTIAL. The true tables of every product by its name on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from censafe.evaluation.phsafe_truth import write_truth
from censafe.evaluation.safetab_truth import write_safetab_truth
from censafe.products.options import ReadOptions

__all__ = ["write_true_tables"]


def write_true_tables(
    product: str,
    config: str,
    data: Path,
    out: Path,
    settings: Mapping[str, str],
    reading: ReadOptions,
    *,
    private_path: bool,
) -> tuple[Path, ...]:
    """Write the true tables of a product; see :func:`censafe.evaluation.safetab_truth.write_safetab_truth`."""
    if product == "phsafe":
        return write_truth(config, data, out, settings, reading, private_path=private_path)
    return write_safetab_truth(
        "safetab-p" if product == "safetab-p" else "safetab-h",
        config,
        data,
        out,
        settings,
        reading,
        private_path=private_path,
    )
