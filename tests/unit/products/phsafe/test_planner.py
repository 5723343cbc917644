"""Margins of error turned into budgets."""

from fractions import Fraction

import pytest

from censafe.errors import ConfigError
from censafe.privacy.loss.margins import paper_margin
from censafe.products.phsafe.config import load_phsafe_config
from censafe.products.phsafe.definitions import SENSITIVITIES, noise_law
from censafe.products.phsafe.planner import budgets_for_margins


@pytest.mark.parametrize("sensitivity", SENSITIVITIES)
@pytest.mark.parametrize("confidence", [Fraction(9, 10), Fraction(19, 20)])
@pytest.mark.parametrize("table", ["PH2", "PH8_denom"])
def test_the_budget_reaches_the_margin_and_little_more(
    sensitivity: str, confidence: Fraction, table: str
) -> None:
    config = load_phsafe_config("sdhc-us", {"sensitivity": sensitivity})
    budgets = budgets_for_margins(config, {f"{table}.usa_*": Fraction(123)}, confidence)
    ((key, rho),) = budgets.items()
    assert key == f"budget.{table}.usa_*"
    law = noise_law(config.definition, config.sensitivity, config.tau.get(table), Fraction(rho))
    assert 122.99 < paper_margin(law, confidence) <= 123


def test_the_papers_targets_give_the_papers_budgets() -> None:
    config = load_phsafe_config("sdhc-us")
    margins = {f"{table}.{level}": target for (table, level), target in config.moe_targets.items()}
    for key, rho in budgets_for_margins(config, margins).items():
        _, table, level = key.split(".")
        places = config.paper_places(table, level)
        assert places is not None
        assert abs(Fraction(rho) - config.budgets[table, level]) <= Fraction(1, 10**places)


def test_a_table_alone_means_all_its_levels() -> None:
    assert (
        len(budgets_for_margins(load_phsafe_config("sdhc-us"), {"PH3": Fraction(50), "PH6": Fraction(9)}))
        == 8
    )


@pytest.mark.parametrize(
    ("overrides", "key", "margin", "confidence", "message"),
    [
        ({}, "PH9", 1, "0.9", "no measured table 'PH9'"),
        ({}, "PH8_num", 1, "0.9", "no measured table 'PH8_num'"),
        ({}, "PH2.usa_A-G", 1, "0.9", "PH2 has no level 'usa_A-G'"),
        ({}, "PH2", 0, "0.9", "margin of error of 0 has no budget"),
        ({}, "PH2", 1, "0.8", "confidence 0.9 or 0.95, not 0.8"),
        ({"privacy_defn": "puredp"}, "PH2", 1, "0.9", "under privacy_definition zcdp only"),
    ],
)
def test_what_has_no_budget(
    overrides: dict[str, str], key: str, margin: int, confidence: str, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        budgets_for_margins(
            load_phsafe_config("sdhc-us", overrides), {key: Fraction(margin)}, Fraction(confidence)
        )
    assert message in str(caught.value)
