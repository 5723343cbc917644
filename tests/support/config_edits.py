"""Edits of a configuration in its Bureau form, to break one rule at a time."""

from collections.abc import Callable
from typing import Any

Edit = Callable[[dict[str, Any]], object]


def put(*path: str, value: object) -> Edit:
    def edit(document: dict[str, Any]) -> None:
        for name in path[:-1]:
            document = document[name]
        document[path[-1]] = value

    return edit


def drop(*path: str) -> Edit:
    def edit(document: dict[str, Any]) -> None:
        for name in path[:-1]:
            document = document[name]
        del document[path[-1]]

    return edit
