"""Geocodes with letters are numbers in the order of their texts, and their prefixes those of the texts."""

import numpy as np
import pytest

from censafe.errors import DataError
from censafe.geography.geocodes import ALPHABETS, GeocodeForm
from censafe.geography.spines.choice import split_spine
from censafe.geography.spines.tree import LevelRule, build_spine


@pytest.mark.parametrize("word", list(ALPHABETS))
def test_numbers_keep_text_order_and_prefixes(word: str) -> None:
    alphabet = ALPHABETS[word]
    length = GeocodeForm(1, alphabet).longest
    form = GeocodeForm(length, alphabet)
    letters = np.array(list(alphabet))[np.random.default_rng(1).integers(0, len(alphabet), (200, length))]
    texts = np.array(["".join(row) for row in letters] + [alphabet[-1] * length, alphabet[0] * length])
    codes = form.pack(texts)
    assert form.unpack(codes).tolist() == texts.tolist()
    assert texts[np.argsort(codes)].tolist() == sorted(texts.tolist())
    prefix = GeocodeForm(4, alphabet)
    assert prefix.unpack(form.prefixes(codes, 4)).tolist() == [text[:4] for text in texts.tolist()]


@pytest.mark.parametrize("text", ["E0", "E01\u00e9", "e01A", "E01A5", "E01-"])
def test_other_characters_and_lengths_are_no_geocodes(text: str) -> None:
    assert GeocodeForm(4, ALPHABETS["capitals"]).pack(np.array([text])).tolist() == [-1]


def test_a_spine_of_letters_splits_like_one_of_digits() -> None:
    rules = [
        LevelRule(name, size, alphabet=ALPHABETS["capitals"]) for name, size in (("A", 1), ("B", 2), ("C", 3))
    ]
    blocks = [f"E{group}{block}" for group in "AZ" for block in "019AZ"]
    spine = build_spine(np.array(blocks), rules)
    assert [level.geounits.tolist() for level in spine.levels] == [["E"], ["EA", "EZ"], blocks]
    parted = split_spine(spine, [np.array([0]), np.array([0, 2, 5, 6]), np.arange(10)])
    assert parted.levels[1].geounits.tolist() == ["EA0", "EA1", "EZ0", "EZ1"]


def test_blocks_of_another_form_are_refused() -> None:
    with pytest.raises(DataError, match="1 are not of the right form; allowed: 2 digits and capital letters"):
        build_spine(np.array(["EA", "e1"]), [LevelRule("C", 2, alphabet=ALPHABETS["capitals"])])
