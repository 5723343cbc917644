"""The short form of the map from codes to iterations: one line an iteration, with single codes and ranges."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from censafe.errors import DataError

__all__ = ["LONG_HEADER", "expand_short_form", "is_short_form", "short_form_lines"]

LONG_HEADER: Final = "ITERATION_CODE|RACE_ETH_CODE"
_LINE: Final = re.compile(
    r"\s*(\d{1,4})\s*\|\s*(\d{4}(?:\s*:\s*\d{4})?(?:\s*,\s*\d{4}(?:\s*:\s*\d{4})?)*)\s*", re.ASCII
)


def is_short_form(lines: list[str]) -> bool:
    """Whether the lines of a map file, header first, are of the short form: some line has a list or a range.

    Example:
        >>> is_short_form(["ITERATION_CODE|RACE_ETH_CODE", "1002|1010"]), is_short_form(["A|B", "2|1010, 1020:1030"])
        (False, True)
    """
    return any("," in line or ":" in line for line in lines[1:])


def expand_short_form(
    lines: Iterable[str], known: Collection[int], where: str
) -> tuple[tuple[str, str], ...]:
    """Rows (iteration code, race or ethnicity code) of the long form.

    Args:
        lines: without the header; ``ITERATION_CODE|list``, the list of four-digit codes and inclusive ranges
            ``aaaa:bbbb`` separated by commas; spaces are allowed.
        known: the codes of the code list; others inside a range are left out, others by themselves stay.
        where: name of the file, for messages.

    Raises:
        DataError: naming the numbers of the malformed lines.

    Example:
        >>> expand_short_form(["12|1010, 1020:1030"], {1010, 1021, 1029}, "map.txt")
        (('0012', '1010'), ('0012', '1021'), ('0012', '1029'))
    """
    ordered = sorted(known)
    rows: list[tuple[str, str]] = []
    wrong: list[int] = []
    for number, line in enumerate(lines, start=2):
        parsed = _LINE.fullmatch(line)
        ranges = [] if parsed is None else [_bounds(item) for item in parsed[2].split(",")]
        if parsed is None or any(low > high for low, high in ranges):
            wrong.append(number)
            continue
        for low, high in ranges:
            codes = [low] if low == high else [code for code in ordered if low <= code <= high]
            rows += [(parsed[1].zfill(4), f"{code:04d}") for code in codes]
    if wrong:
        shown = ", ".join(str(number) for number in wrong[:10])
        raise DataError(
            f"{where}: {len(wrong)} malformed line{'s' if len(wrong) > 1 else ''} (line {shown}); allowed: an "
            "iteration code of 1 to 4 digits, |, then four-digit codes or ranges aaaa:bbbb with aaaa up to bbbb, "
            "separated by commas; fix: correct the lines"
        )
    return tuple(rows)


def short_form_lines(members: Mapping[str, Collection[int]], known: Collection[int]) -> tuple[str, ...]:
    """The short form of a map, a line for every iteration with codes, without a header.

    Args:
        members: codes by iteration code.
        known: the codes of the code list; a range may span any that are not in it.

    Example:
        >>> short_form_lines({"1002": {1010, 1020, 1030, 1050}}, [1010, 1020, 1030, 1040, 1050])
        ('1002|1010:1030,1050',)
    """
    rank = {code: position for position, code in enumerate(sorted(known))}
    lines = []
    for iteration, codes in members.items():
        runs: list[list[int]] = []
        for code in sorted(codes):
            if runs and rank[code] == rank[runs[-1][-1]] + 1:
                runs[-1].append(code)
            else:
                runs.append([code])
        if runs:
            texts = (f"{run[0]}:{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
            lines.append(f"{iteration}|{','.join(texts)}")
    return tuple(lines)


def _bounds(item: str) -> tuple[int, int]:
    low, _, high = item.partition(":")
    return int(low), int(high or low)
