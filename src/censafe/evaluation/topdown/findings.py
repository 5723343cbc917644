"""What the study of the 1940 census found, looked for in a sweep over another population."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from censafe.evaluation.counts.frames import LossMode
from censafe.evaluation.shipped import shipped_rows

_Rows = Sequence[Mapping[str, Any]]
_POPULATION: Final = "another population: its areas have other sizes and other groups"
_FAR: Final = 0.6
_KEY: Final = ("method", "stat", "level", "metric", "index")
_SOLVER: Final = "another solver: optimal fits with certificates in place of a solver with tolerances"


@dataclass(frozen=True)
class StudyFinding:
    """One statement of the study."""

    finding: str
    published: str
    measured: str
    verdict: str
    why: str


@dataclass(frozen=True, eq=False)
class Sweep:
    """What the statements are looked for in.

    Args:
        full: rows of the full table.
        bias: rows of the bias by homogeneity.
        children: mean number of lowest geounits in a geounit of that level; NaN where it is not known.
    """

    full: _Rows
    bias: _Rows
    levels: Sequence[str]
    exact: Sequence[str]
    middle: str
    children: float = math.nan

    def value(self, stat: str, level: str, metric: str, mode: LossMode = "corrected") -> dict[float, float]:
        """A metric of TopDown by epsilon, all answers of the domain counted; as_published by the arithmetic of the study."""
        found = {}
        for row in self.full:
            key = row["method"], row["mode"], row["stat"], row["level"]
            if key == ("topdown", mode, stat, level):
                found[row["epsilon"]] = math.nan if row[metric] is None else float(row[metric])
        return dict(sorted(found.items()))


def findings(sweep: Sweep) -> tuple[StudyFinding, ...]:
    """Every statement of the study with what this sweep says about it."""
    checks: tuple[Callable[[Sweep], StudyFinding], ...] = (
        _inverse, _county_district, _alike, _exact, _far_below, _sign, _shrinking,
    )  # fmt: skip
    return tuple(check(sweep) for check in checks)


@functools.cache
def published_values(stat: str, level: str, metric: str) -> dict[float, float]:
    """Published values of the study by epsilon.

    Example:
        >>> published_values("TC", "County", "median_ae")[1.0]
        24.0
    """
    key = ("topdown", stat, level, metric, "")
    return {
        float(row["setting"]): float(row["value"])
        for row in shipped_rows("petti_flaxman.csv")
        if row["setting"] and tuple(row[name] for name in _KEY) == key
    }


def _inverse(sweep: Sweep) -> StudyFinding:
    parts, slopes = [], []
    for stat, level in (("TC", sweep.middle), ("TC", sweep.levels[-1]), ("SC", sweep.levels[-1])):
        slope = _slope({k: v for k, v in sweep.value(stat, level, "mean_ae").items() if k >= 0.5})
        parts.append(f"{stat} {level} {slope:.2f}")
        slopes.append(slope)
    known = [slope for slope in slopes if math.isfinite(slope)]
    good = bool(known) and all(-1.25 <= slope <= -0.75 for slope in known)
    return StudyFinding(
        "Error is close to the inverse of epsilon, from epsilon 0.5 on.",
        f"slope of log median error on log epsilon: TC County {_slope(_from_half('TC', 'County')):.2f}, "
        f"TC district {_slope(_from_half('TC', 'Enumdist')):.2f}, SC district {_slope(_from_half('SC', 'Enumdist')):.2f}",
        f"slope of log mean error on log epsilon: {', '.join(parts)}",
        _verdict(good, known),
        f"{_POPULATION}; many small cells hold the error of stratified counts down where noise is large",
    )


def _from_half(stat: str, level: str) -> dict[float, float]:
    return {key: value for key, value in published_values(stat, level, "median_ae").items() if key >= 0.5}


def _slope(values: Mapping[float, float]) -> float:
    """Slope of log value on log key; NaN with fewer than two values above 0."""
    points = [(math.log(key), math.log(value)) for key, value in values.items() if value > 0]
    if len(points) < 2:
        return math.nan
    x, y = np.array(points).T
    return float(np.polyfit(x, y, 1)[0])


def _county_district(sweep: Sweep) -> StudyFinding:
    wide, low = (sweep.value("TC", level, "median_ae") for level in (sweep.middle, sweep.levels[-1]))
    ratio = _mean_ratio(wide, low)
    own, other = (published_values("TC", level, "median_ae") for level in ("County", "Enumdist"))
    return StudyFinding(
        "Totals of counties are off by about 1.6 times as much as those of districts.",
        f"mean ratio of median errors {_mean_ratio(own, other):.2f}, with 43 districts in a county",
        f"{sweep.middle} to {sweep.levels[-1]}: {ratio:.2f}, with {sweep.children:.1f} {sweep.levels[-1]} in a {sweep.middle}",
        _verdict(1.2 <= ratio <= 2.2, [ratio]),
        f"{_POPULATION}; the ratio grows with the number of districts in a county, because those of a county help each other",
    )


def _mean_ratio(top: Mapping[float, float], bottom: Mapping[float, float]) -> float:
    ratios = [top[key] / bottom[key] for key in top if bottom.get(key, 0) > 0 and top[key] > 0]
    return float(np.mean(ratios)) if ratios else math.nan


def _alike(sweep: Sweep) -> StudyFinding:
    by_level = {
        level: sweep.value("SC", level, "median_ae", "as_published")
        for level in sweep.levels
        if level != sweep.levels[0]
    }
    spread = []
    for epsilon in next(iter(by_level.values())):
        values = [max(values[epsilon], 0.5) for values in by_level.values()]
        spread.append(max(values) / min(values))
    largest = max(spread) if spread else math.nan
    first = min(next(iter(by_level.values()), {0.0: 0.0}))
    shown = ", ".join(f"{level} {values[first]:.0f}" for level, values in by_level.items())
    return StudyFinding(
        "Errors of stratified counts are alike at all levels.",
        "median error at epsilon 0.25: state 18, county 16, district 17",
        f"median error at epsilon {first:g}: {shown}; largest ratio of two levels {largest:.1f}",
        _verdict(largest <= 2.0, [largest]),
        f"{_POPULATION}; small areas have many cells that are empty or nearly so, whose errors are smaller",
    )


def _exact(sweep: Sweep) -> StudyFinding:
    errors = [max(sweep.value("TC", level, "max_ae").values(), default=math.nan) for level in sweep.exact]
    return StudyFinding(
        "State totals are published exactly.",
        "error 0 at every epsilon",
        f"largest error of totals of {', '.join(sweep.exact) or 'no level'}: {max(errors, default=math.nan):g}",
        _verdict(bool(errors) and max(errors) == 0, errors),
        "none: totals are invariants of the configuration",
    )


def _far_below(sweep: Sweep) -> StudyFinding:
    """Far below: at most three fifths of epsilon; the study's own largest share is 0.56, at epsilon 0.25."""
    parts: list[str] = []
    shares: dict[float, float] = {}
    for stat, level in (("TC", sweep.middle), ("TC", sweep.levels[-1]), ("SC", sweep.levels[-1])):
        values = {
            key: one
            for key, one in sweep.value(stat, level, "epl", "as_published").items()
            if math.isfinite(one)
        }
        for key, value in values.items():
            shares[key] = max(shares.get(key, 0.0), value / key)
        if values:
            shown = {
                key: values[key] for key in sorted({min(values), *(k for k in values if k in (1.0, 8.0))})
            }
            numbers = ", ".join(f"{value:.3f} at {key:g}" for key, value in shown.items())
            parts.append(f"{stat} {level} {numbers}")
    known = published_values("SC", "Enumdist", "epl_max_abs")
    above = [key for key, share in shares.items() if share > _FAR]
    from_here = [key for key in sorted(shares) if not above or key > max(above)]
    verdict = "open" if not shares else "yes" if not above else "partly" if from_here else "no"
    start = f"; holds from epsilon {from_here[0]:g} on" if verdict == "partly" else ""
    return StudyFinding(
        "Empirical privacy loss is far below epsilon.",
        f"SC district {known[0.25]} at epsilon 0.25, {known[1.0]} at 1, {known[8.0]} at 8",
        f"{'; '.join(parts) or 'none'}{start}",
        verdict,
        "smaller areas have cells of one or two persons that become 0, which makes residuals of -1 frequent; the maximum is biased "
        "upwards, and no bound on privacy loss",
    )


def _ends(sweep: Sweep) -> dict[float, tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """By budget the most diverse and the most homogeneous class of at least ten areas, at the lowest level."""
    found = {}
    rows = [row for row in sweep.bias if row["level"] == sweep.levels[-1] and row["mode"] == "as_published"]
    for setting in sorted({row["setting"] for row in rows}):
        own = [row for row in rows if row["setting"] == setting and row["n_areas"] >= 10]
        own = sorted((row for row in own if row["index"] < row["cells"]), key=lambda row: row["index"])
        if len(own) >= 2:
            found[setting] = (own[0], own[-1])
    return found


def _sign(sweep: Sweep) -> StudyFinding:
    ends = _ends(sweep)
    good = [low["bias"] < 0 < high["bias"] for low, high in ends.values()]
    first = next(iter(ends), None)
    measured = "no two classes of ten areas"
    if first is not None:
        low, high = ends[first]
        measured = (
            f"{sweep.levels[-1]} at epsilon {first:g}: {low['bias']:.1f} (+-{2 * low['se']:.1f}) at index {low['index']}, "
            f"{high['bias']:.1f} (+-{2 * high['se']:.1f}) at index {high['index']}"
        )
    return StudyFinding(
        "Diverse areas lose people, homogeneous ones gain.",
        "district at epsilon 0.25: -52.6 at index 0, 8.7 at index 22",
        measured,
        _verdict(all(good), good),
        f"{_POPULATION}; the bias comes from rounding at zero, so it needs many cells that are nearly empty",
    )


def _shrinking(sweep: Sweep) -> StudyFinding:
    ends = _ends(sweep)
    gaps = {key: high["bias"] - low["bias"] for key, (low, high) in ends.items()}
    values = list(gaps.values())
    good = len(values) > 1 and values[-1] < values[0] and _slope(gaps) < 0
    shown = ", ".join(f"{value:.1f} ({key:g})" for key, value in gaps.items())
    return StudyFinding(
        "The bias shrinks as epsilon grows.",
        "district, index 22 less index 0: 61.3 (0.25), 22.5 (1), 3.8 (8)",
        f"homogeneous less diverse: {shown or 'no two classes of ten areas'}",
        _verdict(good, values),
        f"{_POPULATION}; {_SOLVER}",
    )


def _verdict(good: bool, known: Sequence[float]) -> str:
    if not known or any(math.isnan(value) for value in known):
        return "open"
    return "yes" if good else "no"
