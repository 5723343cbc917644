"""What the explorer page needs of SafeTab-P."""

from __future__ import annotations

from censafe.planning.explorer.sheets import Sheet
from censafe.products.configs import ShippedConfig
from censafe.products.safetab.config import load_p_config
from censafe.products.safetab.explorer import safetab_sheet

__all__ = ["sheet"]


def sheet(shipped: ShippedConfig) -> Sheet:
    """One shipped configuration of SafeTab-P.

    Example:
        >>> from censafe.products.configs import get_shipped
        >>> sheet(get_shipped("ddhca")).rows[1].name
        'Detailed DHC-A, Nation, Detailed'
    """
    return safetab_sheet(shipped, load_p_config)
