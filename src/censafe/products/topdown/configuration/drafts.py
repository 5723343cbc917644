"""A first configuration for a file of records: everything that can be said of its columns, and what must be decided as comments."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Final

from censafe.population.records.drafts import Draft, DraftColumn, plain_name

_AGES: Final = (0, 15, 25, 45, 65, 75)
_OLDEST: Final = 130
_MOST_CELLS: Final = 20_000
_OTHER: Final = "other"
_UNKNOWN: Final = "unknown"


def draft_configuration(draft: Draft) -> str:
    """The configuration as TOML text; lines that need a decision say so."""
    return "\n".join([*_lines(draft), ""])


def _lines(draft: Draft) -> Iterator[str]:
    used, left = _attributes(draft.columns)
    levels = [_level_name(name) for name in draft.areas] or ["Area"]
    yield f"# A first configuration for {draft.file}, from its columns and common values. Lines with DECIDE need your decision."
    yield "# Check every value below: values of fewer than 10 records are not named, and no count is written."
    yield f"title = {_text(f'Residents by {draft.file}')}"
    yield ""
    yield "# Levels of the geography: the root, and one for each column of read.geography."
    inner = ", ".join(f"{{ name = {_text(name)} }}" for name in levels)
    yield f'levels = [{{ name = "Total", prefix = 0, code = "0" }}, {inner}]'
    yield ""
    yield "# DECIDE: the privacy loss; 'censafe plan topdown' of this file shows what it buys."
    yield "[rho]"
    yield 'residents = "1"'
    yield ""
    yield "[schemas.residents]"
    yield "attributes = ["
    for _, name, labels in used:
        yield f"    {{ name = {_text(name)}, levels = {len(labels)}, labels = [{', '.join(map(_text, labels))}] }},"
    yield "]"
    yield ""
    yield "[histograms.residents]"
    yield 'schema = "residents"'
    yield '# DECIDE: exact_totals = "..." publishes the totals of a level and all above it exactly; they are not protected then.'
    yield ""
    names = ["Total", *levels]
    yield "[level_shares.residents]"
    for name in names:
        yield f'{name} = "1/{len(names)}"'
    queries = [name for _, name, _ in used]
    queries = [*(queries if len(queries) > 1 else []), "detailed"]
    yield "[query_shares.residents]"
    for name in names:
        shares = ", ".join(f'{_text(query)} = "1/{len(queries)}"' for query in queries)
        yield f"{name} = {{ {shares} }}"
    yield ""
    yield "[read]"
    yield f"persons = {_text(draft.file)}"
    if draft.encoding != "utf-8":
        yield f"encoding = {_text(draft.encoding)}"
    yield f"missing = [{', '.join(map(_text, draft.missing))}]"
    if draft.areas:
        yield "# From coarse to fine. DECIDE whether these are the areas."
        yield f"geography = [{', '.join(map(_text, draft.areas))}]"
    else:
        yield "# DECIDE: no column looks like areas; name the columns with their codes, and a level for each above."
        yield 'geography = ["area"]'
    if draft.finer:  # columns that may be areas below those of the geography
        words = " or ".join(draft.finer)
        inside = f", each in one {draft.areas[-1]}" if draft.areas else ""
        geography = ", ".join(map(_text, (*draft.areas, draft.finer[0])))
        yield f"# DECIDE: {words} has many codes{inside}. If they are the lowest areas (not households or addresses): geography = [{geography}],"
        yield f"# a level {{ name = {_text(_level_name(draft.finer[0]))} }} at the end of levels, and shares of it above."
    yield '# DECIDE: a public list of the areas, empty ones included, such as areas = "areas.csv"; or, as here, it is published exactly which areas have records.'
    yield 'areas = "records"'
    for column, name, labels in used:
        yield f"[read.attributes.{name}]"
        yield from _rule(column, name, labels)
    for column, why in left:
        yield f"# Not read: {column.name} ({why})"


def _attributes(
    columns: Sequence[DraftColumn],
) -> tuple[list[tuple[DraftColumn, str, list[str]]], list[tuple[DraftColumn, str]]]:
    """Columns that become attributes with their names and labels, and those that do not, with the reason."""
    used: list[tuple[DraftColumn, str, list[str]]] = []
    left: list[tuple[DraftColumn, str]] = []
    words = {"key": "a key: every value once", "empty": "empty", "other": "many different texts"}
    cells = 1
    for column in columns:
        if column.kind == "area":
            continue
        if column.kind in words:
            left.append((column, words[column.kind]))
            continue
        labels = _labels(column)
        name = plain_name(column.name)
        taken = {"total", "detailed", *(other for _, other, _ in used)}
        name = name if name not in taken else f"{name}_{len(used)}"
        if column.kind == "date" and any(other.kind == "date" for other, _, _ in used):
            left.append((column, "a second date"))
        elif cells * len(labels) > _MOST_CELLS:
            left.append((column, "too many cells together; DECIDE which attributes you need"))
        elif len(labels) < 2:
            left.append((column, "always the same"))
        else:
            used.append((column, name, labels))
            cells *= len(labels)
    return used, left


def _labels(column: DraftColumn) -> list[str]:
    if column.kind == "levels":
        labels = list(column.values)
        rest = next(word for word in (_OTHER, "other or unknown", "any other value") if word not in labels)
        return [*labels, rest] if column.rest else labels
    bands = _bands(column)
    labels = [f"{low} to {high - 1}" for low, high in itertools.pairwise(bands)]
    if bands[0] < 0:
        labels[0] = "below 0"
    return [*labels, f"{bands[-1]} and over", *([_UNKNOWN] if column.rest else [])]


def _bands(column: DraftColumn) -> list[int]:
    """Ages for dates and numbers up to the oldest age; powers of ten for other numbers."""
    if column.kind == "date" or (not column.negative and column.last <= _OLDEST):
        return list(_AGES)
    powers = [10**power for power in range(1, 13) if 10**power <= column.last]
    return [*([-(10**12)] if column.negative else []), 0, *powers]


def _rule(column: DraftColumn, name: str, labels: Sequence[str]) -> Iterator[str]:
    if column.name != name:
        yield f"column = {_text(column.name)}"
    if column.kind == "levels":
        if column.rest:
            yield "# DECIDE: everything else, missing values included, is one level; without other, it stops the run."
            yield f"other = {_text(labels[-1])}"
        return
    if column.kind == "date":
        yield "# DECIDE: the day on which ages are counted."
        yield f'as = "age_on:{column.last}-12-31"'
    yield "# DECIDE: the least number of each level, with as many labels above."
    yield f"bands = [{', '.join(map(str, _bands(column)))}]"
    if column.rest:
        yield "# DECIDE: values that are missing or cannot be read are one level; without other, they stop the run."
        yield f"other = {_text(_UNKNOWN)}"


def _level_name(name: str) -> str:
    plain = plain_name(name)
    return plain if plain != "Total" else "Total_area"


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
