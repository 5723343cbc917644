"""What the explorer page needs of SafeTab-H."""

from __future__ import annotations

from censafe.planning.explorer.sheets import ExplorerSheet
from censafe.products.configuration.shipped import ShippedConfig
from censafe.products.detailed.config import load_h_config
from censafe.products.detailed.explorer import safetab_sheet

__all__ = ["sheet"]


def sheet(shipped: ShippedConfig) -> ExplorerSheet:
    """One shipped configuration of SafeTab-H.

    Example:
        >>> from censafe.products.configuration.shipped import get_shipped
        >>> sheet(get_shipped("ddhcb")).rows[1].name
        'Household type, Nation, Detailed'
    """
    return safetab_sheet(shipped, load_h_config)
