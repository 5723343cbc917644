"""The configurations that ship with censafe, by product and name."""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass
from pathlib import Path

from censafe.errors import ConfigError

__all__ = ["PRODUCTS", "ShippedConfig", "find_shipped", "get_shipped", "shipped_configs", "unknown_name"]

# Name on the command line -> folder of the product.
PRODUCTS = {
    "phsafe": "phsafe",
    "safetab-p": "detailed/persons",
    "safetab-h": "detailed/households",
    "topdown": "topdown",
}


@dataclass(frozen=True)
class ShippedConfig:
    """One shipped configuration: ``name`` is what the user types, ``title`` says what it is."""

    name: str
    product: str
    title: str
    path: Path

    @property
    def text(self) -> str:
        """The file as it is."""
        return self.path.read_text(encoding="utf-8")


def shipped_configs(product: str | None = None) -> tuple[ShippedConfig, ...]:
    """Every shipped configuration, of one product or of all, in the order of their names.

    Example:
        >>> [config.name for config in shipped_configs("phsafe")]
        ['sdhc-pr', 'sdhc-us']
    """
    home = Path(__file__).parents[1]
    return tuple(
        ShippedConfig(path.stem, name, _title(path), path)
        for name, folder in PRODUCTS.items()
        if product in (None, name)
        for path in sorted((home / folder / "configs").glob("*.toml"))
    )


def find_shipped(product: str | None, name: str) -> ShippedConfig | None:
    """The shipped configuration called ``name``, or None."""
    for config in shipped_configs(product):
        if config.name == name:
            return config
    return None


def get_shipped(name: str) -> ShippedConfig:
    """The shipped configuration called ``name`` of any product.

    Raises:
        ConfigError: there is none; the message names the nearest and all of them.
    """
    found = find_shipped(None, name)
    if found is None:
        raise ConfigError(unknown_name(None, name))
    return found


def unknown_name(product: str | None, source: str) -> str:
    """Message for a source that is neither a path (where one may stand) nor a shipped name, with the nearest name."""
    names = [config.name for config in shipped_configs(product)]
    near = difflib.get_close_matches(source, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    where = "no such file, and no" if product else "no"
    return f"{source}: {where} shipped configuration of that name ({', '.join(names)}).{hint}"


def _title(path: Path) -> str:
    title = tomllib.loads(path.read_text(encoding="utf-8")).get("title", "")
    return str(title)
