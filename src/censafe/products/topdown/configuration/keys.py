"""The keys of a TopDown configuration, and what ``--set`` changes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from censafe.errors import ConfigError
from censafe.geography.geocodes import ALPHABETS
from censafe.model.topdown.choices import MOST_PERSONS, Choices
from censafe.products.configuration.document import ConfigField, ConfigFields, Document, open_document
from censafe.products.configuration.source import listed, locate

PRODUCT: Final = "topdown"
LOSSES: Final = ("rho", "epsilon")
_READERS: Final = ("histogram", "pl94", "ipums-1940", "cef", "records")
OWN: Final = "own"
"""The reader of files that the table ``[read]`` describes; no word of a configuration."""
PRODUCTION_SPINE: Final = "production"
"""The word of a spine that the data decide; it is not a spine itself."""
CHOICES: Final = {
    "spine": ("standard", "aian", "optimized", "prim", PRODUCTION_SPINE),
    "noisy_measurements": ("stored", "lazy"),
    "passes": ("production", "one", "outer"),
    "information": ("level", "lower"),
    "infeasible": ("repair", "stop"),
    "leaves": ("fractional", "all_positive"),
    "detailed_cost": ("fraction", "flat"),
    "hispanic9": ("not_hispanic", "hispanic"),
    "joint_first": ("units", "persons"),
}
"""Words of the choices of measuring and estimating, the usual one first."""
_MOST_GEOUNITS: Final = 1_000_000
# Keys below which numbers stand, and how many names lead to one.
_DEPTHS: Final = {"level_shares": 2, "query_shares": 3}
_FIXED: Final = (
    "title",
    "levels",
    "schemas",
    "stacks",
    "invariants",
    "published",
    "outputs",
    "microdata",
    "tables",
    "read",
)
FIELDS: Final = ConfigFields(
    (
        ConfigField("root", "text"),
        ConfigField("reader", "word", default=_READERS[0], allowed=_READERS),
        ConfigField("geocodes", "word", default="digits", allowed=tuple(ALPHABETS)),
        *(ConfigField(noun, "word", default=words[0], allowed=words) for noun, words in CHOICES.items()),
        ConfigField("bypass", "flag"),
        ConfigField("bypass_cutoff", "whole", default=Choices.bypass_cutoff, most=_MOST_GEOUNITS),
        ConfigField("fanout_cutoff", "whole", default=Choices.fanout_cutoff, most=_MOST_GEOUNITS),
        ConfigField("joint", "flag", default=Choices.joint),
        ConfigField(
            "joint_max_household_size",
            "whole",
            default=Choices.joint_max_household_size,
            least=1,
            most=MOST_PERSONS,
        ),
        *(ConfigField(noun, "fixed") for noun in _FIXED),
        ConfigField("measure", "list"),
        *(ConfigField(noun, "number") for noun in (*LOSSES, *_DEPTHS)),
        ConfigField("histograms", "text"),
    )
)
_HISTOGRAM_TEXTS: Final = ("schema", "exact_totals", "measurements")


def read_document(source: str | Path, overrides: Mapping[str, str]) -> Document:
    """Find and read a configuration and apply overrides; its rules are not checked here."""
    path, origin = locate(PRODUCT, source)
    if path.suffix.lower() != ".toml":
        raise ConfigError(
            f"{path}: a configuration of topdown is TOML; 'censafe configs show pl94-us' prints one"
        )
    return open_document(path, origin, FIELDS, overrides, _override, _unquoted)


def _unquoted(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Flags and whole numbers may stand in quotes, as ``--set`` has them."""
    kinds = {noun: field for noun, field in FIELDS.by_noun.items() if field.kind in ("flag", "whole")}
    return {
        key: kinds[key].parse(value) if key in kinds and isinstance(value, str) else value
        for key, value in raw.items()
    }


def _override(values: dict[str, Any], key: str, text: str) -> None:
    """Put the value of one ``--set key=text`` into the raw values."""
    head, *inner = key.split(".")
    field = FIELDS.by_noun.get(head)
    if field is None:
        raise ConfigError(f"--set {key}: there is no key {head!r}.{FIELDS.hint(head)}")
    if field.kind == "fixed":
        raise ConfigError(f"--set {key}: {head} is changed in the file, not by --set")
    if head in LOSSES:
        _override_loss(values, head, inner, key, field.parse(text))
    elif head in _DEPTHS:
        if len(inner) != _DEPTHS[head]:
            example = "persons.County" if head == "level_shares" else "persons.County.total"
            raise ConfigError(f"--set {key}: name one share, such as {head}.{example}")
        _put(values, (head, *inner), field.parse(text))
    elif head == "histograms":
        if len(inner) != 2 or inner[1] not in _HISTOGRAM_TEXTS:
            raise ConfigError(
                f"--set {key}: say --set histograms.NAME.schema=..., histograms.NAME.exact_totals=... or "
                "histograms.NAME.measurements=..."
            )
        _put(values, (head, *inner), field.parse(text))
    elif inner:
        raise ConfigError(f"--set {key}: {head} has no keys below it; say --set {head}=VALUE")
    else:
        values[head] = field.parse(text)


def _override_loss(values: dict[str, Any], head: str, inner: list[str], key: str, loss: object) -> None:
    """A loss for one histogram, or for the only one."""
    if len(inner) > 1:
        raise ConfigError(f"--set {key}: {head} has one number a histogram, such as {head}.persons")
    if not inner and isinstance(values.get(head), dict):
        names = [f"{head}.{name}" for name in values[head]]
        if len(names) != 1:
            raise ConfigError(f"--set {key}: every histogram has its own; say --set {listed(names)}")
        inner = list(values[head])
    _put(values, (head, *inner), loss)


def _put(values: dict[str, Any], path: tuple[str, ...], value: object) -> None:
    holder = values
    for name in path[:-1]:
        if not isinstance(holder.get(name), dict):
            holder[name] = {}
        holder = holder[name]
    holder[path[-1]] = value
