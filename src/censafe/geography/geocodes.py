"""Geocodes as numbers: text of one length over a stated alphabet, read as a number whose base is the size of the alphabet.

A prefix of the text is the whole part of the number divided by a power of the base, and numbers are in the order of their texts, so that
geocodes with letters take the same arithmetic as those of digits.
"""

from __future__ import annotations

import string
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

DIGITS: Final = string.digits
ALPHABETS: Final = {
    "digits": DIGITS,
    "capitals": DIGITS + string.ascii_uppercase,
    "small": DIGITS + string.ascii_lowercase,
    "letters": DIGITS + string.ascii_uppercase + string.ascii_lowercase,
}
"""Characters that geocodes may have, in the order of their codes, by the word for it in a configuration."""

_WORDS: Final = {
    DIGITS: "decimal digits",
    ALPHABETS["capitals"]: "digits and capital letters",
    ALPHABETS["small"]: "digits and small letters",
    ALPHABETS["letters"]: "digits and letters",
}
_NUMBERS: Final = 1 << 63  # that are not negative in 64 bits
_ASCII: Final = 128


@dataclass(frozen=True)
class GeocodeForm:
    """What geocodes of one level look like."""

    length: int
    alphabet: str = DIGITS

    @property
    def base(self) -> int:
        """Size of the alphabet."""
        return len(self.alphabet)

    @property
    def longest(self) -> int:
        """Length of the longest text over the alphabet that is always a number of 64 bits.

        Example:
            >>> {name: GeocodeForm(1, alphabet).longest for name, alphabet in ALPHABETS.items()}
            {'digits': 18, 'capitals': 12, 'small': 12, 'letters': 10}
        """
        length = 0
        while self.base ** (length + 1) <= _NUMBERS:
            length += 1
        return length

    @property
    def words(self) -> str:
        """The form in words.

        Example:
            >>> GeocodeForm(16).words, GeocodeForm(9, ALPHABETS["capitals"]).words
            ('16 decimal digits', '9 digits and capital letters')
        """
        return f"{self.length} {_WORDS[self.alphabet]}"

    def pack(self, geocodes: NDArray[np.str_]) -> NDArray[np.int64]:
        """Geocodes as numbers, as :func:`pack_geocodes` gives them."""
        return pack_geocodes(geocodes, self.length, self.alphabet)

    def unpack(self, codes: NDArray[np.int64]) -> NDArray[np.str_]:
        """Text of geocodes stored as numbers."""
        return unpack_geocodes(codes, self.length, self.alphabet)

    def prefixes(self, codes: NDArray[np.int64], length: int) -> NDArray[np.int64]:
        """The numbers of the first characters of geocodes.

        Args:
            codes: int64, shape (n,).

        Example:
            >>> form = GeocodeForm(4, ALPHABETS["capitals"])
            >>> unpack_geocodes(form.prefixes(form.pack(np.array(["E01Z"])), 2), 2, form.alphabet).tolist()
            ['E0']
        """
        return codes // self.base ** (self.length - length)


def pack_geocodes(geocodes: NDArray[np.str_], digits: int, alphabet: str = DIGITS) -> NDArray[np.int64]:
    """Geocodes as numbers.

    Args:
        geocodes: text, shape (n,).

    Returns:
        int64, shape (n,); -1 where a geocode has another length or other characters.

    Example:
        >>> pack_geocodes(np.array(["0044", "44", "00a4"]), 4).tolist()
        [44, -1, -1]
        >>> pack_geocodes(np.array(["0z", "0Z"]), 2, ALPHABETS["small"]).tolist()
        [35, -1]
    """
    width = max(digits, geocodes.dtype.itemsize // 4)
    characters = np.ascontiguousarray(geocodes.astype(f"U{width}")).view(np.uint32).reshape(-1, width)
    good = (characters[:, digits:] == 0).all(axis=1)
    return np.where(good, pack_characters(characters[:, :digits], alphabet), -1)


def pack_characters(characters: NDArray[np.unsignedinteger], alphabet: str = DIGITS) -> NDArray[np.int64]:
    """The same from the characters of geocodes.

    Args:
        characters: code points, shape (n, length).

    Returns:
        int64, shape (n,); -1 where a geocode has other characters.
    """
    good = np.ones(len(characters), np.bool_)
    packed = np.zeros(len(characters), np.int64)
    places = None if alphabet == DIGITS else _places(alphabet)
    for column in range(characters.shape[1]):
        if places is None:
            place = characters[:, column].astype(np.int64) - ord("0")
            good &= (place >= 0) & (place <= 9)
        else:
            place = places[np.minimum(characters[:, column], _ASCII - 1)]
            good &= place >= 0
        packed = packed * len(alphabet) + place
    return np.where(good, packed, -1)


@lru_cache(maxsize=len(ALPHABETS))
def _places(alphabet: str) -> NDArray[np.int64]:
    """Place of every ASCII character in an alphabet, -1 for none."""
    places = np.full(_ASCII, -1, np.int64)
    places[[ord(character) for character in alphabet]] = np.arange(len(alphabet))
    return places


def unpack_geocodes(codes: NDArray[np.int64], digits: int, alphabet: str = DIGITS) -> NDArray[np.str_]:
    """Text of geocodes stored as numbers.

    Args:
        codes: int64, shape (n,), not negative.

    Example:
        >>> unpack_geocodes(np.array([44, 1234]), 4).tolist()
        ['0044', '1234']
        >>> unpack_geocodes(np.array([35]), 2, ALPHABETS["small"]).tolist()
        ['0z']
    """
    characters = np.empty((len(codes), digits), np.uint32)
    left = codes.copy()
    for column in range(digits - 1, -1, -1):
        left, characters[:, column] = np.divmod(left, len(alphabet))
    if alphabet == DIGITS:
        characters += np.uint32(ord("0"))
    else:
        characters = np.array([ord(character) for character in alphabet], np.uint32)[characters]
    return characters.reshape(-1).view(f"U{digits}")
