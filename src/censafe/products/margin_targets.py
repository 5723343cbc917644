"""From a wanted margin of error to the budget that it costs, by the papers' rule."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from censafe.errors import ConfigError
from censafe.model import Definition
from censafe.planning.numbers import decimal_text
from censafe.planning.targets import LEAST_MARGIN, MOST_MARGIN
from censafe.privacy.margins import rho_for_margin

__all__ = ["budget_for_margin", "check_margins"]

_DIGITS: Final = 6
_LEVELS: Final = (Fraction(9, 10), Fraction(19, 20))


def check_margins(definition: Definition, margins: Mapping[str, Fraction], confidence: Fraction) -> None:
    """Refuse what the papers have no rule for.

    Raises:
        ConfigError: pure DP, a confidence other than 9/10 and 19/20, or a margin that is not positive.
    """
    if definition is not Definition.ZCDP:
        raise ConfigError(
            "margins are turned into budgets under privacy_definition zcdp only; set the budgets"
        )
    if confidence not in _LEVELS:
        raise ConfigError(
            f"margins are turned into budgets at confidence 0.9 or 0.95, not {decimal_text(confidence)}"
        )
    for key, margin in margins.items():
        if margin <= 0:
            raise ConfigError(
                f"{key}: a margin of error of {decimal_text(margin)} has no budget; give one above 0"
            )
        if not LEAST_MARGIN <= margin <= MOST_MARGIN:
            raise ConfigError(
                f"{key}: that margin of error is out of reach; give one from 0.000001 to 1000000000"
            )


def budget_for_margin(
    margin: Fraction, l2_squared: Fraction, confidence: Fraction, share: Fraction = Fraction(1)
) -> str:
    """The budget rho = L2^2 z^2 / (2 MOE^2) / share, rounded up to six significant digits, so no margin is missed.

    Args:
        margin: wanted margin of error, in persons or units.
        l2_squared: squared L2 sensitivity.
        confidence: 9/10 or 19/20.
        share: the share of the budget that the answers get.

    Source: PHSafe paper, section on budget planning.

    Example:
        >>> budget_for_margin(Fraction(3), Fraction(9), Fraction(19, 20), share=Fraction(9, 10))
        '2.13423'
    """
    rho = rho_for_margin(margin, l2_squared, confidence) / share
    unit = Fraction(10) ** (_DIGITS - 1 - math.floor(math.log10(rho)))
    return decimal_text(Fraction(math.ceil(rho * unit)) / unit)
