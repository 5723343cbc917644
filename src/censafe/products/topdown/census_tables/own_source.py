"""Published histograms of a run whose schemas are those of its configuration, as a source of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import ConfigError, UsageError
from censafe.geography.identifiers import NAMES, AreaNames, read_area_names
from censafe.geography.own_codes import AREA_CODES, AreaCodes
from censafe.model.cells.counting import AreaBlocks
from censafe.model.cells.lines import CensusTable, query_table
from censafe.model.entries import nearest
from censafe.model.sparse import SparseLevel
from censafe.model.topdown.histograms import HistogramSchema
from censafe.products.topdown.census_tables.definitions import CardContents, CardSection
from censafe.products.topdown.census_tables.source import Geography, TableSource
from censafe.products.topdown.configuration.layout import level_rules
from censafe.products.topdown.configuration.outputs import interval_queries
from censafe.products.topdown.plan import configuration_of_run, exact_levels
from censafe.publication.manifest import Manifest
from censafe.publication.microdata.histograms import histogram_geounits, read_histograms

OWN: Final = "own"
"""Stands for the product of such a run."""


class OwnSource(TableSource):
    """Histograms and tables of a finished run by the names of its configuration; levels are named without regard to case."""

    def __init__(self, run: Path, manifest: Manifest) -> None:
        super().__init__(OWN, run)
        self._config = configuration_of_run(run, manifest)
        self._rules = level_rules(self._config)
        self._levels = {rule.name.lower(): rule.name for rule in self._rules}
        self.lowest = list(self._levels)[-1]
        path = run / NAMES
        self.names = AreaNames(read_area_names(path) if path.exists() else {}, census=False)
        self.own = AreaCodes.of_run(run)
        self.stamp = manifest.stamp
        intervals: Any = manifest.post_processing.get("intervals") or {}
        self._estimated: Mapping[str, Sequence[str]] = intervals.get("queries", {})

    @property
    def histogram_names(self) -> tuple[str, ...]:
        """The histograms of the configuration."""
        return tuple(one.name for one in self._config.histograms)

    @property
    def levels(self) -> tuple[str, ...]:
        """The published levels, the widest first."""
        return tuple(self._levels)

    @property
    def tables(self) -> Mapping[str, CensusTable]:
        """The tables of the configuration by name."""
        return self._config.tables

    def named(self, name: str) -> CensusTable:
        """One of the tables of the configuration."""
        if name not in self.tables:
            known = ", ".join(self.tables) or "none, since the configuration has no tables; give a query"
            raise ConfigError(
                f"table {name!r}: there is no such table of the run.{nearest(name, list(self.tables))} Allowed: {known}"
            )
        return self.tables[name]

    def lowest_of(self, table: CensusTable) -> str:
        """The lowest level; the configuration bounds no table."""
        return self.lowest

    def histogram(self, name: str) -> HistogramSchema:
        """Schema of a histogram of the configuration."""
        return self._config.histogram(name).schema

    @cached_property
    def card(self) -> CardContents:
        """The queries with intervals of every histogram, its total first, and the tables of the configuration."""
        tables: list[CensusTable] = []
        sections: list[CardSection] = []
        queries, nouns = dict[str, str](), dict[str, str]()
        for histogram in self._config.histograms:
            noun = histogram.name.replace("_", " ")
            estimated = self._estimated.get(histogram.name)
            own = []
            for query in dict.fromkeys(["total", *(estimated or interval_queries(histogram))]):
                words = " by ".join(part.strip().replace("_", " ") for part in query.split("*"))
                name = noun if query == "total" else f"{noun}: {words}"
                own.append(replace(query_table(name, query, histogram.name, histogram.schema), title=""))
                queries[name] = query
            own += [table for table in self.tables.values() if table.histogram == histogram.name]
            tables += own
            names = tuple(table.name for table in own)
            sections.append(CardSection(histogram.name, f"{noun[:1].upper()}{noun[1:]}", names))
            nouns[noun] = noun
        totals = tuple(nouns)
        return CardContents(tuple(tables), tuple(sections), nouns, totals, totals, queries, census=False)

    def areas_named(self, codes: Sequence[str]) -> tuple[str, tuple[str, ...]]:
        """The level of some areas by their own codes or by geocodes, and their own codes."""
        places = [self._levels_of(code) for code in codes]
        for code, levels in zip(codes, places, strict=True):
            if not levels:
                raise UsageError(f"{code!r}: {self._no_such_area(code)}")
        common = [level for level in self._levels if all(level in levels for levels in places)]
        if len(common) != 1:
            words = "; ".join(
                f"{code!r} is an area of {' and of '.join(self._levels[level] for level in levels)}"
                for code, levels in dict(zip(codes, places, strict=True)).items()
            )
            raise UsageError(
                f"name areas of one level ({', '.join(self._levels.values())}), by geocode where a code is that of several: {words or 'there is none'}; or give a list of areas"
            )
        own = self._own_codes(common[0])
        return common[0], tuple(own.get(code, code) for code in codes)

    def _levels_of(self, code: str) -> list[str]:
        """Words for the levels in which an area has a code; that has a geocode where none has it as its own."""
        own = [level.name for level in self.own.levels if level.geocodes_of(code)] if self.own else []
        if len(own) == 1 and self.own is not None:
            (level,) = (one for one in self.own.levels if one.name == own[0])
            if len(geocodes := level.geocodes_of(code)) > 1:
                raise UsageError(
                    f"{code!r}: {len(geocodes)} areas of the level {level.name} have this code; fix: give the geocode of one of them, such as {geocodes[0]}, as {AREA_CODES} of "
                    "the run has it"
                )
        return [word for word, name in self._levels.items() if name in own] or [
            word for word in self._levels if code in self.level(word)[1] or code in self._own_codes(word)
        ]

    def _own_codes(self, word: str) -> Mapping[str, str]:
        """Codes of all areas of a level by geocode, those without records included, as far as there are any."""
        levels = self.own.levels if self.own else ()
        return next((level.own for level in levels if level.name == self._levels[word]), {})

    def _no_such_area(self, code: str) -> str:
        """That no area has a code, with the nearest."""
        known = [code for level in self.own.levels for code in level.own.values()] if self.own else []
        known += [code for word in self._levels for code in self.level(word)[1].tolist()]
        zeros = next((one for one in known if one.lstrip("0") == code and one != code), "")
        lost = f" It lost its leading zero: {zeros}." if zeros else nearest(code, known)
        where = f"codes and geocodes of {AREA_CODES}" if self.own else "geocodes"
        return f"no area of this run has this code.{lost} Allowed: {where} of the levels {', '.join(self._levels.values())}"

    def codes_of(self, geography: Geography) -> NDArray[np.str_]:
        """Own codes of areas, geocodes where there are none."""
        names = geography.areas.names
        own = {} if geography.listed else self._own_codes(geography.name)
        return np.array([own.get(code, code) for code in names.tolist()], np.str_).reshape(len(names))

    def parents_of(self, geography: Geography) -> NDArray[np.str_]:
        """Geocodes of the areas of the level above."""
        names, words = geography.areas.names, list(self._levels)
        if geography.listed or geography.name == words[0]:
            return np.full(len(names), "")
        above = self._rules[words.index(geography.name) - 1].digits
        return np.array([code[:above] for code in names.tolist()], np.str_).reshape(len(names))

    def level_words(self, geography: Geography) -> str:
        """The name of a level as the configuration has it."""
        return geography.name if geography.listed else self._levels[geography.name]

    def exact(self, table: CensusTable, geography: Geography) -> NDArray[np.bool_]:
        """Lines that are published as they were counted: totals down to their lowest level, and the answers of invariants."""
        histogram = self._config.histogram(table.histogram)
        level = "" if geography.listed else self._levels[geography.name]
        query = self.card.queries.get(table.name, "")
        known = {one.groups.query for one in histogram.known_at(level)} if level else set()
        exact = query in known or (query == "total" and level in exact_levels(histogram))
        return np.full(len(table.lines), exact)

    def geography(self, word: str, state: str | None) -> Geography:
        """The areas of a level."""
        if state is not None:
            raise UsageError(
                f"state {state!r}: the areas of this run are not those of U.S. states; leave it out"
            )
        return super().geography(word.lower(), None)

    def level(self, word: str) -> tuple[str, NDArray[np.str_], AreaBlocks]:
        """The areas of a level in which anything was counted."""
        codes = [histogram_geounits(self._file(name, word)) for name in self.histogram_names]
        geounits = np.unique(np.concatenate(codes))
        return word, geounits, AreaBlocks(geounits, np.arange(len(geounits)))

    def read(self, histogram: str, level: str, geounits: NDArray[np.str_]) -> SparseLevel:
        """Histograms of geounits."""
        return read_histograms(self._file(histogram, level), geounits)

    def _file(self, histogram: str, level: str) -> Path:
        return self.place / "histograms" / f"{histogram}_{self._levels[level]}.parquet"
