"""Plans give the configuration that has their budgets."""

from fractions import Fraction

import pytest

import censafe
from censafe.api.plans import unchecked
from censafe.errors import ConfigError, UsageError


def test_the_configuration_of_a_plan_has_the_budgets_of_its_wishes() -> None:
    chosen = censafe.configuration("phsafe", "sdhc-us")
    for wishes in ({"margins": {"PH3": Fraction(30)}}, {"targets": ["PH3/state_A-G=30@90%"]}):
        found = censafe.plan(chosen, **wishes)  # type: ignore[arg-type]
        assert found.configuration.settings
        assert found.total != censafe.plan(chosen).total
        assert censafe.plan(found.configuration).total == found.total
    assert chosen.settings == {}


def test_what_cannot_be_is_refused_at_once_or_where_it_is_used() -> None:
    with pytest.raises(ConfigError, match=r"tau\.PH3"):
        censafe.configuration("phsafe", "sdhc-us", {"tau.PH3": 0})
    later = unchecked("phsafe", "sdhc-us", {"tau.PH3": 0})
    with pytest.raises(ConfigError, match=r"tau\.PH3"):
        _ = later.checked
    with pytest.raises(UsageError, match="no product 'nmf'"):
        unchecked("nmf", "sdhc-us")
    with pytest.raises(TypeError, match="budgets are exact"):
        censafe.configuration("phsafe", "sdhc-us", {"budget.PH3.state_A-G": 0.5})
