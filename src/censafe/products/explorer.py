"""The shipped configurations of all products for the explorer page."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, cast

from censafe.planning.explorer.sheets import Sheet
from censafe.products.configs import PRODUCTS, ShippedConfig, shipped_configs

__all__ = ["shipped_sheets"]


class _Explorer(Protocol):
    """A module that describes a configuration of one product."""

    def sheet(self, shipped: ShippedConfig) -> Sheet:
        """One shipped configuration."""


def shipped_sheets(products: Sequence[str] = tuple(PRODUCTS)) -> tuple[Sheet, ...]:
    """A sheet for every shipped configuration of some products, those of the national tables first.

    Example:
        >>> [sheet.key for sheet in shipped_sheets(["phsafe"])]
        ['sdhc-us', 'sdhc-pr']
    """
    found = [config for product in products for config in shipped_configs(product)]
    found.sort(key=lambda config: (list(PRODUCTS).index(config.product), not config.name.endswith("-us")))
    return tuple(_module(config.product).sheet(config) for config in found)


def _module(product: str) -> _Explorer:
    return cast(_Explorer, import_module(f"censafe.products.{PRODUCTS[product]}.explorer"))
