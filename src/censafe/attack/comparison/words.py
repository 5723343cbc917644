"""The words of a comparison of defenses: what its areas, quasi-identifiers and target are called on the page and in the files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class ComparisonWords:
    """Words of the records that are attacked.

    Args:
        areas: that the attacker knows, in the plural.
        known: what the attacker knows of a person.
        alone: in what a person is alone.
        risk: population that the attack looks for.
        at_risk: who these are, after "persons who".
        levels: of which tables are published, the attacked one first.
        exhibits: part of the table of exhibits with the texts of the page.
        size: column with the class of size of an area.
        agreement: column with the share of true records.
        areas_key: under which the document has the number of areas.
        unique: columns with the share of persons who are alone.
    """

    area: str = "block"
    areas: str = "blocks"
    known: str = "block, sex and age"
    target: str = "race and origin"
    alone: str = "sex and class of age"
    risk: str = "nonmodal unique"
    at_risk: str = "are alone with these and differ from their block"
    levels: tuple[str, ...] = ("block", "tract", "county")
    exhibits: str = "attack"
    size: str = "block_size"
    areas_key: str = "blocks"
    agreement: str = "binned_percent"
    unique: tuple[str, ...] = ("unique_percent", "unique_in_class_percent")


CENSUS_WORDS: Final = ComparisonWords()
