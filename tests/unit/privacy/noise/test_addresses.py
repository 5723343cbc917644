"""Every path to a word of noise uses the whole address: part, geounit or row, query, and answer, also beyond 2^16, 2^17 and 2^32."""

import struct
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from censafe.model import Attribute, ExactHistograms, NoiseLaw, PartPlan, QueryPlan, Schema, make_query
from censafe.model.named_arrays import read_only
from censafe.model.topdown.answers import AnswerReads, AnswerSums
from censafe.privacy.keys import TestKey, derive_part_key
from censafe.privacy.measure.histograms import measure_histograms
from censafe.privacy.measure.lazy import LazyAnswers
from censafe.privacy.noise import kernels, lazy_kernels, numpy_kernels, sum_kernels
from censafe.privacy.noise.sampler import draw_cells, settle_residuals
from censafe.privacy.noise.tables import NoiseTable
from censafe.privacy.noise.wide import _Addresses, draw_wide
from censafe.privacy.noise.words import AddressedWords, Lane, head
from support.noise import known_part_key, seeded_part_key

Blocks = list[tuple[int, int]]
HEADS = np.array([head(query, Lane.DIRECT) for query in range(1 << 16)], np.uint64)
WIDE = NoiseLaw.gaussian(Fraction(1 << 34))


def block(query: int, geounit: int, answer: int, lane: Lane = Lane.DIRECT, ext: int = 0) -> tuple[int, int]:
    """The counter block of an address by its definition; `answer` is the number of the block where the lane is not direct."""
    number = answer // 2 if lane is Lane.DIRECT else answer
    first, second = struct.unpack("<QQ", struct.pack("<IHBBQ", number, query, lane, ext, geounit))
    return first, second


def grid_of(module: object) -> Callable[[int, int, int], Blocks]:
    def grid(query: int, geounit: int, answer: int) -> Blocks:
        counters = np.zeros((1, 2), np.uint64)
        (geounits,) = read_only(np.array([geounit], np.uint64))
        module.fill_counters(geounits, answer // 2, 1 << 31, head(query, Lane.DIRECT), counters)  # type: ignore[attr-defined]
        return counters.tolist()

    return grid


def recorded(work: Callable[[AddressedWords], object]) -> Blocks:
    """The counter blocks that are encrypted meanwhile, in order."""
    words, seen = AddressedWords(known_part_key()), []
    original = words.encrypt

    def encrypt(counters: np.ndarray, buffer: np.ndarray) -> None:
        seen.extend(tuple(row) for row in counters.tolist())
        original(counters, buffer)

    words.encrypt = encrypt  # type: ignore[method-assign]
    work(words)
    return seen


def listed(query: int, geounit: int, answer: int) -> Blocks:
    start, number, row = head(query, Lane.DIRECT), np.array([answer // 2]), np.array([geounit], np.uint64)
    return recorded(lambda words: words.first_blocks(start, number, row))


def single(query: int, geounit: int, answer: int) -> Blocks:
    return recorded(lambda words: words.block(query, Lane.DIRECT, 0, answer // 2, geounit))


def lazy(query: int, geounit: int, answer: int) -> Blocks:
    """As answers that are drawn when they are asked for; the word of the block is checked as well."""
    ones, block_ptr, first = np.array([0, 1], np.int64), np.empty(2, np.int64), np.empty(1, np.uint64)
    ordinal, place = np.array([query], np.int32), np.array([answer], np.int32)
    word, counters = np.empty(1, np.int32), np.zeros((1, 2), np.uint64)
    lazy_kernels.list_blocks(ones, ordinal, place, HEADS, block_ptr, first, word)
    asked = lazy_kernels.AnswerWords(
        *read_only(ones, np.array([geounit], np.int64), ones, ordinal, place, block_ptr, first, word)
    )
    lazy_kernels.fill_words(asked, 0, 0, 1, counters)
    assert word.tolist() == [answer % 2]
    return counters.tolist()


def sums(query: int, geounit: int, answer: int) -> Blocks:
    pieces = sum_kernels.SummedWords(
        *read_only(
            np.array([query], np.int32), np.array([answer], np.int32), np.ones(1, np.int32),
            np.zeros(1, np.int64), np.zeros(1, np.int32), HEADS,
        )
    )  # fmt: skip
    counters = np.zeros((1, 2), np.uint64)
    assert sum_kernels.fill_summed(pieces, 0, 1, geounit, counters) == 1
    return counters.tolist()


LARGEST_GEOUNIT, LARGEST_ANSWER = (1 << 63) - 1, (1 << 31) - 1  # of every path
PATHS = {
    "grid, numpy": grid_of(numpy_kernels),
    "grid, compiled": grid_of(kernels),
    "listed cells": listed,
    "one block": single,
    "lazy": lazy,
    "sums": sums,
}
VALUES = {  # of the query, the geounit and the block of the answer: neighbors, and each field's bits in turn
    "query": sorted({0, 1, 2, 255, 256, 257, 32_768, 65_535}),
    "geounit": sorted({0, 1, LARGEST_GEOUNIT} | {(1 << bit) + more for bit in (8, 16, 17, 31, 32, 33, 40, 62) for more in (-1, 0, 1)}),
    "answer": sorted({0, 2, 4, LARGEST_ANSWER - 1} | {(1 << bit) + 2 * more for bit in (8, 16, 17, 18, 24, 30) for more in (-1, 0, 1)}),
}  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_every_component_of_an_address_changes_the_block(path: str) -> None:
    seen: dict[tuple[int, int], tuple[int, int, int]] = {}
    for component, values in VALUES.items():
        for value in values:
            for base in ({"query": 0, "geounit": 0, "answer": 0}, {"query": 3, "geounit": 7, "answer": 10}):
                address = {**base, component: value}
                (found,) = PATHS[path](**address)
                assert tuple(found) == block(**address), address
                assert seen.setdefault(tuple(found), tuple(address.values())) == tuple(address.values())
    assert len(seen) > 100


def test_grids_and_blocks_reach_the_end_of_their_fields() -> None:
    for path in ("grid, numpy", "grid, compiled", "listed cells", "one block"):
        (found,) = PATHS[path](65_535, (1 << 64) - 1, (1 << 32) - 1)
        assert tuple(found) == (65_535 << 32 | (1 << 31) - 1, (1 << 64) - 1), path


def test_parts_have_different_words_at_every_address() -> None:
    names = ["persons_Block", "households_Block", "units_Block", "persons_Block_Group", "PH2", "t1", "T1"]
    words = {AddressedWords(seeded_part_key(1, name)).block(2, Lane.DIRECT, 0, 5, 9) for name in names}
    assert len(words) == len(names)


def test_wide_and_residual_draws_read_the_blocks_of_their_answer() -> None:
    """Their block number is the answer itself, and their extensions follow the attempts."""
    geounits, answers = VALUES["geounit"], [*VALUES["answer"], 1, 65_537, 131_073, (1 << 32) - 1]
    rows = np.array([*geounits, *[7] * len(answers)], np.uint64)
    places = np.array([*[3] * len(geounits), *answers], np.int64)
    blocks = set(recorded(lambda words: draw_wide(NoiseTable.for_law(WIDE), words, 9, rows, places)))
    for row, place in zip(rows.tolist(), places.tolist(), strict=True):
        assert {block(9, row, place, lane) for lane in (Lane.WIDE_TABLE, Lane.WIDE_UNIFORM)} <= blocks
    law = LAWS["direct"]
    table = NoiseTable.for_law(law)
    residual = np.full(len(rows), table.alias.residual_outcome)
    blocks = set(recorded(lambda words: settle_residuals(table, words, 9, rows, places, residual)))
    later = recorded(
        lambda words: [
            _Addresses(words, 9, 2, rows, places).blocks(Lane.WIDE_RESIDUAL, place)(3)
            for place in range(len(rows))
        ]
    )
    for row, place, seen in zip(rows.tolist(), places.tolist(), later, strict=True):
        assert block(9, row, place, Lane.RESIDUAL) in blocks
        assert seen == block(9, row, place, Lane.WIDE_RESIDUAL, 35)


LAWS = {"direct": NoiseLaw.gaussian(Fraction(9)), "residual": NoiseLaw.laplace(Fraction(7, 2)), "wide": WIDE}
SIDE = 450
LARGE = Schema("large", (Attribute("adult", 2), Attribute("place", SIDE), Attribute("race", SIDE)))
SMALL = Schema("small", (Attribute("adult", 2), Attribute("race", 3)))
CASES = {  # schema, queries, geounits
    "many answers": (LARGE, ("adult", "detailed"), 2),
    "many geounits": (SMALL, ("race", "detailed"), 140_000),
    "many queries": (SMALL, ("race", "detailed") * 150, 3),
}


def far_addresses(size: int) -> list[int]:
    """Some numbers below a size, at both ends and at both sides of 2^8, 2^16, 2^17 and 2^18."""
    edges = [0, *(1 << bit for bit in (8, 16, 17, 18)), size - 1]
    return sorted({one + more for one in edges for more in (-1, 0, 1, 2) if 0 <= one + more < size})


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("case", CASES)
def test_lazy_answers_and_their_sums_have_the_noise_of_far_addresses(
    case: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chosen answers, their sums and what is stored are counts plus the listed draws of the same addresses."""
    schema, names, nodes = CASES[case]
    law = LAWS[kind]
    if kind == "residual":
        narrow = NoiseTable.build(law, width=8)
        monkeypatch.setattr(NoiseTable, "for_law", staticmethod(lambda _: narrow))
    queries = [make_query(schema, name, {}) for name in names]
    cost = Fraction(1, 9)
    part = PartPlan("persons_Block", tuple(QueryPlan(name, "Block", law, cost) for name in names))
    geounits = np.array(far_addresses(nodes), np.int64)
    pairs = [
        (place, answer)
        for place in far_addresses(len(queries))
        for answer in far_addresses(queries[place].answers)
    ]
    query, answer = (np.array(side, np.int32) for side in zip(*pairs, strict=True))
    cells = np.unique(answer)
    records = np.zeros(nodes, np.int64)
    records[geounits] = len(cells)
    exact = ExactHistograms(
        np.full(nodes, "0"), np.append(0, np.cumsum(records)), np.tile(cells, len(geounits)),
        np.arange(1, 1 + len(cells) * len(geounits), dtype=np.int32),
    )  # fmt: skip
    truth = np.arange(1, 1 + len(cells) * len(geounits)).reshape(len(geounits), len(cells))
    counts = np.stack([truth[:, queries[q].label[cells] == i].sum(axis=1) for q, i in pairs], axis=1)

    def key():
        return derive_part_key(TestKey(5), "0" * 64, b"", part.name)

    expected = np.empty((len(geounits), len(pairs)), np.int64)
    for place in np.unique(query):
        here = query == place
        rows = np.repeat(geounits.astype(np.uint64), here.sum())
        places = np.tile(answer[here].astype(np.int64), len(geounits))
        noise = draw_cells(law, key(), query=int(place), geounits=rows, answers=places)
        expected[:, here] = noise.reshape(len(geounits), -1) + counts[:, here]
    source = LazyAnswers(exact, part, queries, key())
    parents = np.array([0, len(geounits)], np.int64)
    wanted = AnswerReads(parents, geounits, np.array([0, len(pairs)], np.int64), query, answer)
    assert np.array_equal(expected, source.gather(wanted).reshape(expected.shape))
    slots = [np.full(one.answers, -1) for one in queries]
    for slot, (place, one) in enumerate(pairs):
        slots[place][one] = slot
    apart = AnswerSums.of(tuple(slots), tuple(np.zeros(one.answers, np.int64) for one in queries))
    assert np.array_equal(expected, source.sums(apart, geounits))
    if kind != "wide" or case == "many queries":  # wide draws of all answers take a second
        shapes = [(one.answers,) for one in queries]
        stored = measure_histograms(exact, part, queries, shapes, key()).values
        found = [stored[q][geounits, i] for q, i in pairs]
        assert np.array_equal(expected, np.stack(found, axis=1))
    direct = kind == "direct"
    assert not direct or len({tuple(row) for row in (expected - counts).tolist()}) == len(geounits)
