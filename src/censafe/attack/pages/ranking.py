"""The page of ``attack rank``: how often the most frequent types of persons of relaxed data sets are those of attacked records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from censafe.attack.pages.reconstruction import attack_lines
from censafe.evaluation.outputs import number_text, read_evaluation, read_frame
from censafe.evaluation.pages.page import Page
from censafe.publication.pages.exhibits import Exhibit, PageTable

_Rows = Sequence[Mapping[str, Any]]


def ranking_page(folder: Path) -> Page:
    """The page of a folder that ``attack rank`` wrote."""
    document = read_evaluation(folder)
    rates = read_frame(folder, "match_rates", ("source",)).to_pylist()
    last = {row["source"]: row["match_rate"] for row in rates if row["distinct_percent"] == 100}
    own, *others = last
    best = max(others, key=lambda source: last[source] or 0)
    level = f"{document['level']}{'s' if document['areas'] > 1 else ''}"
    return Page(
        title="Who is in the data, without a solver?",
        kicker="Ranking of candidate records",
        answer=[
            f"In {document['areas']:,} {level}, {number_text(last[own])}% of the types of persons that are ranked first from the tables belong to an attacked "
            f"record; of those ranked by the records of others, at best {number_text(last[best])}% ({best}).",
        ],
        facts=[
            ("Attacked records", f"{document['attacked']:,}", f"half of the records of {document['areas']:,} {level}"),
            ("Relaxed data sets", f"{document['generators']:,}", f"of {document['rows']:,} rows, {document['steps']:,} steps each"),
        ],
        exhibits=[_ranking(rates), _areas(read_frame(folder, "areas", ("area",)).to_pylist())],
        settings=[("Records", document["data"]), ("Seed", str(document["seed"]))],
    )  # fmt: skip


def _ranking(rates: _Rows) -> Exhibit:
    sources = list(dict.fromkeys(row["source"] for row in rates))
    steps = list(dict.fromkeys(row["distinct_percent"] for row in rates))
    found = {(row["source"], row["distinct_percent"]): row["match_rate"] for row in rates}
    series = {source: [found[source, step] for step in steps] for source in sources}
    lines = [[str(step), *(number_text(found[source, step]) for source in sources)] for step in steps]
    return Exhibit(
        "ranking",
        "How many of the first candidates are right?",
        "Where the line of the tables is above those of the other half and of the surrounding areas, the tables revealed "
        "something about these persons that other records did not.",
        attack_lines(
            [str(step) for step in steps],
            series,
            "types of attacked records, percent",
            "types looked at, percent of those there are",
        ),
        alt="Match rate by number of candidates, for the tables and for the records of others.",
        tables=[
            PageTable(
                "Percent of the types looked at.",
                ("types looked at, percent", *sources),
                lines,
                numbers=len(sources),
            )
        ],
        how=[
            "Half of the records of each area are tabulated. Relaxed data sets are fitted to these tables by gradients, and types of persons are ranked by how often they hold them. The other "
            "half, and the areas around without the attacked records, are ranked by frequency alike: what is known without the tables.",
        ],
        files=["match_rates.csv", "ranked.csv"],
    )


def _areas(areas: _Rows) -> Exhibit:
    lines = [
        [row["area"], *(f"{row[name]:,}" for name in ("persons", "distinct", "candidates")), number_text(row["line_error"], 2)]
        for row in areas
    ]  # fmt: skip
    return Exhibit(
        "areas",
        "Which areas?",
        "From the smallest with ten persons to the largest.",
        tables=[
            PageTable(
                "Attacked records, their different types, and types that the tables allow.",
                ("area", "records", "types", "candidates", "error of a line"),
                lines,
                numbers=4,
            )
        ],
        files=["areas.csv"],
    )
