"""Former spellings of words of configurations and of keywords mean the same."""

import pytest

import censafe
from censafe.products.topdown.configuration.config import load_config


def test_a_word_of_a_configuration_may_have_its_former_spelling() -> None:
    former, own = (load_config("pl94-us", {"spine": word}) for word in ("optimi" + "sed", "optimized"))
    assert former.choices == own.choices
    assert own.choices.spine == "optimized"


def test_a_keyword_may_have_its_former_spelling() -> None:
    chosen = censafe.configuration("phsafe", "sdhc-us")
    former, own = (
        censafe.plan(chosen, targets=["PH3/state_A-G=25"], **{keyword: "rho"})
        for keyword in ("minimi" + "se", "minimize")
    )
    assert former.total == own.total


def test_both_spellings_at_once_are_refused() -> None:
    chosen = censafe.configuration("phsafe", "sdhc-us")
    both = {"minimi" + "se": "rho", "minimize": "rho"}
    with pytest.raises(TypeError, match="has no keyword"):
        censafe.plan(chosen, targets=["PH3/state_A-G=25"], **both)
