"""Speed of exact noise, random words included, against OpenDP in the same run.

    python benchmarks/noise.py [--draws N] [--repeats R] [--json]

CPU nanoseconds on one core, best of R repeats on both sides of every ratio, since other work on the machine only
adds. A draw costs everything: counters, AES-256, alias table and the memory of the result. Every repeat uses words that were never drawn before (another query ordinal).
Marks: at most 6 ns a draw for sigma 2 to 300, at least 1,000 times the vector rate of OpenDP.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from censafe.model import NoiseLaw
from censafe.privacy.keys import ReleaseKey, ReleasePartKey, TestPartKey, derive_part_key
from censafe.privacy.noise import kernels, numpy_kernels
from censafe.privacy.noise.sampler import draw
from censafe.privacy.noise.tables import NoiseTable
from censafe.privacy.noise.words import CHUNK_BLOCKS, AddressedWords
from harness import markdown, parser_of, report

SIGMAS = (2, 10, 50, 300)
OPENDP_DRAWS = 20_000
QUERIES = count()
COLUMNS = {
    "law": "law",
    "scale": "sigma or scale",
    "ns_per_draw": "ns a draw",
    "kernel_ns": "kernel alone",
    "numpy_kernel_ns": "numpy twin of the kernel",
    "table_build_ms": "table build, ms",
    "opendp_ns": "OpenDP vector, ns",
    "ratio_to_opendp": "ratio",
}

PartKey = ReleasePartKey | TestPartKey


def best_ns(work: Callable[[], object], units: int, repeats: int) -> float:
    """Best CPU nanoseconds a unit, after one unmeasured call."""
    work()
    times = []
    for _ in range(repeats):
        start = time.process_time_ns()
        work()
        times.append((time.process_time_ns() - start) / units)
    return min(times)


def addressed(law: NoiseLaw, key: PartKey, geounits: int, answers: int) -> Callable[[], object]:
    units = np.arange(geounits, dtype=np.uint64)
    return lambda: draw(law, key, query=next(QUERIES), geounits=units, answers=answers)


def cipher_ns(key: PartKey, repeats: int) -> float:
    """AES-256 alone, for each 64-bit word, on counters that are already in place."""
    words, calls = AddressedWords(key), 400
    counters = np.zeros((CHUNK_BLOCKS, 2), dtype=np.uint64)
    buffer = np.empty(2 * CHUNK_BLOCKS + 2, dtype=np.uint64)

    def work() -> None:
        for _ in range(calls):
            words.encrypt(counters, buffer)

    return best_ns(work, calls * 2 * CHUNK_BLOCKS, repeats)


def kernel_ns(law: NoiseLaw, module: Any, repeats: int) -> float:
    """Words to draws alone, on fresh words, so that no branch predictor has seen them."""
    alias = NoiseTable.for_law(law).alias
    pool = np.frombuffer(np.random.default_rng(1).bytes(1 << 25), dtype=np.uint64)
    out = np.empty(2 * CHUNK_BLOCKS, dtype=np.int64)

    def work() -> None:
        for start in range(0, len(pool), len(out)):
            module.map_words(pool[start : start + len(out)], alias.entries, alias.bits, alias.width, out)

    return best_ns(work, len(pool), repeats)


def build_ms(law: NoiseLaw) -> float:
    times = []
    for _ in range(5):
        start = time.process_time()
        NoiseTable.build(law)
        times.append(time.process_time() - start)
    return 1000 * min(times)


def opendp_ns(kind: str, scale: float, repeats: int) -> float | None:
    """The vector mechanism of OpenDP; None when it is not installed."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    domain, zeros = dp.vector_domain(dp.atom_domain(T="i64")), [0] * OPENDP_DRAWS
    if kind == "gaussian":
        mechanism = dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale=scale)
    else:
        mechanism = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)
    return best_ns(lambda: mechanism(zeros), OPENDP_DRAWS, repeats)


def row(kind: str, scale: int, key: PartKey, draws: int, repeats: int) -> dict[str, Any]:
    law = NoiseLaw.gaussian(Fraction(scale**2)) if kind == "gaussian" else NoiseLaw.laplace(Fraction(scale))
    ours = best_ns(addressed(law, key, 100, draws // 100), draws // 100 * 100, repeats)
    opendp = opendp_ns(kind, float(scale), 3)
    return {
        "law": kind,
        "scale": scale,
        "ns_per_draw": round(ours, 3),
        "kernel_ns": round(kernel_ns(law, kernels, repeats), 3),
        "numpy_kernel_ns": round(kernel_ns(law, numpy_kernels, repeats), 3),
        "table_build_ms": round(build_ms(law), 2),
        "opendp_ns": None if opendp is None else round(opendp, 1),
        "ratio_to_opendp": None if opendp is None else round(opendp / ours, 1),
    }


def shapes(key: PartKey, draws: int, repeats: int) -> dict[str, float]:
    """Sigma 10 with many answers of few geounits, and few answers of many geounits."""
    law = NoiseLaw.gaussian(Fraction(100))
    cases = {
        "10 x many": (10, draws // 10),
        "many x 2016": (draws // 2016, 2016),
        "many x 2": (draws // 2, 2),
        "many x 1": (draws, 1),
    }
    return {
        name: round(best_ns(addressed(law, key, *shape), shape[0] * shape[1], repeats), 3)
        for name, shape in cases.items()
    }


def two_thread_speedup(key: PartKey, draws: int) -> float:
    """Wall time of two drawings one after the other over wall time of both at once."""
    law, shape = NoiseLaw.gaussian(Fraction(100)), (100, draws // 100)
    outs = [np.zeros(shape, dtype=np.int64) for _ in range(2)]
    units = np.arange(shape[0], dtype=np.uint64)

    def work(out: NDArray[np.int64]) -> None:
        draw(law, key, query=next(QUERIES), geounits=units, answers=shape[1], out=out)

    start = time.perf_counter()
    for out in outs:
        work(out)
    middle = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, outs))
    return round((middle - start) / (time.perf_counter() - middle), 2)


def value_time_correlation(key: PartKey, calls: int = 20_000) -> tuple[float, float]:
    """Spearman correlation of the wall time of single draws and abs(value); reported, not judged."""
    law, unit = NoiseLaw.gaussian(Fraction(2500)), np.zeros(1, dtype=np.uint64)
    times, values = np.empty(calls), np.empty(calls, dtype=np.int64)
    query, out = next(QUERIES), np.empty((1, 1), dtype=np.int64)
    for call in range(calls):
        unit[0] = call
        start = time.perf_counter_ns()
        draw(law, key, query=query, geounits=unit, answers=1, out=out)
        times[call] = time.perf_counter_ns() - start
        values[call] = out[0, 0]
    correlation = stats.spearmanr(times, np.abs(values))
    return round(float(correlation.statistic), 4), round(float(correlation.pvalue), 4)


def measure(_: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    draws, repeats = arguments.draws, arguments.repeats
    with ReleaseKey.from_system() as run_key:
        key = derive_part_key(run_key, "benchmark", b"", "noise")
    cases = [(kind, scale) for kind in ("gaussian", "laplace") for scale in SIGMAS]
    word = cipher_ns(key, repeats)
    rows = [row(kind, scale, key, draws, repeats) for kind, scale in cases]
    gaussian = [one for one in rows if one["law"] == "gaussian"]
    ratios = [one["ratio_to_opendp"] for one in rows if one["ratio_to_opendp"] is not None]
    correlation, p = value_time_correlation(key)
    return {
        "ns_per_draw": max(one["ns_per_draw"] for one in gaussian),
        "ns_per_word": round(word, 3),
        "ratio_to_opendp": min(ratios) if ratios else None,
        "ratio_to_word": round(max(one["ns_per_draw"] for one in gaussian) / word, 2),
        "draws": draws,
        "rows": rows,
        "shapes_ns_per_draw": shapes(key, draws, repeats),
        "two_thread_speedup": statistics.median(two_thread_speedup(key, draws) for _ in range(repeats)),
        "time_value_correlation": correlation,
        "time_value_p": p,
    }


def text(measured: dict[str, Any]) -> Iterator[str]:
    yield " ".join(f"{name:>15}" for name in COLUMNS)
    yield from (" ".join(f"{row[name]!s:>15}" for name in COLUMNS) for row in measured["rows"])
    yield f"\nAES-256 alone: {measured['ns_per_word']} ns a word; worst Gaussian draw: {measured['ns_per_draw']} ns,"
    yield f"{measured['ratio_to_word']} times the word; smallest ratio to OpenDP: {measured['ratio_to_opendp']}"
    yield f"geounits x answers, ns a draw at sigma 10: {measured['shapes_ns_per_draw']}"
    yield f"speed-up of two threads over one: {measured['two_thread_speedup']}"
    yield (
        f"Spearman correlation of time and abs(value) over single draws: {measured['time_value_correlation']} "
        f"(p {measured['time_value_p']}; a report, not a test)"
    )


def page(measured: dict[str, Any]) -> list[str]:
    digits = ("", "", ".1f", ".1f", ".1f", ".2f", ",.0f", ",.0f")
    rows = (
        [
            "" if row[name] is None else f"{row[name]:{form}}"
            for name, form in zip(COLUMNS, digits, strict=True)
        ]
        for row in measured["rows"]
    )
    return markdown(COLUMNS.values(), rows, number="---")


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--draws", type=int, default=10_000_000, help="draws of one measurement")
    parser.add_argument("--repeats", type=int, default=5)
    report(parser.parse_args(), measure, text, page=page)


if __name__ == "__main__":
    main()
