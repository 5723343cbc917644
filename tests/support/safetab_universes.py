"""Small universes of iterations for the SafeTab tests, as values and as parameter folders."""

from pathlib import Path

from censafe.products.detailed.codes.universe import CharacteristicIteration, Kind, Universe

FILES = {
    "codes": "race-and-ethnicity-codes.txt",
    "race": "race-characteristic-iterations.txt",
    "ethnicity": "ethnicity-characteristic-iterations.txt",
    "map": "race-and-ethnicity-code-to-iteration.txt",
}
GOOD = {
    "codes": ["RACE_ETH_CODE|RACE_ETH_NAME", "1010|Alba", "1020|Bora", "1030|Cato", "2000|Dun"],
    "race": [
        "ITERATION_CODE|ITERATION_NAME|LEVEL|ALONE|DETAILED_ONLY|COARSE_ONLY",
        "0001|All alone|0|True|Null|Null",
        "0002|All|0|False|Null|Null",
        "1001|North alone|1|True|False|False",
        "1002|North|1|False|False|False",
        "2001|Alba alone|2|True|False|False",
        "2002|Alba|2|False|False|False",
        "2003|Bora alone|2|True|True|False",
        "2004|Bora|2|False|False|False",
    ],
    "ethnicity": [
        "ITERATION_CODE|ITERATION_NAME|LEVEL|DETAILED_ONLY|COARSE_ONLY",
        "3000|Any|0|Null|Null",
        "3001|Dun|2|False|False",
    ],
    "map": [
        "ITERATION_CODE|RACE_ETH_CODE",
        *(f"{code}|{race}" for code in ("0001", "0002", "1001", "1002") for race in ("1010", "1020", "1030")),
        "2001|1010",
        "2002|1010",
        "2003|1020",
        "2004|1020",
        "3000|2000",
        "3001|2000",
    ],
}


def write_parameters(folder: Path, *, newline: str = "\n", bom: bool = False, **changed: list[str]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, lines in {**GOOD, **changed}.items():
        text = newline.join([*lines, ""])
        (folder / FILES[name]).write_bytes(text.encode("utf-8-sig" if bom else "utf-8"))
    return folder


def make_universe(*groups: tuple[Kind, set[int]], level: int = 2) -> Universe:
    """A universe of one level without flags: every group is an iteration with its codes."""
    iterations = tuple(
        CharacteristicIteration(f"{number:04d}", f"group {number}", kind, level, False, False)
        for number, (kind, _) in enumerate(groups)
    )
    members = {one.code: frozenset(codes) for one, (_, codes) in zip(iterations, groups, strict=True)}
    codes = {code: f"code {code}" for code in sorted(set().union(*members.values()))}
    return Universe(codes, iterations, members, "test")


def groups_of(universe: Universe, level: int, granularity: str, races: list[int], ethnicity: int) -> set[str]:
    """The rule of the specification, read with sets: iteration codes of one record; 0 stands for Null."""
    candidates = universe.candidates(level, granularity).iterations

    def holding(kind: Kind, code: int) -> set[str]:
        return {one.code for one in candidates if one.kind == kind and code in universe.members[one.code]}

    given = [code for code in races if code]
    alone = set.intersection(*(holding("alone", code) for code in given)) if given else set()
    combination = set().union(*(holding("combination", code) for code in given))
    return alone | combination | holding("ethnicity", ethnicity)
