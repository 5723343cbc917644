"""The redistricting configuration on the levels of the DHC."""

import re
from fractions import Fraction
from pathlib import Path

from censafe.products.configuration.source import find_shipped

BETWEEN = ("Prim", "Tract_Subset_Group", "Tract_Subset")
_PREFIXES = {"Prim": 6, "Tract_Subset_Group": 11, "Tract_Subset": 12}


def write_prim_config(path: Path) -> Path:
    """pl94-us with the three levels between county and block group instead of the tracts, whose budget they divide evenly."""
    shipped = find_shipped("topdown", "pl94-us")
    assert shipped is not None
    text = shipped.path.read_text(encoding="utf-8")
    levels = "\n".join(f'    {{ name = "{name}", prefix = {prefix} }},' for name, prefix in _PREFIXES.items())
    text = text.replace('    { name = "Tract", prefix = 11 },', levels)
    text = text.replace(
        '{ name = "Block_Group", prefix = 12 }', '{ name = "Block_Group", prefix = 13 }'
    ).replace('"Tract", ', "".join(f'"{name}", ' for name in BETWEEN))
    text = re.sub(
        r'^Tract = "(.*)"$',
        lambda found: "\n".join(f'{name} = "{Fraction(found[1]) / len(BETWEEN)}"' for name in BETWEEN),
        text,
        flags=re.MULTILINE,
    )
    sections = re.split(r"(?m)^(?=\[)", text)
    for position, section in enumerate(sections):
        if re.match(r"\[query_shares\.\w+\.Tract\]", section):
            sections[position] = "".join(section.replace(".Tract]", f".{name}]") for name in BETWEEN)
    text = re.sub(r'(?m)^spine = ".*"$', 'spine = "prim"', "".join(sections))
    path.write_text(text, encoding="utf-8")
    return path
