"""Expected seconds, memory and disk of a run, from rates that the benchmarks measured on two cores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Effort", "Rate", "effort_of", "effort_record", "effort_sentences"]


@dataclass(frozen=True)
class Rate:
    """How a run of a product grows with its size.

    Args:
        counted: what the size counts, in the plural.
        typical: size of the nation.
        start_seconds: whatever the size.
        seconds_per_million: of what is counted.
        start_gib: memory whatever the size.
        gib_per_million: more memory.
        benchmark: that measured it.
    """

    counted: str
    typical: int
    start_seconds: float
    seconds_per_million: float
    start_gib: float
    gib_per_million: float
    benchmark: str


@dataclass(frozen=True)
class Effort:
    """What a run of one size is expected to take.

    Args:
        size: how many of what the rate counts.
        rate: of the product.
        seconds: on two cores.
        gib: largest memory.
        answers: measured answers, by part of the run; empty where the data decide.
        stored_gib: of the noisy measurements at 8 bytes an answer; None where they are small or not counted.
    """

    size: int
    rate: Rate
    seconds: float
    gib: float
    answers: Mapping[str, int] = field(default_factory=dict)
    stored_gib: float | None = None


def effort_of(rate: Rate, size: int | None, answers: Mapping[str, int] | None = None) -> Effort:
    """Scale a rate to a size.

    Args:
        rate: of the product.
        size: None for the nation's.
        answers: measured answers by part of the run, where the plan tells.

    Example:
        >>> rate = Rate("persons", 331_000_000, 3.0, 0.9, 0.3, 0.005, "benchmarks/phsafe_scale.py")
        >>> round(effort_of(rate, 10_000_000).seconds, 1)
        12.0
    """
    number = rate.typical if size is None else size
    millions = number / 1e6
    return Effort(
        number,
        rate,
        rate.start_seconds + rate.seconds_per_million * millions,
        rate.start_gib + rate.gib_per_million * millions,
        answers or {},
        8 * sum(answers.values()) / 2**30 if answers else None,
    )


def effort_sentences(effort: Effort) -> tuple[str, ...]:
    """One sentence on time and memory, one on the answers where they are known.

    Example:
        >>> rate = Rate("persons", 1_000_000, 3.0, 0.9, 0.3, 0.1, "benchmarks/x.py")
        >>> effort_sentences(effort_of(rate, None))
        ('Expected for 1,000,000 persons: about 4 s and 0.4 GiB on two cores (rates of benchmarks/x.py).',)
    """
    lines = [
        f"Expected for {effort.size:,} {effort.rate.counted}: about {_duration(effort.seconds)} and "
        f"{effort.gib:.1f} GiB on two cores (rates of {effort.rate.benchmark})."
    ]
    if effort.stored_gib is not None:
        lines.append(
            f"Measured answers: {sum(effort.answers.values()):,}, stored {effort.stored_gib:,.1f} GiB at 8 bytes each "
            "before compression; noisy_measurements=lazy stores none."
        )
    return tuple(lines)


def effort_record(effort: Effort) -> dict[str, Any]:
    """As plain values for JSON."""
    return {
        "counted": effort.rate.counted,
        "size": effort.size,
        "seconds": effort.seconds,
        "memory_gib": effort.gib,
        "benchmark": effort.rate.benchmark,
        "answers": dict(effort.answers),
        "stored_gib": effort.stored_gib,
    }


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
