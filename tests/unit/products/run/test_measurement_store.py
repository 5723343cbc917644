from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import pytest

from censafe.errors import CheckError
from censafe.model import Neighbors, NoiseLaw, PartPlan, ProtectedUnit, QueryPlan, ReleasePlan
from censafe.model.plan import Definition
from censafe.privacy.keys import TestKey, TestPartKey, derive_part_key, keyed_commitment
from censafe.products.registry import product_of
from censafe.products.run.account import MeasurementFiles, MeasurementStore
from censafe.products.topdown.rehearsal import TestMeasurementStore

LAW = NoiseLaw.gaussian(Fraction(4))
PARTS = tuple(PartPlan(name, (QueryPlan(name, "US", LAW, Fraction(1, 4)),)) for name in ("first", "second"))


class Account:
    """Notes what is asked of it, in order."""

    def __init__(self) -> None:
        self.key = TestKey(1)
        self.input_commitment = "00"
        self.asked: list[str] = []

    def reserve(self, part: PartPlan) -> None:
        self.asked.append(f"reserve {part.name}")

    def commit(self, part: PartPlan, file: str, sha256: str) -> None:
        self.asked.append(f"commit {file} {sha256}")


def write(path: Path, text: str, *, plan_digest: str, stamp: str | None) -> str:
    path.write_text(text, encoding="utf-8")
    return "digest"


FILES = MeasurementFiles(
    write, lambda path, *, plan_digest: path.read_text(encoding="utf-8"), lambda text: {"seeded"}
)


@pytest.fixture
def plan() -> ReleasePlan:
    return ReleasePlan(
        "phsafe",
        Definition.ZCDP,
        Neighbors.REPLACE,
        ProtectedUnit.PERSON,
        other_losses={},
        parts=PARTS,
        settings={},
    )


def measure_or_load(
    store: MeasurementStore | TestMeasurementStore, part: PartPlan, draw: Callable[[Any], str]
) -> str:
    """Measure a part as a product does, or read it when it has been measured."""
    if store.is_measured(part):
        return cast(MeasurementStore, store).read(part, FILES)
    with store.reserve(part) as key:
        measured = draw(key)
    store.write(part, measured, FILES)
    return measured


def test_a_part_is_drawn_once_between_reservation_and_commit(plan: ReleasePlan, tmp_path: Path) -> None:
    account = Account()
    store = MeasurementStore(plan, tmp_path, account)

    def draw(key: object) -> str:
        account.asked.append("draw")
        return "noisy"

    assert [measure_or_load(store, PARTS[0], draw) for _ in range(2)] == ["noisy", "noisy"]
    assert account.asked == ["reserve first", "draw", "commit first.parquet digest"]
    assert store.source == "seeded"


def test_a_part_that_is_measured_is_never_drawn_again(plan: ReleasePlan, tmp_path: Path) -> None:
    store = MeasurementStore(plan, tmp_path, Account())
    measure_or_load(store, PARTS[0], lambda key: "noisy")
    with pytest.raises(CheckError, match="never drawn again"), store.reserve(PARTS[0]):
        pass


def test_the_run_key_goes_with_the_last_part(plan: ReleasePlan, tmp_path: Path) -> None:
    account = Account()
    store = MeasurementStore(plan, tmp_path, account)
    measure_or_load(store, PARTS[0], lambda key: "noisy")
    assert len(account.key._secret.reveal()) == 32
    measure_or_load(store, PARTS[1], lambda key: "noisy")
    with pytest.raises(ValueError, match="closed"):
        account.key._secret.reveal()
    assert measure_or_load(store, PARTS[1], lambda key: "never") == "noisy"


@pytest.mark.parametrize("rehearsed", [False, True], ids=["release", "rehearsal"])
@pytest.mark.parametrize(
    ("product", "config"),
    [("topdown", "dhc-us"), ("topdown", "pl94-us"), ("phsafe", "sdhc-us"), ("safetab-p", "ddhca"), ("safetab-h", "ddhcb")],
)  # fmt: skip
def test_every_part_of_a_release_draws_with_the_key_of_its_name_and_plan(
    product: str, config: str, rehearsed: bool, tmp_path: Path
) -> None:
    planner = product_of(product).planner
    release = planner.report(
        planner.load(config, {}, {}, Fraction(9, 10)), confidence=Fraction(9, 10), delta=Fraction(1, 10**10)
    ).plan
    account = Account()
    store = TestMeasurementStore(release, 1) if rehearsed else MeasurementStore(release, tmp_path, account)
    run = TestKey(1)
    commitment = b"rehearsal" if rehearsed else keyed_commitment(run, account.input_commitment.encode())
    drawn: dict[str, bytes] = {}

    def draw(key: TestPartKey) -> str:
        drawn[key.part] = bytes(key._secret.reveal())
        return "noisy"

    for part in release.parts:
        measure_or_load(store, part, draw)
    assert list(drawn) == [part.name for part in release.parts]
    assert len(set(drawn.values())) == len(release.parts) > 2
    for name, key in drawn.items():
        expected = derive_part_key(run, release.digest(), commitment, name)
        assert key == bytes(expected._secret.reveal()), name
