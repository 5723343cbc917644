"""Docstrings for the reader of the site: `Example:` becomes `Examples:`, and a role such as `:class:` the name in it."""

from __future__ import annotations

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:class|func|meth|mod|attr):`~?([\w.]*?)(\w+)`")
_HEADING = re.compile(r"^(\s*)Example:$", re.MULTILINE)


class ExampleSections(griffe.Extension):
    """Changes docstrings before they are parsed."""

    def on_instance(self, *, obj: griffe.Object, **_others: Any) -> None:
        """Every class, function and attribute passes here once."""
        if obj.docstring is not None:
            text = _HEADING.sub(r"\1Examples:", obj.docstring.value)
            obj.docstring.value = _ROLE.sub(r"`\2`", text)
