"""Keys of the TOML files that evaluations and attacks read, with the readers' own lists of keys, so that none is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from censafe.attack import tables as attacked
from censafe.evaluation.counts import cell_sets
from censafe.evaluation.pairs import definitions
from censafe.evaluation.summary import reading

_Rows = Mapping[str, tuple[str, str, str, str]]
_CHARACTERISTICS: Final[_Rows] = {
    "name": ("name in files", "text", "needed", '"older_hispanic"'),
    "label": ("name on the page", "text", "`name`", '"Hispanic, 65 and over"'),
    "sets": ("records that are in all of these sets", "list of names of sets", "all records", '["hispanic", "age 65+"]'),
    "universe": ("who is counted, in words", "text", "Total population, or Housing units", '"Total population"'),
    "record": ("what is counted", ", ".join(definitions._RECORDS), "person", '"household"'),
}  # fmt: skip
_AREAS: Final[_Rows] = {
    "kind": ("kind of area", "text", "needed", '"district"'),
    "codes": ("first digits of the blocks of each area", "table of lists of texts", "needed", '{ north = ["44001"] }'),
}  # fmt: skip
_ATTRIBUTES: Final[_Rows] = {
    "names": ("names of the attribute in schemas", "list of texts", "needed", '["age"]'),
    "levels": ("number of levels", "whole number", "needed", "116"),
    "record": ("record that has the attribute", "person, household", "person", '"person"'),
    "beside": ("an attribute that the schema must have as well", "text", "none", '"hhgq"'),
    "sets": ("levels of each named set, counted from 0", "table of lists", "none", '{ hispanic = [1] }'),
    "ages": ("youngest age of every level [years]", 'list of numbers, or "single"', "none", "[0, 18]"),
    "age_word": ("word before ages in names of sets", "text", "age", '"householder"'),
}  # fmt: skip
_DEFINITIONS: Final[_Rows] = {
    "characteristics": ("sets of records to measure", "tables [[characteristics]]", "none", "[[characteristics]]"),
    "queries": ("further queries to measure", "list of queries", "none", '["votingage * hispanic"]'),
    "areas": ("areas off the spine", "tables [[areas]]", "none", "[[areas]]"),
    "attributes": ("what the levels of an attribute mean", "tables [[attributes]]", "those of the Bureau's schemas", "[[attributes]]"),
    "aliases": ("further names of sets, or of what several sets have in common", "table of lists", "those of the Bureau's tables", '"over 64" = ["age 65+"]'),
}  # fmt: skip
_BOOK: Final[_Rows] = {
    "tables": ("tables of the workbook", "tables [[tables]]", "none", "[[tables]]"),
    "areas": ("kinds of areas: level, lists, within, only_in, not_in", "tables by name", "the Bureau's", '[areas.tract] level = "Tract"'),
    "states": ("names of states by code", "table", "the Bureau's", '"44" = "Rhode Island"'),
    "rates": ("of, to, of_record, to_record, scale, empty_is_zero", "tables by name", "the Bureau's", "[rates.occupancy]"),
    "columns": ("heading and metric of every column", "lists by name", "the Bureau's", '[["MAE", "mean_ae"]]'),
    "rows": ("label and sets of every row", "lists by name", "the Bureau's", '[["65 and over", "age 65+"]]'),
    "groups": ("heading and sets of groups of rows", "lists by name", "the Bureau's", '[["Male", "male"]]'),
    "classes": ("size classes of areas, and what they are classes of", "tables by name", "the Bureau's", "[classes.county-population]"),
}  # fmt: skip
_TABLE: Final[_Rows] = {
    "number": ("number of the table", "text, used once", "needed", '"Table 90"'),
    "sheet": ("name of its sheet", "1 to 31 characters", "needed", '"Elders"'),
    "section": ("part of the workbook", "text", "none", '"Age"'),
    "title": ("title", "text", "needed", '"Persons of 65 and over"'),
    "universe": ("who is counted", "text", "needed", '"Total population"'),
    "geography": ("areas, in words", "text", "needed", '"Tracts"'),
    "columns": ("its columns", "a name of [columns]", "needed", '"occupancy"'),
    "parts": ("its rows", "list of tables", "needed", '[{ areas = "tract" }]'),
}  # fmt: skip
_PART: Final[_Rows] = {
    "areas": ("kind of areas", "a name of [areas]", "needed", '"tract"'),
    "record": ("what is counted", "person, household", "person", '"household"'),
    "of": ("sets that all rows have in common", "names of sets joined by `&`", "all records", '"hispanic"'),
    "measure": ("what is measured", ", ".join(reading._MEASURES), "counts", '"shares"'),
    "rate": ("for rate: which", "a name of [rates]", "none", '"occupancy"'),
    "condition": ("for condition: which", "a name, such as those of the Bureau's tables", "none", '"everybody-under-18"'),
    "among": ("for largest: groups that are compared", "a name of [rows]", "none", '"race-alone"'),
    "states": ("one row a state, with this label", "text with {}", "no", '"Places as a share of {}"'),
    "label": ("label of a single row", "text", "none", '"All tracts"'),
    "headings": ("lines above the rows", "list of texts", "none", '["Tracts"]'),
    "classes": ("a row, or a group of rows, for every size class", "a name of [classes]", "none", '"county-population"'),
    "groups": ("a group of rows for each", "a name of [groups]", "none", '"sexes"'),
    "rows": ("rows", "a name of [rows]", "one row", '"race-alone"'),
}  # fmt: skip
_LINES: Final[_Rows] = {
    "level": ("lowest geography", ", ".join(attacked._LEVELS), "needed", '"block"'),
    "by": ("classes of the lines; of two, every class of the first is followed by those of the second", ", ".join(attacked._CLASSES), "needed; [] for a total", '["sex", "age"]'),
    "universe": ("who is counted", "adults, below [years], race, hispanic", "all persons", "{ adults = true }"),
    "tallied": ("whether a person counts once for every race", "true, false", "false", "true"),
    "iterations": ("letters of further tables, each for one race or origin", "text of letters", "none", '"ABCDEFGHI"'),
}  # fmt: skip
_SECTIONS: Final[Sequence[tuple[str, str, Sequence[str], _Rows]]] = (
    ("Characteristics: `evaluate pair --characteristics FILE`", "At the top of the file.", definitions._KEYS, _DEFINITIONS),
    ("", "In `[[characteristics]]`.", definitions._CHARACTERISTIC, _CHARACTERISTICS),
    ("", "In `[[areas]]`.", definitions._AREAS, _AREAS),
    ("", "In `[[attributes]]`.", cell_sets._KEYS, _ATTRIBUTES),
    ("Summary tables: `evaluate pair --tables FILE`", "At the top of the file; what it leaves out is that of the Bureau's 183 tables.", reading._TOP, _BOOK),
    ("", "In `[[tables]]`.", reading._TABLE, _TABLE),
    ("", "In `parts`.", reading._PART, _PART),
    ("Attacked tables: `attack ... --tables FILE`", "In `[tables.NAME]`.", attacked._TABLE_KEYS, _LINES),
)  # fmt: skip


def other_toml() -> str:
    """A part of the page for every file.

    Raises:
        ValueError: a reader takes a key that is not described here, or the reverse.
    """
    text = "\n## Other TOML files\n"
    for title, words, keys, rows in _SECTIONS:
        if set(keys) != set(rows):
            raise ValueError(f"{title or words}: described are {sorted(rows)}, and read {sorted(keys)}")
        text += f"\n### {title}\n" if title else ""
        text += f"\n{words}\n\n| key | meaning | allowed | default | example |\n|---|---|---|---|---|\n"
        for key in keys:
            meaning, allowed, default, example = rows[key]
            text += f"| `{key}` | {meaning} | {allowed} | {default} | `{example}` |\n"
    return text
