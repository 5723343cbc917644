"""What the study of the 1940 census found, looked for in a sweep over another population."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from censafe.evaluation.counts.frames import LossMode
from censafe.evaluation.shipped import shipped_document, shipped_rows

_Rows = Sequence[Mapping[str, Any]]
_FAR: Final = 0.6
_KEY: Final = ("method", "stat", "level", "metric", "index")


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
    checks: Mapping[str, Callable[[Sweep], _Check]] = {
        "inverse": _inverse,
        "county-district": _county_district,
        "alike": _alike,
        "exact": _exact,
        "far-below": _far_below,
        "sign": _sign,
        "shrinking": _shrinking,
    }
    texts = shipped_document("findings.toml")
    found = []
    for name, check in checks.items():
        text = texts[name]
        measured, verdict, numbers = check(sweep)
        published = text["published"].format(**numbers)
        found.append(StudyFinding(text["finding"], published, measured, verdict, text["why"]))
    return tuple(found)


_Check = tuple[str, str, Mapping[str, float]]
"""What was measured, the verdict, and numbers of the study to compare it with."""


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


def _inverse(sweep: Sweep) -> _Check:
    parts, slopes = [], []
    for stat, level in (("TC", sweep.middle), ("TC", sweep.levels[-1]), ("SC", sweep.levels[-1])):
        slope = _slope({k: v for k, v in sweep.value(stat, level, "mean_ae").items() if k >= 0.5})
        parts.append(f"{stat} {level} {slope:.2f}")
        slopes.append(slope)
    known = [slope for slope in slopes if math.isfinite(slope)]
    good = bool(known) and all(-1.25 <= slope <= -0.75 for slope in known)
    places = {"county": ("TC", "County"), "district": ("TC", "Enumdist"), "stratified": ("SC", "Enumdist")}
    published = {
        name: _slope({k: v for k, v in published_values(*place, "median_ae").items() if k >= 0.5})
        for name, place in places.items()
    }
    measured = f"slope of log mean error on log epsilon: {', '.join(parts)}"
    return measured, _verdict(good, known), published


def _slope(values: Mapping[float, float]) -> float:
    """Slope of log value on log key; NaN with fewer than two values above 0."""
    points = [(math.log(key), math.log(value)) for key, value in values.items() if value > 0]
    if len(points) < 2:
        return math.nan
    x, y = np.array(points).T
    return float(np.polyfit(x, y, 1)[0])


def _county_district(sweep: Sweep) -> _Check:
    wide, low = (sweep.value("TC", level, "median_ae") for level in (sweep.middle, sweep.levels[-1]))
    ratio = _mean_ratio(wide, low)
    own, other = (published_values("TC", level, "median_ae") for level in ("County", "Enumdist"))
    measured = f"{sweep.middle} to {sweep.levels[-1]}: {ratio:.2f}, with {sweep.children:.1f} {sweep.levels[-1]} in a {sweep.middle}"
    return measured, _verdict(1.2 <= ratio <= 2.2, [ratio]), {"ratio": _mean_ratio(own, other)}


def _mean_ratio(top: Mapping[float, float], bottom: Mapping[float, float]) -> float:
    ratios = [top[key] / bottom[key] for key in top if bottom.get(key, 0) > 0 and top[key] > 0]
    return float(np.mean(ratios)) if ratios else math.nan


def _alike(sweep: Sweep) -> _Check:
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
    measured = f"median error at epsilon {first:g}: {shown}; largest ratio of two levels {largest:.1f}"
    return measured, _verdict(largest <= 2.0, [largest]), {}


def _exact(sweep: Sweep) -> _Check:
    errors = [max(sweep.value("TC", level, "max_ae").values(), default=math.nan) for level in sweep.exact]
    measured = f"largest error of totals of {', '.join(sweep.exact) or 'no level'}: {max(errors, default=math.nan):g}"
    return measured, _verdict(bool(errors) and max(errors) == 0, errors), {}


def _far_below(sweep: Sweep) -> _Check:
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
    published = {"quarter": known[0.25], "one": known[1.0], "eight": known[8.0]}
    return f"{'; '.join(parts) or 'none'}{start}", verdict, published


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


def _sign(sweep: Sweep) -> _Check:
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
    return measured, _verdict(all(good), good), {}


def _shrinking(sweep: Sweep) -> _Check:
    ends = _ends(sweep)
    gaps = {key: high["bias"] - low["bias"] for key, (low, high) in ends.items()}
    values = list(gaps.values())
    good = len(values) > 1 and values[-1] < values[0] and _slope(gaps) < 0
    shown = ", ".join(f"{value:.1f} ({key:g})" for key, value in gaps.items())
    measured = f"homogeneous less diverse: {shown or 'no two classes of ten areas'}"
    return measured, _verdict(good, values), {}


def _verdict(good: bool, known: Sequence[float]) -> str:
    if not known or any(math.isnan(value) for value in known):
        return "open"
    return "yes" if good else "no"
