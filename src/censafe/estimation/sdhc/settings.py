"""Which S-DHC tables are ratios, cells and sums, and the settings of their estimates from texts or JSON values, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from censafe.errors import ConfigError
from censafe.model.sdhc import (
    Conventions,
    EstimateSettings,
    Interval,
    Marginals,
    Method,
    Model,
    Quoting,
    Tenure,
)


@dataclass(frozen=True)
class CountRules:
    """A table of counts.

    Args:
        margins: numbers of the sums, each with the basis cells that it adds up, in the order of publication.
    """

    table: str
    margins: Mapping[int, tuple[int, ...]] = field(hash=False)

    @property
    def basis(self) -> tuple[int, ...]:
        """Numbers of the measured cells, increasing."""
        return tuple(sorted({cell for cells in self.margins.values() for cell in cells}))


@dataclass(frozen=True)
class RatioRules:
    """A table of ratios with a total and two parts.

    Args:
        form: ``shared`` when all three ratios have the same denominator, ``apart`` when every part has its own.
    """

    table: str
    numerator: str
    denominator: str
    lowest: float
    form: Literal["shared", "apart"]
    total: int = 1
    parts: tuple[int, int] = (2, 3)
    shared_cell: int = 1

    @property
    def denominators(self) -> tuple[int, ...]:
        """Numbers of the measured cells of the denominator."""
        return (self.shared_cell,) if self.form == "shared" else self.parts


IGNORED_KEYS = ("nm_dir", "local")
"""Keys of the Bureau's files that name folders or nothing; they change no estimate."""

_CHOICES: Mapping[str, tuple[str, ...]] = {
    "interval": get_args(Interval),
    "model": get_args(Model),
    "marginals": get_args(Marginals),
    "ph8": get_args(Tenure),
    "method": get_args(Method),
    "conventions": get_args(Conventions),
    "quoting": get_args(Quoting),
}
_NUMBERS = ("alpha", "trun")
_INTEGERS = ("iteration_num", "seed")
_REFERENCE = {
    "interval": "equal-tailed",
    "model": "continuous",
    "marginals": "sum-of-rounded",
    "ph8": "separate",
    "quoting": "names-and-text",
}


def parse_estimate_settings(
    values: Mapping[str, Any], start: EstimateSettings | None = None
) -> EstimateSettings:
    """Settings from texts (``--set``) or from the values of a JSON file.

    Example:
        >>> settings = parse_estimate_settings({"alpha": "0.025", "interval": "shortest"})
        >>> settings.alpha, settings.interval, settings.trun
        (0.025, 'shortest', 10.0)
    """
    parsed: dict[str, Any] = {}
    problems = []
    for key, value in values.items():
        try:
            parsed[key] = _value(key, value)
        except ConfigError as error:
            problems.append(str(error))
    settings = replace(start or EstimateSettings(), **({} if problems else parsed))
    problems += _limits(settings) + _contradictions(settings, parsed)
    if problems:
        raise ConfigError("settings of the estimates: " + "; ".join(problems))
    if settings.conventions != "reference":
        return settings
    return replace(settings, **_REFERENCE)  # type: ignore[arg-type]


def _value(key: str, value: Any) -> Any:
    if key in _CHOICES:
        if value not in _CHOICES[key]:
            raise ConfigError(f"{key} is {value!r}; allowed are {', '.join(_CHOICES[key])}")
        return value
    if key in _NUMBERS or key in _INTEGERS:
        return _number(key, value)
    if key == "exclude_levels":
        names = value.split(",") if isinstance(value, str) else value
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ConfigError("exclude_levels is not a list of types of regions")
        return tuple(name.strip().upper() for name in names if name.strip())
    known = (*_NUMBERS, "exclude_levels", *_CHOICES, *_INTEGERS)
    raise ConfigError(f"{key} is not a setting; there are {', '.join(known)}")


def _number(key: str, value: Any) -> float | int:
    try:
        number = float("nan") if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if key in _NUMBERS and abs(number) < float("inf"):
        return number
    if key in _INTEGERS and abs(number) < float("inf") and number == int(number):
        return int(number)
    raise ConfigError(f"{key} is {value!r}; a {'whole number' if key in _INTEGERS else 'number'} is needed")


def _limits(settings: EstimateSettings) -> list[str]:
    problems = []
    if not 0 < settings.alpha < 0.5:
        problems.append(f"alpha is {settings.alpha:g}; it is above 0 and below 0.5, 0.05 for 90% intervals")
    if not settings.trun > 2:
        problems.append(f"trun is {settings.trun:g}; the largest ratio is above 2, the least family size")
    if settings.iteration_num < 1:
        problems.append(f"iteration_num is {settings.iteration_num}; it is 1 or more")
    if settings.seed < 0:
        problems.append(f"seed is {settings.seed}; it is 0 or more")
    return problems


def _contradictions(settings: EstimateSettings, chosen: Mapping[str, Any]) -> list[str]:
    if settings.conventions != "reference":
        both = settings.ph8 == "joint" and settings.model == "discrete"
        return ["ph8 = joint has no exact law over whole numbers; leave out model = discrete"] if both else []
    return [
        f"conventions = reference has {key} = {own}, not {chosen[key]}"
        for key, own in _REFERENCE.items()
        if chosen.get(key, own) != own
    ]
