"""Examples of docstrings are shown as code: the docstrings write `Example:`, the reader of them knows `Examples:`."""

from __future__ import annotations

import re
from typing import Any

import griffe

__all__ = ["ExampleSections"]

_HEADING = re.compile(r"^(\s*)Example:$", re.MULTILINE)


class ExampleSections(griffe.Extension):
    """Renames the section before it is parsed."""

    def on_instance(self, *, obj: griffe.Object, **_others: Any) -> None:
        """Every class, function and attribute passes here once."""
        if obj.docstring is not None:
            obj.docstring.value = _HEADING.sub(r"\1Examples:", obj.docstring.value)
