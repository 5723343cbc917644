"""Exact numbers as people write them."""

from __future__ import annotations

from fractions import Fraction

from censafe.model.bounds import upper


def decimal_text(value: Fraction) -> str:
    """A fraction as a plain decimal when it has one, otherwise as numerator/denominator.

    Example:
        >>> decimal_text(Fraction("0.000135")), decimal_text(Fraction(1, 3))
        ('0.000135', '1/3')
    """
    rest, places = value.denominator, 0
    for prime in (2, 5):
        power = 0
        while rest % prime == 0:
            rest //= prime
            power += 1
        places = max(places, power)
    return fixed_text(value, places) if rest == 1 else str(value)


def fixed_text(value: Fraction, places: int) -> str:
    """A fraction rounded to a number of decimals, halves to the even digit.

    Example:
        >>> fixed_text(Fraction("0.00662976"), 6), fixed_text(Fraction(-1, 8), 2), fixed_text(Fraction(200), 0)
        ('0.006630', '-0.12', '200')
    """
    units = round(abs(value) * 10**places)
    digits = str(units).rjust(places + 1, "0")
    text = f"{digits[:-places]}.{digits[-places:]}" if places else digits
    return f"-{text}" if value < 0 and units else text


def short_text(value: Fraction) -> str:
    """A fraction in at most about ten digits, for a table; the exact form is in the JSON and CSV.

    Example:
        >>> short_text(Fraction(1257281, 1000000)), short_text(Fraction(242000000, 2619))
        ('1.257281', '92401.68')
    """
    text = decimal_text(value)
    if "/" not in text and len(text) <= 10:
        return text
    return fixed_text(value, 2) if abs(value) >= 100 else f"{float(value):.6g}"


def loss_text(value: Fraction) -> str:
    """A loss in at most about ten digits, rounded up, for a table; the exact form is in the JSON and CSV.

    Example:
        >>> loss_text(Fraction(1257281, 1000000)), loss_text(Fraction(1, 3)), loss_text(Fraction(1000, 3))
        ('1.257281', '0.333334', '333.34')
    """
    text = decimal_text(value)
    if "/" not in text and len(text) <= 10:
        return text
    return f"{upper(value, 2):.2f}" if abs(value) >= 100 else f"{upper(value, digits=6):.6g}"


def duration_text(seconds: float) -> str:
    """A time in seconds, minutes or hours.

    Example:
        >>> duration_text(4.26), duration_text(150), duration_text(20_000)
        ('4 s', '2 min', '6 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 3 * 3600 else f"{seconds / 3600:,.0f} h"


def about_text(number: float) -> str:
    """How many things there are, in two digits, from a million on in millions.

    Example:
        >>> about_text(0.3), about_text(431.7), about_text(91_200), about_text(1_260_000), about_text(1.26e9)
        ('1', '430', '91,000', '1.3 million', '1,300 million')
    """
    rounded = max(float(f"{number:.2g}"), 1.0)
    return f"{rounded:,.0f}" if rounded < 1e6 else f"{rounded / 1e6:,.10g} million"


def bytes_text(size: float) -> str:
    """Bytes in the largest binary unit that leaves at least 1.

    Example:
        >>> bytes_text(1536), bytes_text(3 * 2**30)
        ('1.5 KiB', '3.0 GiB')
    """
    for power, unit in ((30, "GiB"), (20, "MiB")):
        if size >= 2**power:
            return f"{size / 2**power:,.1f} {unit}"
    return f"{size / 2**10:,.1f} KiB"
