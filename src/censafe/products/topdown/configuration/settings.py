"""What a configuration says about a histogram, as text under dotted keys: part of its digest and of the manifest."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from censafe.model.topdown.histograms import GeoLevel, MeasuredHistogram


def histogram_settings(
    histogram: MeasuredHistogram, symbol: str, levels: Sequence[GeoLevel]
) -> dict[str, str]:
    """Everything about one histogram that decides what is released, in a fixed order."""
    name = histogram.name
    flat = {}
    if histogram.outputs is not None:
        flat[f"outputs.{name}"] = json.dumps(asdict(histogram.outputs), sort_keys=True)
    flat[f"{symbol}.{name}"] = str(histogram.loss)
    flat[f"histograms.{name}.schema"] = histogram.schema.digest
    flat[f"histograms.{name}.exact_totals"] = histogram.exact_totals or ""
    for level in levels:
        flat[f"level_shares.{name}.{level.name}"] = str(histogram.level_shares[level.name])
        for query, share in histogram.query_shares[level.name].items():
            flat[f"query_shares.{name}.{level.name}.{query}"] = str(share)
        passes = histogram.passes[level.name]
        flat[f"passes.{name}.{level.name}"] = json.dumps([passes.l2, passes.rounding])
    for one in histogram.constraints:
        flat[f"constraints.{name}.{one.name}"] = json.dumps(
            [asdict(one), type(one.right).__name__], sort_keys=True
        )
    if histogram.informed is not None:
        flat[f"informed.{name}"] = json.dumps(asdict(histogram.informed), sort_keys=True)
    return flat
