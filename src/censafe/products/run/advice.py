"""What an operator reads when a run is done: how sure a main number is, and which command comes next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from censafe.model import QueryPlan, ReleasePlan
from censafe.privacy.loss.margins import exact_margin


@dataclass(frozen=True)
class RunAdvice:
    """What a product says at the end of a run.

    Args:
        tables: measured tables or queries, the main one first; the first that the plan has is shown.
        caveat: what else is to be known of the error of published counts, with ``{out}`` for the run folder.
        commands: what to do next with a release, each a command with ``{out}`` and its purpose.
    """

    tables: Sequence[str]
    levels: Sequence[str]
    words: str
    caveat: str
    commands: Sequence[tuple[str, str]]


def accuracy_text(plan: ReleasePlan, outlook: RunAdvice, confidence: Fraction, out: Path) -> str:
    """A typical margin of error, that of the noise of one main number."""
    query = next(_main_queries(plan, outlook), None)
    if query is None:
        return ""
    words = outlook.words.format(table=query.table, level=query.level)
    margin = exact_margin(query.law, confidence)
    return f"{words}: noise within \N{PLUS-MINUS SIGN}{margin:,} ({float(100 * confidence):g}% confidence). {outlook.caveat.format(out=out)}"


def next_steps(outlook: RunAdvice, out: Path, *, rehearsal: bool) -> tuple[str, ...]:
    """Commands that come next, each with its purpose."""
    steps = [f"open {out / 'certificate.html'}: what is protected, and the error of every table"]
    steps += [f"{command.format(out=out)}: {purpose}" for command, purpose in outlook.commands]
    if rehearsal:
        steps.append("the same command without --test-key, in a new folder: the release itself")
    return tuple(steps)


def _main_queries(plan: ReleasePlan, outlook: RunAdvice) -> Iterator[QueryPlan]:
    """Queries of the main tables, those of the wanted levels first."""
    queries = [query for part in plan.parts for query in part.queries]
    for table in outlook.tables:
        own = [query for query in queries if query.table == table]
        yield from (query for level in outlook.levels for query in own if query.level == level)
        yield from own[:1]
