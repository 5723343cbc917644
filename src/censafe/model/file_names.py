"""Names of files made from names that stand in data or in a configuration."""

from __future__ import annotations

import hashlib
import re
from pathlib import PurePosixPath
from typing import Final

__all__ = ["file_name", "stays_inside"]

_OTHER: Final = re.compile(r"[^A-Za-z0-9_ -]")
_MOST: Final = 80
_DIGITS: Final = 8


def file_name(text: str) -> str:
    """A name, without ending, that is one part of a path whatever the text is.

    Letters of ASCII, digits, ``-``, ``_`` and inner blanks stay as they are. Where anything else stood in the text, or it was longer
    than 80 characters, eight hexadecimal digits of its SHA-256 follow, so that different texts have different names.

    Args:
        text: such as the name of a column, a query or an area.

    Example:
        >>> file_name("School District"), file_name("../../x")
        ('School District', '______x-9cdf6a50')
    """
    plain = _OTHER.sub("_", text).strip()[:_MOST]
    if plain == text and plain:
        return plain
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{plain}-{digest}" if plain else digest


def stays_inside(name: str) -> bool:
    """Whether a relative path, such as one that a manifest names, leads nowhere outside of its folder.

    Args:
        name: with ``/`` between its parts.

    Example:
        >>> stays_inside("tables/PH1.csv"), stays_inside("../PH1.csv"), stays_inside("/etc/PH1.csv"), stays_inside("")
        (True, False, False, False)
    """
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts and "\0" not in name
