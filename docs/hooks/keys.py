"""The page of configuration keys, from the table that `censafe.configuration_keys` gives."""

from __future__ import annotations

import censafe
from hooks.other_toml import other_toml

_TITLES = {
    "phsafe": "PHSafe",
    "safetab-p": "SafeTab-P",
    "safetab-h": "SafeTab-H",
    "topdown": "TopDown",
}
_HEAD = """# Configuration keys

Made from the types that read configurations; `censafe configs keys PRODUCT` prints the same. Capitals stand for any name: `budget.TABLE.LEVEL` is
written `[budget.PH3]` and below it `"usa_*" = "1/2"`. Budgets are fractions or decimals **as text**, so that they stay exact. Without a default a key is needed, or
a rule of the product decides. `--set KEY=VALUE` changes keys with a check mark in the last column.

Unknown keys are an error in TOML and a warning in the Bureau's `config.json`, whose names stand in brackets.
"""


def keys_page() -> str:
    """One table a product, and the other TOML files."""
    text = _HEAD
    for product, title in _TITLES.items():
        text += f"\n## {title}\n\n| key | meaning | allowed | default | example | `--set` |\n|---|---|---|---|---|---|\n"
        for row in censafe.configuration_keys(product).arrow.to_pylist():
            bureau = f" ({row['bureau']})" if row["bureau"] else ""
            unit = f" [{row['unit']}]" if row["unit"] else ""
            example = f"`{row['example']}`".replace("|", "\\|")
            text += f"| `{row['key']}`{bureau} | {row['meaning']}{unit} | {row['allowed'] or row['kind']} | {row['default']} | {example} "
            text += f"| {'✓' if row['settable'] else ''} |\n"
    return text + other_toml()
