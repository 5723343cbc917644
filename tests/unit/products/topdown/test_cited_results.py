"""A published result that a run cites: what it admits in the ledger, and that it is the unchanged release of the same records."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from censafe.errors import CheckError, DataError, OverspendError, StorageError, UsageError
from censafe.model import SparseLevel
from censafe.products.run.options import ReadOptions, RunOptions
from censafe.products.topdown import recipe
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.intake import results as results_module
from censafe.products.topdown.intake.results import (
    MicrodataResult,
    PublishedResult,
    open_results,
    require_same_use,
)
from censafe.products.topdown.plan import plan_release
from censafe.publication.microdata.histograms import write_histograms
from censafe.publication.stamps import stamp_of
from support.ledgers import FILES, make_part, make_plan, open_ledger, spend

CITED, OTHER = "ab" * 8, "cd" * 8
BLOCKS = np.array(["4400101", "4400102", "4400103"])
LEVEL = SparseLevel(
    BLOCKS, np.array([0, 1, 3, 4]), np.array([0, 1, 2, 0], np.int32), np.array([5, 1, 2, 9], np.int32)
)


def published(folder: Path, **manifest: Any) -> PublishedResult:
    """A finished run of the redistricting data with histograms of three blocks."""
    (folder / "histograms").mkdir(parents=True)
    place = "histograms/persons_Block.parquet"
    digest = write_histograms(folder / place, LEVEL, schema="pl94-persons")
    config = SimpleNamespace(origin="pl94-us", settings={"levels": "State:2,Block:16"})
    facts: dict[str, Any] = {
        "outputs": {place: digest, "manifest.json": "f" * 64},
        "config": config,
        "test_key": False,
    }
    facts |= {"published_data": False, "run": CITED, "ledger": None, "parts": (), **manifest}
    facts.setdefault("plan", plan_release(load_config("pl94-us")))
    stamp = stamp_of(test_key=facts["test_key"], published_data=facts["published_data"])
    return PublishedResult("redistricting", {}, folder, stamp, SimpleNamespace(**facts))  # type: ignore[arg-type]


def options_of_a_run(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    given: RunOptions,
    result: PublishedResult | MicrodataResult,
) -> RunOptions:
    """What a run of the DHC that names a result opens its account with."""
    seen: list[RunOptions] = []
    config = load_config("dhc-us")
    monkeypatch.setattr(recipe, "load_for_data", lambda *_: config)
    monkeypatch.setattr(recipe, "_compile_soon", lambda *_: None)
    monkeypatch.setattr(recipe, "open_results", lambda _, folders: tuple(result for name in folders))
    monkeypatch.setattr(recipe, "require_same_use", lambda *_, **__: None)
    monkeypatch.setattr(recipe, "run_job", lambda job, data, out, reading, options: seen.append(options))
    reading = ReadOptions(results={"redistricting": tmp_path / "pl94"})
    recipe.run("dhc-us", tmp_path / "data", tmp_path / "out", {}, reading, given)
    (options,) = seen
    return options


@pytest.mark.parametrize("operator", [False, True], ids=["not confirmed", "--spend-more"])
@pytest.mark.parametrize("others", [(), (OTHER,)], ids=["cited run", "another run as well"])
def test_a_named_result_admits_its_own_run_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, operator: bool, others: tuple[str, ...]
) -> None:
    given = RunOptions(tables=("none",), spend_more=operator)
    options = options_of_a_run(monkeypatch, tmp_path, given, published(tmp_path / "pl94"))
    ledger = tmp_path / "ledger.jsonl"
    plan, earlier = (plan_release(load_config(name)) for name in ("dhc-us", "pl94-us"))
    spend(ledger, earlier, run=CITED)
    for run in others:
        spend(ledger, earlier, run=run, spend_more=True)
    with open_ledger(ledger) as opened:
        accounts = opened.accounts(FILES.values())
        if others and not operator:
            with pytest.raises(OverspendError, match="`spend_more`"):
                opened.open_run(plan, accounts=accounts, spend_more=options.spend_more)
        else:
            record = opened.open_run(plan, accounts=accounts, spend_more=options.spend_more)
            assert record.cap.amount - plan.total == (1 + len(others)) * earlier.total


def test_a_result_whose_run_is_not_known_admits_its_carried_cost_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    result = MicrodataResult("redistricting", {}, tmp_path, None, "pl94-us", {})
    options = options_of_a_run(monkeypatch, tmp_path, RunOptions(tables=("none",)), result)
    assert options.spend_more == frozenset({result.digest[:16]})


def test_a_run_that_is_known_is_known_when_the_run_goes_on_and_later_ones_are_not(tmp_path: Path) -> None:
    ledger, plan = tmp_path / "ledger.jsonl", make_plan(make_part("PH1", "1/2"))
    spend(ledger, plan, run=CITED)
    mine, known = "ef" * 8, frozenset({CITED})
    with open_ledger(ledger) as opened:
        accounts = opened.accounts(FILES.values())
        opened.open_run(plan, accounts=accounts, run=mine, spend_more=known)
        assert opened.open_run(plan, accounts=accounts, run=mine).run == mine
    spend(ledger, plan, run=OTHER, spend_more=True)
    with open_ledger(ledger) as opened, pytest.raises(OverspendError, match="`spend_more`"):
        opened.open_run(plan, accounts=opened.accounts(FILES.values()), run=mine, spend_more=known)


def test_published_histograms_are_those_that_the_manifest_names(tmp_path: Path) -> None:
    result = published(tmp_path)
    assert result.blocks("persons", BLOCKS).count.tolist() == LEVEL.count.tolist()
    with pytest.raises(DataError, match="1 blocks that the block files of the records do not have"):
        result.blocks("persons", BLOCKS[:2])
    with pytest.raises(CheckError, match=r"has no histograms/units_Block\.parquet"):
        result.blocks("units", BLOCKS)
    file = tmp_path / "histograms" / "persons_Block.parquet"
    file.unlink()
    with pytest.raises(StorageError, match="the file is not there"):
        result.blocks("persons", BLOCKS)
    write_histograms(file, replace(LEVEL, count=LEVEL.count + np.int32(1)), schema="pl94-persons")
    for read in (lambda: result.blocks("persons", BLOCKS), lambda: result.published_blocks("persons")):
        with pytest.raises(CheckError, match="was changed after it was published"):
            read()


def test_the_digest_of_a_result_is_that_of_its_histograms(tmp_path: Path) -> None:
    one = published(tmp_path / "one")
    others = {"histograms/persons_Block.parquet": "e" * 64}, {"histograms/units_Block.parquet": "e" * 64}
    digests = {published(tmp_path / str(place), outputs=other).digest for place, other in enumerate(others)}
    assert len({one.digest, *digests}) == 3
    later = published(tmp_path / "later", outputs={**one.manifest.outputs, "manifest.json": "0" * 64})
    assert later.digest == one.digest


@pytest.mark.parametrize(
    ("stamp", "test_key", "published_data", "message"),
    [
        ("test_key", False, False, "was drawn with a test key and is not private"),
        ("test_key", False, True, "was drawn with a test key and is not private"),
        ("test_key", True, False, None),
        ("published_data", False, False, "is a demonstration with published data"),
        ("published_data", False, True, None),
        ("published_data", True, False, None),
        (None, False, False, None),
    ],
)
def test_a_release_cites_releases_alone(
    tmp_path: Path, stamp: str | None, test_key: bool, published_data: bool, message: str | None
) -> None:
    result = published(tmp_path, **({} if stamp is None else {stamp: True}))
    if message is None:
        require_same_use((result,), test_key=test_key, published_data=published_data)
        return
    with pytest.raises(UsageError, match=message):
        require_same_use((result,), test_key=test_key, published_data=published_data)


@pytest.mark.parametrize("wrong", ["product", "schema", "no schema", None])
def test_a_run_of_another_configuration_is_no_result(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wrong: str | None
) -> None:
    """The schemas of the histograms tell it, which is what the constraints refer to."""
    schemas = {one.name: one.schema.digest for one in load_config("pl94-us").histograms}
    settings = {f"histograms.{name}.schema": digest for name, digest in schemas.items()}
    if wrong == "schema":
        settings["histograms.units.schema"] = "0" * 64
    elif wrong == "no schema":
        del settings["histograms.units.schema"]
    manifest = SimpleNamespace(
        plan=SimpleNamespace(product="phsafe" if wrong == "product" else "topdown"),
        config=SimpleNamespace(settings=settings),
        stamp=None,
    )
    monkeypatch.setattr(results_module, "read_manifest", lambda _: manifest)
    (tmp_path / "manifest.json").write_text("{}")
    config, folders = load_config("dhc-us"), {"redistricting": tmp_path}
    if wrong is None:
        assert [one.folder for one in open_results(config, folders)] == [tmp_path]
        return
    with pytest.raises(UsageError, match="is not a run of topdown pl94-us, which published redistricting"):
        open_results(config, folders)
