import numpy as np
import pytest

from censafe.errors import ReleaseError
from censafe.privacy.keys import TestKey
from censafe.privacy.noise import words as words_module
from censafe.privacy.noise.sampler import draw
from censafe.privacy.noise.words import AddressedWords, Lane, check_address, head
from support.noise import known_part_key, law, seeded_part_key

GOLDEN_BLOCKS = [
    ((0, 0, 0, 0, 0), (15032814528976949490, 9256919087594533801)),
    ((5, 3, 0, 0, 7), (14475744623377430719, 10168320599330557679)),
    ((5, 3, 1, 0, 7), (6670674766813202460, 1566032525863661065)),
    ((5, 3, 1, 1, 7), (17909393958166561299, 8698784290667515339)),
    ((1 << 40, 65535, 0, 0, (1 << 32) - 1), (817645546941577469, 11611098967961474937)),
]


@pytest.mark.parametrize(("address", "words"), GOLDEN_BLOCKS)
def test_address_scheme_goldens(address: tuple[int, int, int, int, int], words: tuple[int, int]) -> None:
    geounit, query, lane, ext, j = address
    assert AddressedWords(known_part_key()).block(query, Lane(lane), ext, j, geounit) == words


def test_cipher_is_aes_256() -> None:
    # FIPS 197, appendix C.3; the known key is the key of that example.
    plain = np.frombuffer(bytes.fromhex("00112233445566778899aabbccddeeff"), dtype=np.uint64).reshape(1, 2)
    words = np.empty(4, dtype=np.uint64)
    AddressedWords(known_part_key()).encrypt(plain.copy(), words)
    assert words[:2].tobytes().hex() == "8ea2b7ca516745bfeafc49904b496089"


def test_block_bits_are_the_little_endian_integer_of_the_block() -> None:
    words = AddressedWords(known_part_key())
    low, high = GOLDEN_BLOCKS[2][1]
    assert words.block_bits(3, Lane.RESIDUAL, 0, 7, 5) == high << 64 | low


def test_every_field_of_an_address_changes_the_block() -> None:
    words = AddressedWords(known_part_key())
    fields = {"query": 3, "lane": Lane.RESIDUAL, "ext": 2, "j": 7, "geounit": 5}
    seen = {words.block(**fields)}  # type: ignore[arg-type]
    for name, other in (("query", 4), ("lane", Lane.DIRECT), ("ext", 3), ("j", 8), ("geounit", 6)):
        seen.add(words.block(**{**fields, name: other}))  # type: ignore[arg-type]
    assert len(seen) == 6


@pytest.mark.parametrize(("query", "ext"), [(1 << 16, 0), (-1, 0), (0, 256), (0, -1)])
def test_fields_that_do_not_fit_are_refused(query: int, ext: int) -> None:
    with pytest.raises(OverflowError, match="out of range"):
        head(query, Lane.DIRECT, ext)


def test_a_block_number_beyond_32_bits_is_refused() -> None:
    with pytest.raises(OverflowError, match="out of range"):
        AddressedWords(known_part_key()).block(0, Lane.DIRECT, 0, 1 << 32, 0)


@pytest.mark.parametrize(("query", "answers"), [(1 << 16, 1), (-1, 1), (0, (1 << 32) + 1), (0, -1)])
def test_plans_without_addresses_are_refused(query: int, answers: int) -> None:
    with pytest.raises(OverflowError):
        check_address(query, answers)


def test_residual_bits_that_run_out_raise() -> None:
    with pytest.raises(RuntimeError, match="ran out"):
        AddressedWords(known_part_key()).block_bits(0, Lane.RESIDUAL, 256, 0, 0)


def test_a_key_serves_at_most_2_to_the_40_blocks() -> None:
    key = known_part_key()
    words = AddressedWords(key)
    words.reserve((1 << 40) - 2)
    draw(law("gaussian", 4), key, query=0, geounits=np.arange(1, dtype=np.uint64), answers=4)
    with pytest.raises(ReleaseError, match="at most 2\\^40"):
        draw(law("gaussian", 4), key, query=0, geounits=np.arange(1, dtype=np.uint64), answers=1)


def test_a_run_key_or_a_closed_part_key_draws_nothing() -> None:
    with pytest.raises(TypeError, match="derive one"):
        AddressedWords(TestKey(1))  # type: ignore[arg-type]
    key = known_part_key()
    key.close()
    with pytest.raises(ValueError, match="closed"):
        AddressedWords(key)


def test_no_counter_block_repeats_over_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    counters: list[np.ndarray] = []
    encrypt = AddressedWords.encrypt

    def spy(self: AddressedWords, blocks: np.ndarray, words: np.ndarray) -> None:
        counters.append(blocks.copy())
        encrypt(self, blocks, words)

    monkeypatch.setattr(AddressedWords, "encrypt", spy)
    key, geounits = seeded_part_key(9), np.array([0, 7, 1 << 40], dtype=np.uint64)
    for query, noise in enumerate(
        [law("gaussian", 4), law("laplace", "10/3"), law("gaussian", 10**12), law("laplace", 10**6)]
    ):
        for answers in (501,):
            draw(noise, key, query=query, geounits=geounits, answers=answers)
    wide = law("gaussian", 10**11)
    draw(wide, key, query=7, geounits=geounits, answers=3000)
    blocks = np.concatenate(counters)
    # The decisive bits of a wide proposal start with the block that was read for all answers at once.
    lane = blocks[:, 0] >> np.uint64(48) & np.uint64(0xFF)
    single = blocks[lane != Lane.WIDE_UNIFORM]
    assert len(np.unique(single, axis=0)) == len(single)
    assert len(single) > 9000


def test_big_endian_machines_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words_module.sys, "byteorder", "big")
    with pytest.raises(OSError, match="little-endian"):
        AddressedWords(known_part_key())
