"""Which tests ``make test`` leaves to ``make test-every``: tests/every.txt."""

from collections.abc import Collection, Iterable
from pathlib import Path

LIST = Path(__file__).parents[1] / "every.txt"
_REST = "[1:]"


def listed_tests() -> list[str]:
    """The lines of the list, without its words."""
    return [
        line for line in LIST.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")
    ]


def left_out(tests: Iterable[str], listed: Collection[str]) -> tuple[set[str], set[str]]:
    """The tests that a list names, and the lines of it that name none.

    Example:
        >>> tests = [f"test_a.py::test_b[{case}]" for case in "xyz"] + ["test_a.py::test_c"]
        >>> chosen, unused = left_out(tests, ["test_a.py::test_b[1:]", "test_d.py"])
        >>> sorted(chosen), unused
        (['test_a.py::test_b[y]', 'test_a.py::test_b[z]'], {'test_d.py'})
    """
    lines, chosen, used, cases = set(listed), set(), set(), set()
    for test in tests:
        function = test.partition("[")[0]
        names = {test, function, function.partition("::")[0]}
        if function + _REST in lines and function in cases:
            names.add(function + _REST)
        cases.add(function)
        if here := names & lines:
            chosen.add(test)
            used |= here
    return chosen, lines - used
