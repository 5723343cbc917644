"""The ten region types of the SafeTab products and the texts of their identifiers."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PR_REGION_TYPES", "REGION_TYPES", "US_REGION_TYPES", "RegionType", "region_type"]


@dataclass(frozen=True)
class RegionType:
    """A kind of region.

    Args:
        name: REGION_TYPE of the files.
        kind: the geography level without the area it belongs to.
        width: digits of a region identifier.
        puerto_rico: whether it covers Puerto Rico, otherwise the states and the District of Columbia.
        granularity: ``detailed`` or ``coarse``, which iterations exist there.
    """

    name: str
    kind: str
    width: int
    puerto_rico: bool
    granularity: str

    def region_id(self, number: int) -> str:
        """Identifier of the region of this number.

        Example:
            >>> region_type("COUNTY").region_id(1003)
            '01003'
        """
        return f"{number:0{self.width}d}"


_WIDTHS = {"USA": 1, "STATE": 2, "COUNTY": 5, "TRACT": 11, "PLACE": 7, "AIANNH": 4}


def _type(kind: str, puerto_rico: bool) -> RegionType:
    granularity = "detailed" if kind in ("USA", "STATE") else "coarse"
    return RegionType(f"PR-{kind}" if puerto_rico else kind, kind, _WIDTHS[kind], puerto_rico, granularity)


US_REGION_TYPES = tuple(_type(kind, False) for kind in ("USA", "STATE", "COUNTY", "TRACT", "PLACE", "AIANNH"))
PR_REGION_TYPES = tuple(_type(kind, True) for kind in ("STATE", "COUNTY", "TRACT", "PLACE"))
REGION_TYPES = US_REGION_TYPES + PR_REGION_TYPES
_BY_NAME = {region.name: region for region in REGION_TYPES}


def region_type(name: str) -> RegionType:
    """The region type of a name.

    Source: specification of SafeTab, section 4.3.

    Example:
        >>> region_type("PR-TRACT").granularity, len(REGION_TYPES)
        ('coarse', 10)
    """
    return _BY_NAME[name]
