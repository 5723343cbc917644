"""Levels and noisy groups drawn with a seed, for everything that follows measurement."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.detailed import totals as estimation
from censafe.model import (
    Definition,
    GroupLevel,
    GroupMeasurements,
    Neighbors,
    NoiseLaw,
    PartPlan,
    ProtectedUnit,
    QueryPlan,
    ReleasePlan,
)
from censafe.model.groups import GroupEstimates
from censafe.model.plan import NoiseSource
from censafe.products.detailed.tables import tables_of

CODES = ("1001", "1002", "2001", "2002")
CELLS = {"zcdp": NoiseLaw.gaussian, "puredp": NoiseLaw.laplace}
THRESHOLDS = (100, 500, 2000)
P_TABLES = tables_of("safetab-p")
H_TABLES = tables_of("safetab-h")
TABLES = {table.key: table for table in (*P_TABLES.tables, *H_TABLES.tables)}


def totals(measurements: GroupMeasurements, **options: Any) -> GroupEstimates:
    """Estimates from measurements of any table."""
    return estimation.totals(measurements, TABLES[measurements.table], **options)


def level(
    name: str, regions: Sequence[str], iterations: Sequence[str] = CODES, detailed_only: Sequence[str] = ()
) -> GroupLevel:
    return GroupLevel(
        name=name,
        region_type=name.rsplit("_", 1)[0].upper().replace("_", "-"),
        iteration_level=int(name.rsplit("_", 1)[1]),
        regions=np.array(sorted(regions), np.str_),
        iterations=tuple(iterations),
        detailed_only=np.isin(np.array(iterations, np.str_), np.array(detailed_only, np.str_)),
    )


def law(kind: str, cost: Fraction) -> NoiseLaw:
    return NoiseLaw.gaussian(9 / (2 * cost)) if kind == "zcdp" else NoiseLaw.laplace(9 / cost)


def persons(
    where: GroupLevel,
    cost: Fraction = Fraction(1, 2),
    *,
    seed: int = 1,
    share: float = 0.8,
    source: NoiseSource = "system",
    kind: str = "zcdp",
    truth: Callable[[int], NDArray[np.int64]] | None = None,
) -> GroupMeasurements:
    """SafeTab-P: a share of all groups, sizes from 0 to thousands, normal noise rounded (any noise will do)."""
    rng = np.random.default_rng(seed)
    keep = np.sort(rng.permutation(where.groups)[: round(share * where.groups)])
    region, iteration = np.divmod(keep, len(where.iterations))
    size = np.rint(10 ** rng.uniform(0, 4, len(keep))).astype(np.int64) if truth is None else truth(len(keep))
    laws = {
        "detailed_only": law(kind, cost), "stage1": law(kind, cost / 10), "stage2": law(kind, cost * 9 / 10)
    }  # fmt: skip
    only = where.detailed_only[iteration]
    stage1 = size + _noise(rng, laws["stage1"], len(keep))
    stat_level = np.where(only, 0, np.searchsorted(np.array(THRESHOLDS), stage1, side="right")).astype(
        np.int8
    )
    values, indptr = _cells(rng, size, stat_level, "t1t2")
    values += _noise(rng, laws["stage2"], len(values))
    stage1[only] = values[indptr[:-1]][only]
    return GroupMeasurements(
        level=where,
        table="t1t2",
        region=region.astype(np.int32),
        iteration=iteration.astype(np.int32),
        stat_level=stat_level,
        stage1=stage1,
        indptr=indptr,
        values=values,
        laws=laws,
        costs={"detailed_only": cost, "stage1": cost / 10, "stage2": cost * 9 / 10},
        source=source,
    )


def households(
    where: GroupLevel,
    table: str = "t3",
    cost: Fraction = Fraction(1, 2),
    *,
    seed: int = 1,
    share: float = 0.8,
    source: NoiseSource = "system",
    kind: str = "zcdp",
) -> GroupMeasurements:
    """SafeTab-H: a share of all groups of every stat level."""
    rng = np.random.default_rng(seed)
    keep = np.sort(rng.permutation(where.groups)[: round(share * where.groups)])
    region, iteration = np.divmod(keep, len(where.iterations))
    stat_level = rng.integers(0, len(TABLES[table].sizes), len(keep)).astype(np.int8)
    size = np.rint(10 ** rng.uniform(0, 3, len(keep))).astype(np.int64)
    values, indptr = _cells(rng, size, stat_level, table)
    return GroupMeasurements(
        level=where,
        table=table,
        region=region.astype(np.int32),
        iteration=iteration.astype(np.int32),
        stat_level=stat_level,
        stage1=None,
        indptr=indptr,
        values=values + _noise(rng, law(kind, cost), len(values)),
        laws={"cells": law(kind, cost)},
        costs={"cells": cost},
        source=source,
    )


def plan_of(measurements: Sequence[GroupMeasurements], product: str = "safetab-p") -> ReleasePlan:
    """The plan that such measurements belong to, one part a level and table."""
    parts = []
    for found in measurements:
        queries = tuple(
            QueryPlan(found.table if name == "cells" else name, found.level.name, found.laws[name], cost)
            for name, cost in found.costs.items()
        )
        disjoint = ((0,), (1, 2)) if len(queries) == 3 else ()
        parts.append(PartPlan(f"{found.level.name}.{found.table}", queries, disjoint))
    total = sum((part.cost for part in parts), Fraction(0))
    unit = ProtectedUnit.PERSON if product == "safetab-p" else ProtectedUnit.HOUSEHOLD
    losses: Mapping[Neighbors, Fraction] = {Neighbors.REPLACE: 2 * total}
    return ReleasePlan(product, Definition.ZCDP, Neighbors.ADD_REMOVE, unit, losses, tuple(parts), {})


def _cells(
    rng: np.random.Generator, size: NDArray[np.int64], stat_level: NDArray[np.int8], table: str
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    sizes = np.array(TABLES[table].sizes, np.int64)[stat_level]
    indptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    values = np.repeat(size // sizes, sizes)
    values[indptr[:-1]] += size % sizes
    return values, indptr


def _noise(rng: np.random.Generator, noise: NoiseLaw, number: int) -> NDArray[np.int64]:
    spread = float(noise.parameter) ** (0.5 if noise.kind == "gaussian" else 1.0)
    return np.rint(rng.normal(0, spread, number)).astype(np.int64)
