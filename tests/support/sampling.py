"""Cases of a test of which the suite runs some, and ``make test-long`` the others."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

__all__ = ["sampled"]


def sampled(cases: Iterable[Any], chosen: Iterable[Any], name: Callable[[Any], str] = str) -> list[Any]:
    """All cases as parameters; those whose name is not chosen are long.

    Args:
        cases: values, or tuples of values.
        chosen: names of those that the suite runs.
        name: of a case.
    """
    wanted = set(chosen)
    found = []
    for case in cases:
        values = case if isinstance(case, tuple) else (case,)
        marks = () if name(case) in wanted else (pytest.mark.long,)
        found.append(pytest.param(*values, id=name(case), marks=marks))
    return found
