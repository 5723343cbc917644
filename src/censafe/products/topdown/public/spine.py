"""The tree over the geounits of public noisy measurement files, from their nested codes alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.geography.geocodes import pack_characters
from censafe.geography.spines.paths import RunSpine
from censafe.geography.spines.tree import LevelRule, Spine, SpineLevel, build_spine
from censafe.publication.measurements.listing import texts
from censafe.publication.measurements.rows import locate_rows

_BLOCK_DIGITS: Final = 16
_NAMED: Final = 5
_STATE: Final = "State"
_Codes = NDArray[np.uint8]


def spine_of_files(
    geounits: Sequence[_Codes],
    rules: Sequence[LevelRule],
    folder: Path,
    published: Sequence[LevelRule] | None = None,
) -> RunSpine:
    """The tree of a run from the codes of its levels, beside the standard one.

    Codes are nested: a parent's code begins those of its children. How long they are is taken from the files. The last
    digits of a block's code are its census code, under which everything is published.

    Args:
        geounits: letters of the sorted codes of every level, root first, each of shape (n, width).

    Example:
        >>> codes = [np.array([list(code.encode()) for code in level], np.uint8)
        ...          for level in (["044", "144"], ["04400" + "4410", "14400" + "4411"])]
        >>> run = spine_of_files(codes, (LevelRule("State", 2), LevelRule("Block", 4)), Path("files"))
        >>> run.spine.leaf.parent.tolist(), run.standard.leaf.geounits.tolist()
        ([0, 1], ['4410', '4411'])
    """
    spine = _tree(geounits, rules, folder)
    blocks = _census_codes(geounits[-1], rules[-1], folder)
    standard = build_spine(blocks, rules if published is None else published)
    order = np.searchsorted(standard.leaf.codes, blocks).astype(np.int64)
    same = spine.names == standard.names and all(
        np.array_equal(one.geounits, other.geounits)
        for one, other in zip(spine.levels, standard.levels, strict=True)
    )
    if same:
        return RunSpine("standard", standard, standard, None, {})
    moved = None if np.array_equal(order, np.arange(len(order))) else order
    return RunSpine("files", spine, standard, moved, {})


def spine_above_blocks(geounits: Sequence[_Codes], rules: Sequence[LevelRule], folder: Path) -> RunSpine:
    """The tree of files whose lowest level is none of blocks, beside that of its states.

    Codes with a flag before the state part states by American Indian areas; the standard tree has whole states, and below them the
    geounits of the lowest level.

    Args:
        geounits: letters of the sorted codes of every level, root first, each of shape (n, width).

    Example:
        >>> codes = [np.array([list(code.encode()) for code in level], np.uint8)
        ...          for level in (["044", "144"], ["04410001", "14400010"])]
        >>> run = spine_above_blocks(codes, (LevelRule("State", 2), LevelRule("County", 5)), Path("files"))
        >>> run.spine.leaf.geounits.tolist(), [level.geounits.tolist() for level in run.standard.levels]
        (['04410001', '14400010'], [[''], ['44'], ['44010001', '44100010']])
    """
    spine = _tree(geounits, rules, folder)
    names = [rule.name for rule in rules]
    depth = names.index(_STATE) if _STATE in names else None
    if depth is None or geounits[depth].shape[1] != rules[depth].digits + 1:
        return RunSpine("files", spine, spine, None, {})
    rule, leaf = rules[depth], geounits[-1]
    digits = rule.digits + 1
    moved = np.concatenate([leaf[:, 1:digits], leaf[:, :1], leaf[:, digits:]], axis=1)
    numbers = _numbers(moved, 0, moved.shape[1], rules[-1], folder)
    parts = LevelRule(f"parts of level {rules[-1].name}", moved.shape[1], alphabet=rule.alphabet)
    above = rules[:depth] or [LevelRule("all states", 0, alphabet=rule.alphabet)]
    standard = build_spine(numbers, [*above, rule, parts])
    order = np.searchsorted(standard.leaf.codes, numbers).astype(np.int64)
    return RunSpine("files", spine, standard, order, {})


def _tree(geounits: Sequence[_Codes], rules: Sequence[LevelRule], folder: Path) -> Spine:
    """The levels of the files, as their codes are nested."""
    levels: list[SpineLevel] = []
    parents = [np.full(len(geounits[0]), -1, np.int32)]
    parents += [
        _parents(above, codes, rule, rules[depth].digits, folder)
        for depth, (above, codes, rule) in enumerate(zip(geounits[:-1], geounits[1:], rules[1:], strict=True))
    ]
    for depth, (codes, rule) in enumerate(zip(geounits, rules, strict=True)):
        edges = np.zeros(len(codes) + 1, np.int64)
        if depth + 1 < len(geounits):
            edges = np.searchsorted(parents[depth + 1], np.arange(len(codes) + 1)).astype(np.int64)
            childless = codes[np.diff(edges) == 0]
            _refuse(rules[depth + 1], childless, f"no geounit lies in those of level {rule.name}", folder)
        levels.append(_level(codes, rule, parents[depth], edges, folder))
    return Spine(tuple(levels))


def _parents(
    above: _Codes, codes: _Codes, rule: LevelRule, digits_above: int, folder: Path
) -> NDArray[np.int32]:
    if digits_above == 0:
        return np.zeros(len(codes), np.int32)
    width, found = above.shape[1], np.full(len(codes), -1, np.int64)
    if width <= codes.shape[1]:
        locate_rows(np.ascontiguousarray(above), np.ascontiguousarray(codes[:, :width]), found)
    what = "codes begin with that of no geounit of the level above"
    _refuse(rule, codes[found < 0], what, folder)
    return found.astype(np.int32)


def _level(
    codes: _Codes,
    rule: LevelRule,
    parent: NDArray[np.int32],
    edges: NDArray[np.int64],
    folder: Path,
) -> SpineLevel:
    if rule.digits == 0:
        return SpineLevel(rule.name, 0, str(texts(codes[:1])[0]), np.zeros(1, np.int64), parent, edges)
    width = codes.shape[1]
    most = rule.form.longest
    before = 0 if width <= most else width - min(_BLOCK_DIGITS, most)
    numbers = _numbers(codes, before, width, rule, folder)
    prefix = _numbers(codes, 0, before, rule, folder) if before else None
    return SpineLevel(rule.name, width - before, "", numbers, parent, edges, prefix, before, rule.alphabet)


def _census_codes(codes: _Codes, rule: LevelRule, folder: Path) -> NDArray[np.int64]:
    width = codes.shape[1]
    if width < rule.digits:
        raise DataError(
            f"level {rule.name}, {folder}: codes have {width} digits; allowed: {rule.digits} or more, the last of which are the "
            "census code; fix: name files and configuration of one product"
        )
    return _numbers(codes, width - rule.digits, width, rule, folder)


def _numbers(codes: _Codes, first: int, last: int, rule: LevelRule, folder: Path) -> NDArray[np.int64]:
    numbers = pack_characters(codes[:, first:last], rule.alphabet)
    _refuse(rule, codes[numbers < 0], "codes have other characters than the configuration says", folder)
    return numbers


def _refuse(rule: LevelRule, wrong: _Codes, what: str, folder: Path) -> None:
    if len(wrong):
        raise DataError(
            f"level {rule.name}, {folder}: {what} ({len(wrong)} geounits), such as {', '.join(texts(wrong[:_NAMED]).tolist())}; fix: "
            "get the files of all levels of one product"
        )
