"""What the explorer page needs of SafeTab-P."""

from __future__ import annotations

from censafe.planning.explorer.sheets import ExplorerSheet
from censafe.products.configuration.shipped import ShippedConfig
from censafe.products.detailed.config import load_p_config
from censafe.products.detailed.explorer import safetab_sheet

__all__ = ["sheet"]


def sheet(shipped: ShippedConfig) -> ExplorerSheet:
    """One shipped configuration of SafeTab-P.

    Example:
        >>> from censafe.products.configuration.shipped import get_shipped
        >>> sheet(get_shipped("ddhca")).rows[1].name
        'Detailed DHC-A, Nation, Detailed'
    """
    return safetab_sheet(shipped, load_p_config)
