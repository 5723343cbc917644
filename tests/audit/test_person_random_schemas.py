"""The change of one person in censuses of random schemas, queries and budgets, by brute force: never more than a plan states.

All pairs of a record before and after in all pairs of blocks, and all changes of two homes, are compared by their measured answers; the dearest change is
written and read again, and its loss taken from what the reader makes of it.
"""

import itertools
import random
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from censafe.products.topdown.configuration.config import TopdownConfig, load_config
from censafe.products.topdown.person_loss import PersonLoss, person_loss
from censafe.products.topdown.plan import workloads
from support.person_records import Reading

LEVELS = {"Land": 0, "Region": 1, "Block": 3}
CODES = ("101", "102", "201", "301", "302")
Rows = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Census:
    """Rows of persons and of homes: block and cell; as many of every cell in every block."""

    persons: Rows
    homes: Rows


def random_shares(rng: random.Random, names: list[str]) -> str:
    weights = [rng.randrange(1, 9) for _ in names]
    return ", ".join(f'"{name}" = "{own}/{sum(weights)}"' for name, own in zip(names, weights, strict=True))


def random_schema(
    rng: random.Random, name: str, sizes: dict[str, int], *, kinds: bool
) -> tuple[str, list[str]]:
    """Attributes, two random groupings of each, and facilities by a grouping of the first where asked; names of some queries."""
    lines = [
        f"[schemas.{name}]",
        f'record = "{"person" if name == "persons" else "household"}"',
        "attributes = [",
    ]
    lines += [f'    {{ name = "{one}", levels = {size} }},' for one, size in sizes.items()]
    lines.append("]")
    terms = {one: [one] for one in sizes}
    for one, size in sizes.items():
        for number in range(2 if size > 2 else 0):
            groups: list[list[int]] = [[], []]
            for level in rng.sample(range(size), size):
                groups[0 if not groups[0] else 1 if not groups[1] else rng.randrange(2)].append(level)
            terms[one].append(f"{one}_{number}")
            lines += [
                f"[schemas.{name}.recodes.{one}_{number}]",
                f'attribute = "{one}"',
                f"groups = {sorted(map(sorted, groups))}",
            ]
    if kinds:
        first, size = next(iter(sizes.items()))
        housing = rng.randrange(1, size)
        lines += [f"[schemas.{name}.recodes.quarters]", f'attribute = "{first}"']
        lines += [f"groups = {[list(range(housing)), *([level] for level in range(housing, size))]}"]
        count = 1 + size - housing
        lines += [
            f"[schemas.{name}.facilities]",
            'attribute = "quarters"',
            f"minimum = {[0] + [1] * (count - 1)}",
            f"largest = {[999] * count}",
        ]
    queries = {"total", "detailed"}
    for _ in range(4):
        some = [rng.choice(own) for own in terms.values() if rng.random() < 0.7]
        if some:
            queries.add(" * ".join(some))
    return "\n".join(lines), sorted(queries - {" * ".join(sizes)})


def random_config(seed: int, folder: Path) -> TopdownConfig:
    """One or two histograms on three levels."""
    rng = random.Random(seed)
    sizes = {
        "persons": {"place": rng.randrange(2, 5), "group": rng.randrange(2, 4)},
        "homes": {"tenure": rng.randrange(2, 4), "type": 3},
    }
    if rng.random() < 0.4:
        del sizes["homes"]
    exact = {"persons": rng.choice(["Land", "Region", "Block"]), "homes": "Block"}
    head = ['title = "A random census"', "levels = ["]
    head += [
        f'    {{ name = "{name}", prefix = {prefix}{", code = " + chr(34) + "L" + chr(34) if not prefix else ""} }},'
        for name, prefix in LEVELS.items()
    ]
    head += [
        "]",
        f"measure = {list(sizes)}".replace("'", '"'),
        f"bypass = {str(rng.random() < 0.5).lower()}",
        "[rho]",
    ]
    head += [f'{name} = "{rng.randrange(1, 20)}/7"' for name in sizes]
    tail = []
    for name, own in sizes.items():
        schema, queries = random_schema(rng, name, own, kinds=name == "persons" and rng.random() < 0.6)
        head.append(schema)
        listed = ", ".join(f'"{query}"' for query in queries)
        tail += [
            f"[histograms.{name}]",
            f'schema = "{name}"',
            f'exact_totals = "{exact[name]}"',
            f"[[histograms.{name}.passes]]",
        ]
        tail += [
            f"levels = {list(LEVELS)}".replace("'", '"'),
            f"l2 = [[[{listed}]]]",
            'rounding = [[["detailed"]]]',
        ]
        tail += [f"[level_shares.{name}]", random_shares(rng, list(LEVELS)).replace(", ", "\n")]
        tail += [
            f"[query_shares.{name}]",
            *(f"{level} = {{ {random_shares(rng, queries)} }}" for level in LEVELS),
        ]
    path = folder / f"census{seed}.toml"
    path.write_text("\n".join([*head, *tail]) + "\n", encoding="utf-8")
    return load_config(str(path))


def write(folder: Path, census: Census) -> None:
    """Tables of cells, and of units of every kind that a schema may have."""
    for name, rows in (("histogram", census.persons), ("homes", census.homes)):
        lines = ["geocode,cell", *(f"{code},{cell}" for code, cell in rows)]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    kinds = ",".join(f"gq{kind}" for kind in range(5))
    lines = [f"geocode,{kinds}", *(f"{code},9,1,1,1,1" for code in CODES)]
    (folder / "units.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def population(config: TopdownConfig) -> Census:
    """Three rows of every cell in every block."""
    cells = {one.name: one.schema.schema.cells for one in config.histograms}
    persons, homes = (
        tuple((code, cell) for code in CODES for cell in range(cells.get(name, 1)) for _ in range(3))
        for name in ("persons", "homes")
    )
    return Census(persons, homes)


def largest_loss(reading: Reading, name: str, left: int, entered: int) -> tuple[float, tuple[int, ...]]:
    """The dearest change in two blocks of the rows of one histogram, all tried: -p +p' of a person, -x +y and -x' +y' of two homes."""
    first = reading.load(population(reading.config))
    assert first is not None
    cells = reading.config.histogram(name).schema.schema.cells
    signs, places = (
        ((-1, 1), (left, entered)) if name == "persons" else ((-1, 1, -1, 1), (left, left, entered, entered))
    )
    tried = np.stack(np.meshgrid(*[np.arange(cells)] * len(signs), indexing="ij")).reshape(len(signs), -1)
    total = np.zeros(tried.shape[1])
    for load in workloads(reading.config):
        if load.histogram.name != name:
            continue
        prefix = LEVELS[load.level.name]
        geounits = sorted({code[:prefix] for code in CODES})
        nodes = [geounits.index(CODES[place][:prefix]) for place in places]
        budget = first.facts.budgets[load.part.name]
        for ordinal, query in enumerate(load.queries):
            answers = query.labels(tried)
            for node in set(nodes):
                law = budget.laws[budget.kinds[node]][ordinal]
                own = [at for at, one in enumerate(nodes) if one == node]
                squares = sum(
                    signs[a] * signs[b] * (answers[a] == answers[b]) for a, b in itertools.product(own, own)
                )
                total += 0 if law is None else squares / float(2 * law.parameter)
    best = int(total.argmax())
    return float(total[best]), tuple(tried[:, best].tolist())


def dearest(reading: Reading) -> dict[str, Fraction]:
    """Largest losses of each histogram, and of all at one pair of blocks, from what the reader makes of the dearest changes."""
    config, before = reading.config, population(reading.config)
    exact = config.histogram("persons").exact_totals or "Land"
    names = [one.name for one in config.histograms]
    most = {name: Fraction(0) for name in (*names, "all")}
    best: dict[str, tuple[float, int, int]] = {}
    changes: dict[tuple[str, int, int], tuple[int, ...]] = {}
    for left, entered in itertools.product(range(len(CODES)), repeat=2):
        losses = {}
        for name in names:
            losses[name], changes[name, left, entered] = largest_loss(reading, name, left, entered)
        if CODES[left][: LEVELS[exact]] != CODES[entered][: LEVELS[exact]]:
            losses.pop("persons")  # a total that is published exactly would change
        losses |= {"all": sum(losses.values())} if len(losses) == len(names) else {}
        for name, loss in losses.items():
            best[name] = max(best.get(name, (-1.0, 0, 0)), (loss, left, entered))
    for name, (_, left, entered) in best.items():
        after = before
        for one in names if name == "all" else (name,):
            after = changed(after, one, left, entered, changes[one, left, entered])
        loss = reading.loss(before, after)
        assert loss is not None
        most[name] = sum(loss.values(), Fraction(0))
    return most


def changed(census: Census, name: str, left: int, entered: int, cells: tuple[int, ...]) -> Census:
    """Rows of one histogram taken and added."""
    rows = list(getattr(census, name))
    places = (left, entered) if name == "persons" else (left, left, entered, entered)
    for at, (place, cell) in enumerate(zip(places, cells, strict=True)):
        if at % 2:
            rows.append((CODES[place], cell))
        else:
            rows.remove((CODES[place], cell))
    return replace(census, **{name: tuple(rows)})


def claims(loss: PersonLoss) -> dict[str, Fraction]:
    return {**loss.histograms, "all": loss.together}


def attack(seed: int, folder: Path) -> tuple[int, int]:
    """How many statements of one random census there are, and how many are attained; none is exceeded."""
    config = random_config(seed, folder)
    most, claim = dearest(Reading(config, write, folder / "data")), claims(person_loss(config))
    assert most.keys() == claim.keys()
    assert all(loss <= claim[name] for name, loss in most.items()), (seed, most, claim)
    return len(most), sum(loss == claim[name] for name, loss in most.items())


def test_the_change_of_one_person_in_a_random_census_never_costs_more_than_is_stated(tmp_path: Path) -> None:
    statements, attained = zip(*(attack(seed, tmp_path) for seed in range(8)), strict=True)
    assert sum(attained) >= sum(statements) // 2  # conflicting groupings leave the others upper bounds


@pytest.mark.long
def test_no_change_in_many_random_censuses_costs_more_than_is_stated(tmp_path: Path) -> None:
    assert all(
        attained <= statements
        for statements, attained in (attack(seed, tmp_path) for seed in range(100, 400))
    )


def test_a_claim_by_rows_is_exceeded_by_two_homes(tmp_path: Path) -> None:
    config = random_config(6, tmp_path)
    most = dearest(Reading(config, write, tmp_path / "data"))
    homes = config.histogram("homes")
    assert most["homes"] > sum(homes.level_shares.values()) * homes.loss
