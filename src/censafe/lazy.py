"""Packages whose names are loaded when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_names(package: str, names: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package that loads a module when one of its names is first asked for.

    Example:
        >>> load = lazy_names("censafe", {"version": ("__version__",)})
        >>> load("__version__") == load("__version__")
        True
        >>> load("other")
        Traceback (most recent call last):
        AttributeError: module 'censafe' has no attribute 'other'
    """
    module_of = {name: module for module, members in names.items() for name in members}

    def load(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{module_of[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return load
