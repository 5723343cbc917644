"""PHSafe's table definitions, read from ``tables.toml`` once."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources

from censafe.tabulation.definitions import DefinitionSet
from censafe.tabulation.loading import load_definitions

__all__ = ["phsafe_definitions"]


@lru_cache(maxsize=1)
def phsafe_definitions() -> DefinitionSet:
    """The eleven S-DHC tables with their cells, iterations and levels.

    Source: PHSafe paper, section 4; the Bureau's PHSafe 3.0.0.

    Example:
        >>> definitions = phsafe_definitions()
        >>> [table.name for table in definitions.measured]
        ['PH1_num', 'PH1_denom', 'PH2', 'PH3', 'PH4', 'PH5_denom', 'PH6', 'PH7', 'PH8_denom']
        >>> list(definitions.levels(definitions.table("PH2")))
        ['usa_*', 'state_*']
    """
    text = resources.files("censafe.products.phsafe").joinpath("tables.toml").read_text(encoding="utf-8")
    return load_definitions(text, "tables.toml")
