"""What is made of a histogram: the entries of ``outputs.toml``, found by the attributes of its schema."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

from censafe.model.topdown.histograms import MeasuredHistogram
from censafe.products.topdown.configuration.microdata import microdata_layout
from censafe.products.topdown.configuration.shipped import shipped_schemas
from censafe.publication.microdata.layouts import MicrodataLayout

__all__ = ["OutputLayout", "microdata_layouts", "output_layouts", "outputs_of", "title_of"]


@dataclass(frozen=True)
class OutputLayout:
    """What a run publishes of a histogram beside the histogram itself.

    Args:
        title: of the certificate.
        digits: of the lowest areas for which the microdata have columns; 0 where there are no microdata.
        microdata: layouts of its files; see :func:`microdata_layouts`.
        tables: of the redistricting data that its cells fill.
        intervals: queries whose intervals are given where none are asked for; empty for the total and all margins.
        exact: kinds of record that are published without noise.
        report: what an evaluation compares: queries of the schema with words for each; empty for what its attributes suggest.
    """

    title: str = "Histograms by TopDown"
    digits: int = 0
    microdata: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    intervals: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()
    report: tuple[tuple[str, str], ...] = ()


@lru_cache(maxsize=1)
def output_layouts() -> Mapping[str, OutputLayout]:
    """The shipped layouts by name of the schema, in the order in which they give a certificate its title.

    Example:
        >>> list(output_layouts()), output_layouts()["pl94-units"].tables
        (['pl94-persons', 'pl94-units', 'dhc-persons', 'dhc-households', 'e2e-1940', 'dhc-units'], ('H1',))
    """
    return {name: _layout(entry) for name, entry in _entries("outputs.toml").items()}


@lru_cache(maxsize=1)
def microdata_layouts() -> Mapping[str, MicrodataLayout]:
    """The shipped layouts of microdata by name.

    Example:
        >>> [(name, len(layout.columns)) for name, layout in microdata_layouts().items()]
        [('pl94-persons', 13), ('pl94-units', 9), ('dhc-persons', 16), ('dhc-units', 27), ('e2e-persons', 23), ('e2e-units', 25)]
    """
    schemas = shipped_schemas()
    return {
        name: microdata_layout(name, entry, schemas) for name, entry in _entries("microdata.toml").items()
    }


def _entries(file: str) -> dict[str, dict[str, Any]]:
    place = resources.files("censafe.products.topdown.configuration").joinpath("data", file)
    return tomllib.loads(place.read_text(encoding="utf-8"))


def _layout(entry: dict[str, Any]) -> OutputLayout:
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in entry.items()
        if key != "report"
    }
    fields["report"] = tuple((query, words) for query, words in entry.get("report", []))
    return OutputLayout(**fields)


def outputs_of(histogram: MeasuredHistogram) -> OutputLayout:
    """The layout of the shipped schema whose attributes a histogram has; one without files for any other."""
    attributes = histogram.schema.schema.attributes
    schemas = shipped_schemas()
    known = (
        layout for name, layout in output_layouts().items() if schemas[name].schema.attributes == attributes
    )
    return next(known, OutputLayout())


def title_of(histograms: Iterable[MeasuredHistogram]) -> str:
    """Title of a run's certificate.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> title_of(load_config("e2e-1940").histograms)
        '1940 census: microdata by TopDown'
    """
    found = {outputs_of(one) for one in histograms}
    return next(
        (layout.title for layout in output_layouts().values() if layout in found), OutputLayout().title
    )
