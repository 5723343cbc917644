"""However the histograms of a plan are split into runs, and in whatever order they are charged, a ledger adds up the same and keeps its cap."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from censafe.errors import OverspendError
from censafe.model import ReleasePlan
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.plan import plan_release
from support.ledgers import spend, stated

SETTINGS = {
    "pl94-us": [
        {"spine": spine, "root": root} for spine in ("standard", "optimized") for root in ("US", "State")
    ],
    "pl94-pr": [{}, {"spine": "standard", "bypass": "true"}],
    "dhc-us": [{"bypass": bypass, "root": root} for bypass in ("true", "false") for root in ("US", "State")],
    "dhc-pr": [{}],
}
LOSSES = st.fractions(min_value=Fraction(1, 1000), max_value=20, max_denominator=10_000)


@st.composite
def splits(draw: st.DrawFn) -> tuple[ReleasePlan, list[ReleasePlan]]:
    """A plan at any budget, and runs that share it out: by stacks of histograms as configurations, or by any sets of its parts."""
    name = draw(st.sampled_from(sorted(SETTINGS)))
    chosen = dict(draw(st.sampled_from(SETTINGS[name])))
    config = load_config(name)
    chosen |= {f"rho.{one.name}": str(draw(LOSSES)) for one in config.histograms if draw(st.booleans())}
    whole = plan_release(load_config(name, chosen))
    if draw(st.booleans()):
        measures = [",".join(one.name for one in stack.histograms) for stack in config.stacks]
        runs = [plan_release(load_config(name, chosen | {"measure": one})) for one in measures]
    else:
        run_of = [draw(st.integers(0, 3)) for _ in whole.parts]
        runs = [
            replace(
                whole,
                parts=tuple(part for part, run in zip(whole.parts, run_of, strict=True) if run == number),
            )
            for number in sorted(set(run_of))
        ]
    return whole, draw(st.permutations(runs))


@settings(max_examples=7)
@given(splits())
def test_the_sum_of_a_ledger_is_the_same_whatever_the_split(
    split: tuple[ReleasePlan, list[ReleasePlan]],
) -> None:
    whole, runs = split
    assert sum((run.total for run in runs), Fraction(0)) == whole.total
    with TemporaryDirectory() as folder:
        one, several = Path(folder) / "one.jsonl", Path(folder) / "several.jsonl"
        spend(one, whole)
        for number, run in enumerate(runs):
            spend(several, run, run=f"{number:016x}", spend_more=True)
        assert stated(several) == stated(one) == [whole.total]


@settings(max_examples=7)
@given(
    splits(),
    st.fractions(min_value=Fraction(1, 2), max_value=Fraction(3, 2), max_denominator=100),
    st.booleans(),
)
def test_no_split_spends_more_than_the_cap(
    split: tuple[ReleasePlan, list[ReleasePlan]], share: Fraction, again: bool
) -> None:
    """The cap binds all runs, whether it is named once or each time, and lets the last one through exactly where one plan would pass."""
    whole, runs = split
    cap, spent = whole.total * share, Fraction(0)
    with TemporaryDirectory() as folder:
        ledger = Path(folder) / "ledger.jsonl"
        for number, run in enumerate(runs):
            named = cap if again or not number else None
            if spent + run.total > cap:
                with pytest.raises(OverspendError):
                    spend(ledger, run, run=f"{number:016x}", spend_more=True, cap=named)
                if number == 0:
                    break
            else:
                spend(ledger, run, run=f"{number:016x}", spend_more=True, cap=named)
                spent += run.total
        assert stated(ledger) == ([spent] if spent else [])
        assert spent <= cap
        assert (spent == whole.total) == (cap >= whole.total)
