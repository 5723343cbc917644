"""The redistricting configurations leave the spine to the data: optimized where blocks have attributes, and the reason elsewhere."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from censafe.model.observer import SilentObserver
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.intake.production_spine import load_for_data
from censafe.products.topdown.intake.results import MicrodataResult
from censafe.products.topdown.intake.spines import load_for_plan, load_of_unknown_run, spine_refusal
from censafe.products.topdown.plan import plan_release, rows_loss
from censafe.products.topdown.readings import record_questions
from censafe.products.topdown.recipe import _cited

AREAS = ("aiannhce", "placefp", "cousubfp")


class Listening(SilentObserver):
    """Keeps what an operator would read."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def remark(self, text: str) -> None:
        self.heard.append(text)


def folder(path: Path, *columns: str, kind: str = "parquet", grfc: bool = False) -> Path:
    """A data folder with the names of columns and no rows: no more is read before the spine is chosen."""
    for name in ("histogram", "units"):
        table = pa.table({column: pa.array([], pa.string()) for column in ("geocode", *columns)})
        if kind == "parquet":
            pq.write_table(table, path / f"{name}.parquet")
        else:
            (path / f"{name}.csv").write_text(",".join(table.schema.names) + "\n", encoding="utf-8")
    if grfc:
        (path / "GRF-C.txt").touch()
    return path


def chosen(data: Path, config: str = "pl94-us", **settings: str) -> tuple[str, bool, str, str]:
    """Spine, whether budgets of only children move, what is recorded, and what an operator reads."""
    listening = Listening()
    found = load_for_data(config, settings, data, ReadOptions(observer=listening))
    return (
        found.choices.spine,
        found.choices.bypass,
        found.overrides.get("spine", ""),
        " ".join(listening.heard),
    )


@pytest.mark.parametrize(
    ("columns", "kind", "grfc", "source"),
    [
        (AREAS, "parquet", False, "the columns aiannhce, placefp, cousubfp of the units"),
        (AREAS, "csv", True, "the columns aiannhce, placefp, cousubfp of the units"),
        ((), "parquet", True, "GRF-C.txt"),
    ],
)
@pytest.mark.parametrize("config", ["pl94-us", "pl94-pr"])
def test_block_attributes_choose_the_spine_of_the_production(
    tmp_path: Path, columns: tuple[str, ...], kind: str, grfc: bool, source: str, config: str
) -> None:
    spine, bypass, recorded, said = chosen(folder(tmp_path, *columns, kind=kind, grfc=grfc), config)
    assert (spine, bypass, recorded) == ("optimized", True, "optimized")
    assert f"Spine: optimized, that of the 2020 production; block attributes from {source}." == said


@pytest.mark.parametrize(("columns", "grfc"), [((), False), (AREAS[:2], True)])
def test_without_them_the_run_says_why_it_is_on_the_standard_one(
    tmp_path: Path, columns: tuple[str, ...], grfc: bool
) -> None:
    spine, bypass, recorded, said = chosen(folder(tmp_path, *columns, grfc=grfc))
    assert (spine, bypass, recorded) == ("standard", False, "standard")
    assert said.startswith("Spine: standard.")
    assert "GRF-C*.txt beside the data, or the columns aiannhce, placefp, cousubfp of the units" in said


def test_exact_totals_that_the_spine_would_part_keep_the_standard_one(tmp_path: Path) -> None:
    settings = {"histograms.persons.exact_totals": "County"}
    spine, _, _, said = chosen(folder(tmp_path, *AREAS), **settings)
    assert spine == "standard"
    assert "totals cannot be exact" in said
    assert load_for_plan("pl94-us", settings).choices.spine == "standard"


@pytest.mark.parametrize("name", ["standard", "aian", "optimized"])
def test_a_setting_decides_before_the_data(tmp_path: Path, name: str) -> None:
    spine, _, recorded, said = chosen(folder(tmp_path, *AREAS), spine=name)
    assert (name, name, "") == (spine, recorded, said)


def test_other_configurations_are_not_asked(tmp_path: Path) -> None:
    assert chosen(folder(tmp_path, *AREAS), "pl94-tracts") == ("standard", False, "", "")
    assert spine_refusal(load_for_plan("blocks-16", {})).startswith("spine: optimized needs the schemas")


def test_a_result_whose_run_is_not_known_costs_what_the_dearer_spine_costs() -> None:
    totals = [
        plan_release(load_config("pl94-us", {"spine": spine})).total for spine in ("standard", "optimized")
    ]
    assert totals[0] < totals[1] == plan_release(load_of_unknown_run("pl94-us")).total
    microdata = MicrodataResult("redistricting", Path("mdf"), {}, "pl94-us", {}, None)
    assert _cited(microdata).plan.total == totals[1]
    dhc = load_config("dhc-us", {"root": "State"})
    own, both = (
        next(one for one in record_questions(dhc) if one.name == name)
        for name in ("one row of each histogram", "one row of each histogram, with pl94-us")
    )
    assert both.loss - own.loss == rows_loss(plan_release(load_of_unknown_run("pl94-us")))
