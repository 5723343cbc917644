"""Compiled kernels that draw the members of a household: relationship, age, sex, race and Hispanic origin."""

from __future__ import annotations

from censafe.model.compiled import compiled
from censafe.population.synthetic.structures import Chances, DrawnPersons, Words, pick, sex, uniform, waiting

_kernel = compiled()

_OLDEST_CHILD = 89  # by the Bureau's edit rules

Home = tuple[int, int]
"""Row of the state, and the group that is more frequent in the tract."""
_Members = tuple[int, int, int]  # first person of the household, members so far, most members


@_kernel
def draw_race(c: Chances, home: Home, words: Words, o: DrawnPersons, i: int) -> None:
    """Race and Hispanic origin of person `i`."""
    state, dominant = home
    group = dominant if uniform(words) < c.dominant else pick(c.group[state], words)
    o.hispanic[i] = 2 if group == 7 else 1
    if group < 6:
        o.race[i] = group + 1
    elif group == 6:
        o.race[i] = 1 + pick(c.races[0], words)
    else:
        o.race[i] = 1 + pick(c.races[c.hispanic_row[state]], words)


@_kernel
def _kin_race(c: Chances, home: Home, other: float, words: Words, o: DrawnPersons, i: int, of: int) -> None:
    if uniform(words) < other:
        draw_race(c, home, words, o, i)
    else:
        o.race[i] = o.race[of]
        o.hispanic[i] = o.hispanic[of]


@_kernel
def _householder(c: Chances, kind: int, words: Words, o: DrawnPersons, p: int) -> None:
    band = pick(c.head_age[kind], words)
    low = c.bands[band]
    high = c.bands[band + 1]
    if band == 0 and c.least[kind] == 1 and uniform(words) < c.minor_head:
        age = 15 + int(uniform(words) * 3)
    elif band == len(c.bands) - 2:
        age = min(high - 1, low + waiting(4.0, words))
    else:
        age = low + int(uniform(words) * (high - low))
    o.age[p] = age
    o.relship[p] = 20
    if kind < 4:
        o.sex[p] = sex(c.male_head, words)
    else:
        o.sex[p] = 2 if kind < 8 else 1


@_kernel
def _partner(c: Chances, kind: int, words: Words, o: DrawnPersons, p: int) -> None:
    married = kind < 2
    same = uniform(words) < c.same_sex[0 if married else 1]
    o.relship[p + 1] = (23 if same else 21) if married else (24 if same else 22)
    o.sex[p + 1] = o.sex[p] if same else 3 - o.sex[p]
    years = (uniform(words) + uniform(words) + uniform(words) - 1.5) * 9.0
    older = 0.0 if same else (2.0 if o.sex[p + 1] == 1 else -2.0)
    o.age[p + 1] = min(105, max(18, int(o.age[p] + years + older)))


@_kernel
def _youngest_parent(kind: int, o: DrawnPersons, p: int) -> int:
    return min(o.age[p], o.age[p + 1]) if kind < 4 else o.age[p]


@_kernel
def _minor_age(parent: int, words: Words) -> int:
    for _ in range(6):
        age = parent - int(17.0 + (uniform(words) + uniform(words)) * 12.0)
        if 0 <= age < 18:
            return age
    high = min(17, parent - 15)
    low = max(0, min(high, parent - 45))
    return low + int(uniform(words) * (high - low + 1))


@_kernel
def _youngest_child(o: DrawnPersons, p: int) -> int:
    """The age that the Bureau's edit rules ask of an own child of householder `p`."""
    if o.age[p] >= 75:
        return 18 if o.sex[p] == 2 else 6
    return 6 if o.age[p] >= 60 and o.sex[p] == 2 else 0


@_kernel
def _child_race(c: Chances, home: Home, kind: int, words: Words, o: DrawnPersons, p: int, i: int) -> None:
    of = p + 1 if kind < 4 and uniform(words) < 0.5 else p
    _kin_race(c, home, c.kin_other, words, o, i, of)
    if kind < 4 and o.race[p] != o.race[p + 1] and uniform(words) < c.combined:
        o.race[i] = c.code[c.mask[o.race[p]] | c.mask[o.race[p + 1]]]


@_kernel
def _minors(
    c: Chances, home: Home, kind: int, words: Words, o: DrawnPersons, p: int, n: int, room: int
) -> int:
    remaining = 1 + pick(c.minors, words)
    parent = _youngest_parent(kind, o, p)
    while remaining > 0 and n < room:
        i = p + n
        code = 25 + pick(c.own_minor, words)
        o.relship[i] = 25 if code == 27 and kind >= 4 else code
        o.age[i] = max(_minor_age(parent, words), _youngest_child(o, p))
        o.sex[i] = sex(0.512, words)
        _child_race(c, home, kind, words, o, p, i)
        n += 1
        remaining -= 1
    return n


@_kernel
def _possible(code: int, head: int, parent: int, kind: int) -> int:
    """The relationship itself where the ages allow it, else a sibling or another relative."""
    if code <= 27:
        if parent < 33:
            return 28
        return 25 if code == 27 and kind >= 4 else code
    if code == 29 or code == 31:
        return 28 if head > 70 else (29 if kind >= 4 else code)
    if (code == 30 and head < 36) or (code == 32 and head < 38):
        return 33
    return code


@_kernel
def _relative_age(code: int, head: int, parent: int, words: Words) -> int:
    if code <= 27:
        return min(_OLDEST_CHILD, parent - 15, 18 + waiting(9.0, words))
    if code == 28:
        return max(0, min(100, head + int((uniform(words) - 0.5) * 20.0)))
    if code == 29 or code == 31:
        return head + 18 + int(uniform(words) * 20.0)
    if code == 30:
        return int(uniform(words) * min(22, head - 32))
    if code == 32:
        return min(head - 15, 20 + int(uniform(words) * 20.0))
    return 12 + int(uniform(words) * 65.0)


@_kernel
def _relative(c: Chances, kind: int, words: Words, o: DrawnPersons, p: int, i: int) -> None:
    head = o.age[p]
    parent = _youngest_parent(kind, o, p)
    row = 0 if head < 35 else (1 if head < 55 else 2)
    code = _possible(25 + pick(c.relatives[row], words), head, parent, kind)
    o.relship[i] = code
    o.age[i] = _relative_age(code, head, parent, words)
    o.sex[i] = sex(0.49, words)


@_kernel
def _nonrelative(c: Chances, words: Words, o: DrawnPersons, p: int, i: int) -> None:
    head = o.age[p]
    code = 34 + pick(c.nonrelatives, words)
    if code == 35 and head < 25:
        code = 34
    o.relship[i] = code
    if code == 34:
        o.age[i] = max(16, min(100, head + int((uniform(words) - 0.5) * 16.0)))
    else:
        o.age[i] = int(uniform(words) * 18.0) if code == 35 else 12 + int(uniform(words) * 58.0)
    o.sex[i] = sex(0.53, words)


@_kernel
def _others(
    c: Chances,
    home: Home,
    kind: int,
    words: Words,
    o: DrawnPersons,
    members: _Members,
    more: float,
    related: bool,
) -> int:
    """Draw further relatives, or nonrelatives, each with chance `more`; how many members there are then."""
    p, n, room = members
    needed = (kind == 6 or kind == 10) if related else (kind == 7 or kind == 11)
    other = c.kin_other if related else 1.0 - c.nonrelative_same
    while n < room and (needed or uniform(words) < more):
        i = p + n
        if related:
            _relative(c, kind, words, o, p, i)
        else:
            _nonrelative(c, words, o, p, i)
        _kin_race(c, home, other, words, o, i, p)
        needed = False
        n += 1
    return n


@_kernel
def draw_household(c: Chances, home: Home, words: Words, o: DrawnPersons, p: int, room: int) -> int:
    """Draw the members from person `p` on, at most `room`; how many there are."""
    kind = pick(c.kind, words)
    room = min(room, c.largest)
    if room < c.least[kind]:
        kind = 4 if kind < 8 else 8
    _householder(c, kind, words, o, p)
    draw_race(c, home, words, o, p)
    if kind == 4 or kind == 8:
        return 1
    n = 1
    if kind < 4:
        _partner(c, kind, words, o, p)
        _kin_race(c, home, c.spouse_other, words, o, p + 1, p)
        n = 2
    crowded = uniform(words) < c.crowded
    if kind == 0 or kind == 2 or kind == 5 or kind == 9:
        n = _minors(c, home, kind, words, o, p, n, room)
    more = c.crowded_more if crowded and c.more_relatives[kind] > 0.0 else c.more_relatives[kind]
    n = _others(c, home, kind, words, o, (p, n, room), more, True)
    more = c.crowded_more if crowded else c.more_nonrelatives[kind]
    return _others(c, home, kind, words, o, (p, n, room), more, False)
