"""One small page of every kind that the software writes, each made when it is needed."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from campaign.report import write_report as write_campaign

from censafe import configuration, release, synthesize
from censafe.cli import root
from censafe.model import Definition
from censafe.population.synthetic.blocks import synthesize_histograms
from censafe.products.topdown.census_tables.card import write_card
from censafe.products.topdown.census_tables.card_values import CardTable, CardValues
from censafe.products.topdown.census_tables.definitions import CARD_TABLES, census_contents, census_tables
from censafe.products.topdown.census_tables.shapes import AreaShapes
from censafe.publication.certificate.anonymity import (
    anonymity_page,
    anonymity_values,
    read_sentences,
)
from censafe.publication.stamps import STAMP
from support.once import made_once
from support.topdown_inputs import write_1940

STATE: Final = "50"
DEFENSES: Final = ("swap:LO", "swap:HI", "round:3", "round:5", "suppress:threshold=3", "topdown:pl94-us")


def censafe(*arguments: object) -> None:
    root.main([str(one) for one in arguments], prog_name="censafe", standalone_mode=False)


@dataclass(frozen=True, eq=False)
class PageKinds:
    """Folders of runs and evaluations, each made once in a test session; ``dhc`` is a finished run of the DHC, ``explorer`` the explorer's page."""

    factory: pytest.TempPathFactory
    dhc: Callable[[], Path]
    explorer: Path

    def page(self, kind: str) -> Path:
        """The file of a page of this kind."""
        return _PAGES[kind](self)

    def folder(self, name: str, make: Callable[[Path], object]) -> Path:
        """A folder of results inside of one that all workers share."""
        return made_once(self.factory, f"page-{name}", lambda place: make(place / "out")) / "out"

    @cached_property
    def records(self) -> Path:
        """Records of all products."""
        return self.folder("records", lambda out: synthesize(out, persons=600, states=(STATE,), layout="all"))

    @cached_property
    def persons(self) -> Path:
        """Records that can be attacked."""
        return self.folder(
            "persons", lambda out: synthesize(out, persons=600, states=(STATE,), layout="dhc", seed=3)
        )

    @cached_property
    def blocks(self) -> Path:
        """Histograms of blocks."""
        return self.folder(
            "blocks", lambda out: synthesize_histograms(out, persons=600, states=(STATE,), seed=1)
        )

    @cached_property
    def districts(self) -> Path:
        """Histograms of 1940."""
        return self.folder("districts", write_1940)

    @cached_property
    def pl94(self) -> Path:
        """A run of the redistricting data."""
        chosen = configuration("topdown", "pl94-us", {"root": "State"})
        return self.folder("pl94", lambda out: release(chosen, self.blocks, out, test_key=3))

    @cached_property
    def stored(self) -> Path:
        """A run of 1940 with intervals."""

        def make(out: Path) -> None:
            censafe("run", "topdown", "e2e-1940", self.districts, out, "--test-key", 3, "--quiet")
            censafe("estimate", out, "--intervals", "--simulations", 2, "--quiet")

        return self.folder("1940", make)

    def anonymity(self) -> Path:
        """The page for legal readers, of a small country."""
        levels = ("Country", "Municipality", "Area")
        kinds = {"answer": "age", "Area within": "Municipality"}
        readings = [
            {"histogram": "all", "kind": kind, "name": name, "exact": "1/4"} for kind, name in kinds.items()
        ]
        exact = ({"histogram": "residents", "levels": ["Country"], "units": True, "answers": []},)
        values = anonymity_values(Fraction(1), Definition.ZCDP, readings, levels, exact)
        document = {
            "title": "Census",
            "stamp": STAMP,
            "anonymity": values,
            "estimated": {"records": {"residents": 9}},
        }

        def make(out: Path) -> None:
            out.mkdir()
            page = anonymity_page(document, read_sentences())
            (out / "anonymity.html").write_text(page, encoding="utf-8")

        return self.folder("anonymity", make) / "anonymity.html"

    def table_release(self, product: str) -> Path:
        """A run of a product of tables."""

        def make(out: Path) -> None:
            censafe("run", *self._table_words(product, out), "--test-key", 3)

        return self.folder(product, make)

    def table_evaluation(self, product: str) -> Path:
        def make(out: Path) -> None:
            censafe("evaluate", *self._table_words(product, out), "--trials", 2)

        return self.folder(f"evaluated-{product}", make)

    def _table_words(self, product: str, out: Path) -> list[object]:
        config, setting = {
            "phsafe": ("sdhc-us", ["--set", f"state_filter={STATE}"]),
            "safetab-p": ("ddhca", ["--set", f"states={STATE}", "--set", "run_pr=false"]),
            "safetab-h": ("ddhcb", ["--set", f"states={STATE}", "--set", "run_pr=false"]),
        }[product]
        totals = ["--t1", self.table_release("safetab-p")] if product == "safetab-h" else []
        return [product, config, self.records, out, "--set", "reader=csv", *setting, *totals, "--quiet"]

    def evaluation(self, name: str, *words: object) -> Path:
        """The page of a command that evaluates or attacks; ``OUT`` stands for its folder."""

        def make(out: Path) -> None:
            censafe(*(out if word == "OUT" else word for word in words), "--quiet")

        return self.folder(name, make) / "report.html"


def _campaign(kinds: PageKinds) -> Path:
    def make(out: Path) -> None:
        out.mkdir()
        trials = [
            {"part": "kills", "number": n, "name": "run topdown/pl94-us killed at measurement 17", "seconds": 1.5,
             "facts": {"outcome": "resumed"}, "failures": [] if n else ["exit code 70 where 0 or 130 is allowed"]}
            for n in range(3)
        ]  # fmt: skip
        text = "".join(json.dumps(line) + "\n" for line in trials)
        (out / "trials.jsonl").write_text(text, encoding="utf-8")
        write_campaign(out, seed=1)

    return kinds.folder("campaign", make) / "report.html"


def _card(kinds: PageKinds) -> Path:
    """All tables of the DHC's card with drawn numbers of up to seven digits, among ten counties, with a map of three."""

    def make(out: Path) -> None:
        out.mkdir()
        rng = np.random.default_rng(1)
        places = 10
        known = census_tables("dhc")
        shown = {}
        for name in CARD_TABLES["dhc"]:
            shape = (places, len(known[name].lines))
            values = np.floor(10 ** rng.uniform(0, 1.9 if known[name].median else 7, shape))
            reach = np.floor(values * rng.choice([0, 0.05, 0.3, 2], shape))
            shown[name] = CardTable(
                known[name], values, np.maximum(values - reach, 0), values + reach, np.zeros(shape, bool)
            )
        codes = tuple(f"50{2 * place + 1:03}" for place in range(places))
        titles = tuple(f"Prince of Wales-Hyder Census Area {place}" for place in range(places))
        ring = np.array([(0.0, 0.0), (0.0, 1.0), (1.0, 1.0), (1.0, 0.0), (0.0, 0.0)])
        shapes = AreaShapes({code: ((np.add(ring, (place, 41.0)),),) for place, code in enumerate(codes[:3])})
        contents = census_contents("dhc")
        values_of = CardValues(
            "county", contents, codes, titles, ("50",) * places, shown, 25, 0.9, "NOT PRIVATE"
        )
        write_card(out / "card.html", values_of, codes[0], shapes)

    return kinds.folder("card", make) / "card.html"


_PAGES: Final[Mapping[str, Callable[[PageKinds], Path]]] = {
    "explorer": lambda kinds: kinds.explorer,
    "campaign": _campaign,
    "card": _card,
    "certificate phsafe": lambda kinds: kinds.table_release("phsafe") / "certificate.html",
    "certificate safetab-p": lambda kinds: kinds.table_release("safetab-p") / "certificate.html",
    "certificate safetab-h": lambda kinds: kinds.table_release("safetab-h") / "certificate.html",
    "certificate topdown pl94": lambda kinds: kinds.pl94 / "certificate.html",
    "anonymity": lambda kinds: kinds.anonymity(),
    "certificate topdown 1940": lambda kinds: kinds.stored / "certificate.html",
    "certificate topdown dhc": lambda kinds: kinds.dhc() / "certificate.html",
    "intervals": lambda kinds: kinds.stored / "intervals" / "01.html",
    "evaluation phsafe": lambda kinds: kinds.table_evaluation("phsafe") / "report.html",
    "evaluation safetab-p": lambda kinds: kinds.table_evaluation("safetab-p") / "report.html",
    "evaluation safetab-h": lambda kinds: kinds.table_evaluation("safetab-h") / "report.html",
    "evaluation topdown": lambda kinds: kinds.evaluation(
        "topdown", "evaluate", "topdown", "e2e-1940", kinds.districts, "OUT", "--runs", 1, "--workers", 1
    ),
    "evaluation noise": lambda kinds: kinds.evaluation(
        "noise", "evaluate", "topdown", "e2e-1940", kinds.districts, "OUT", "--public"
    ),
    "evaluation sweep": lambda kinds: kinds.evaluation(
        "sweep", "evaluate", "sweep", "topdown", "e2e-1940", kinds.districts, "OUT", "--epsilon", "1,4", "--runs", 2, "--workers", 1
    ),
    "evaluation uncertainty": lambda kinds: kinds.evaluation(
        "uncertainty", "evaluate", "uncertainty", kinds.stored, "OUT", "--runs", 2, "--workers", 1
    ),
    "evaluation semantics": lambda kinds: kinds.evaluation(
        "semantics", "evaluate", "semantics", "topdown", "blocks-16", "OUT"
    ),
    "evaluation pair": lambda kinds: kinds.evaluation(
        "pair", "evaluate", "pair", kinds.districts, kinds.stored, "OUT", "--config", "e2e-1940"
    ),
    "attack reconstruct": lambda kinds: kinds.evaluation(
        "reconstruct", "attack", "reconstruct", kinds.persons, "OUT", "--workers", 1, "--seconds", 2
    ),
    "attack rank": lambda kinds: kinds.evaluation(
        "rank", "attack", "rank", kinds.persons, "OUT", "--areas", 3, "--generators", 3, "--rows", 30, "--steps", 30
    ),
    "attack compare": lambda kinds: kinds.evaluation(
        "compare", "attack", "compare", kinds.persons, "OUT", "--workers", 1, "--seconds", 1,
        *(word for name in DEFENSES for word in ("--defense", name)),
    ),
}  # fmt: skip
KINDS: Final = tuple(_PAGES)
