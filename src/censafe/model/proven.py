"""The decorator of a proven function; a leaf, so that every package can prove what it does.

``tests/support/proofs.py`` finds the decorated functions, and a test compares them with the functions as they stand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])

PROOF_ATTRIBUTE = "__proof__"


def proven(proof: str, *, digest: str) -> Callable[[_Function], _Function]:
    """Declare a function as covered by a proof file in the folder of its module."""

    def mark(function: _Function) -> _Function:
        setattr(function, PROOF_ATTRIBUTE, (proof, digest))
        return function

    return mark
