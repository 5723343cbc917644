"""Population group levels: a type of region and a level of iterations, which share a budget and thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

__all__ = [
    "PR_REGION_TYPES",
    "US_REGION_TYPES",
    "Granularity",
    "GroupLevel",
    "group_levels",
]

Granularity = Literal["detailed", "coarse"]

US_REGION_TYPES: Final = ("USA", "STATE", "COUNTY", "TRACT", "PLACE", "AIANNH")
PR_REGION_TYPES: Final = ("PR-STATE", "PR-COUNTY", "PR-TRACT", "PR-PLACE")
_DETAILED: Final = ("USA", "STATE", "PR-STATE")
_REGION_WORDS: Final = {
    "USA": "Nation",
    "STATE": "State",
    "COUNTY": "County",
    "TRACT": "Tract",
    "PLACE": "Place",
    "AIANNH": "AIANNH",
    "PR-STATE": "Puerto Rico",
    "PR-COUNTY": "Puerto Rico County",
    "PR-TRACT": "Puerto Rico Tract",
    "PR-PLACE": "Puerto Rico Place",
}
_LEVEL_WORDS: Final = {1: "Regional", 2: "Detailed"}


@dataclass(frozen=True)
class GroupLevel:
    """One population group level.

    Args:
        region_type: as in the REGION_TYPE column, for example ``PR-COUNTY``.
        level: 1 regional, 2 detailed.

    Example:
        >>> found = GroupLevel("PR-COUNTY", 1)
        >>> found.key, found.name, found.bureau_key, found.label, found.granularity
        ('pr_county_1', 'PR-COUNTY, 1', 'level_1_pr_county', 'Puerto Rico County, Regional', 'coarse')
    """

    region_type: str
    level: int

    @property
    def key(self) -> str:
        """The name in our configurations, plans and part files."""
        return f"{self._geography}_{self.level}"

    @property
    def name(self) -> str:
        """The name in messages; in brackets it is the Bureau's key of thresholds."""
        return f"{self.region_type}, {self.level}"

    @property
    def bureau_key(self) -> str:
        """How the Bureau's budget keys end."""
        return f"level_{self.level}_{self._geography}"

    @property
    def label(self) -> str:
        """The level in the words of the SafeTab-H paper's Table 9."""
        return f"{_REGION_WORDS[self.region_type]}, {_LEVEL_WORDS[self.level]}"

    @property
    def granularity(self) -> Granularity:
        """``detailed`` for nation, state and Puerto Rico as a whole, ``coarse`` below."""
        return "detailed" if self.region_type in _DETAILED else "coarse"

    @property
    def _geography(self) -> str:
        return self.region_type.lower().replace("-", "_")


def group_levels(*, us: bool = True, pr: bool = True) -> tuple[GroupLevel, ...]:
    """Every level of a run in the order in which it is measured: US before Puerto Rico, large regions first.

    Example:
        >>> [found.key for found in group_levels(pr=False)][:4]
        ['usa_1', 'usa_2', 'state_1', 'state_2']
    """
    types = (US_REGION_TYPES if us else ()) + (PR_REGION_TYPES if pr else ())
    return tuple(GroupLevel(region_type, level) for region_type in types for level in (1, 2))
