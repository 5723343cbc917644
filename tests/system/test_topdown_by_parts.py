"""Estimates from public files part by part: the same bytes as at once, and on from where a stopped estimation left off."""

import json
import shutil
from pathlib import Path

import pytest

from censafe.products.topdown.public.estimate import PartedHistogram
from censafe.publication.measurements.levels import CONSTRAINT, DPQUERY
from support.commands import CommandLine, Outcome
from support.noisy_measurements import rewrite
from support.runs import Runs
from support.topdown_areas import write_pl94

FOLDER = "US_Person_1940_E2E"


def histograms(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((out / "histograms").iterdir())}


@pytest.fixture(scope="module")
def finished(runs: Runs, districts: Path, finished_1940: Path) -> dict[str, Path]:
    """Runs of 1940 with own answers, and with all answers below; they have the same measurements."""
    lower = runs("topdown", "e2e-1940", districts, "--test-key", 1, "--set", "information=lower")
    return {"level": finished_1940, "lower": lower}


@pytest.fixture
def files(finished_1940: Path, tmp_path: Path) -> Path:
    """A copy of the measurements, which may be changed."""
    return Path(shutil.copytree(finished_1940 / "measurements", tmp_path / "files"))


def estimate(censafe: CommandLine, out: Path, files: Path, *more: object) -> Outcome:
    return censafe("estimate", "topdown", "e2e-1940", out, "--measurements", files, "--quiet", *more)


def states(files: Path, level: str) -> list[str]:
    return sorted(path.name for path in (files / FOLDER / f"{level}.parquet" / CONSTRAINT).iterdir())


@pytest.mark.parametrize("information", ["level", "lower"])
@pytest.mark.parametrize("workers", [1, 2])
def test_parts_give_the_bytes_of_the_whole(
    censafe: CommandLine,
    finished: dict[str, Path],
    files: Path,
    tmp_path: Path,
    information: str,
    workers: int,
) -> None:
    assert len(states(files, "County")) > 1
    choice = ("--set", f"information={information}", "--workers", workers)
    done = estimate(censafe, tmp_path / "out", files, *choice)
    assert done.code == 0, done.err
    assert histograms(finished[information]) == histograms(tmp_path / "out")
    assert not (tmp_path / "out" / ".censafe").exists()
    wanted, found = (
        json.loads((out / "manifest.json").read_text())["post_processing"]["levels_persons"]
        for out in (finished[information], tmp_path / "out")
    )
    for one, other in zip(wanted, found, strict=True):
        assert one.pop("rounding_cost") == pytest.approx(other.pop("rounding_cost"))
        assert one == other


def together(files: Path) -> None:
    """Move the files of all states into one folder, as a reader that knows no partition would write them."""
    for table in (DPQUERY, CONSTRAINT):
        for level in ("County", "Enumdist"):
            folder = files / FOLDER / f"{level}.parquet" / table
            for place in sorted(folder.iterdir()):
                for path in sorted(place.iterdir()):
                    path.rename(folder / f"{place.name}-{path.name}")
                place.rmdir()


def test_without_folders_of_states_everything_is_read_together(
    censafe: CommandLine,
    finished: dict[str, Path],
    files: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    together(files)
    monkeypatch.delattr(PartedHistogram, "estimated")  # nothing goes part by part
    done = estimate(censafe, tmp_path / "out", files, "--set", "information=lower")
    assert done.code == 0, done.err
    assert histograms(finished["lower"]) == histograms(tmp_path / "out")


@pytest.mark.parametrize("information", ["level", "lower"])
def test_a_stopped_estimation_goes_on_after_the_last_state(
    censafe: CommandLine,
    finished: dict[str, Path],
    files: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    information: str,
) -> None:
    out, choice = tmp_path / "out", ("--set", f"information={information}")
    one, done = PartedHistogram._below, []

    def counted(*words: object) -> object:
        if len(done) == 1:
            raise KeyboardInterrupt
        done.append(words[1])
        return one(*words)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(PartedHistogram, "_below", counted)
        assert estimate(censafe, out, files, *choice).code != 0
    stored = sorted(path.name for path in (out / ".censafe" / "parts").iterdir())
    assert not (out / "histograms").exists()
    assert len([name for name in stored if name.endswith(".parquet")]) == 1
    assert len([name for name in stored if name.endswith(".npz")]) == (
        2 * len(states(files, "County")) if information == "lower" else 0
    )
    other = estimate(censafe, out, files, "--set", "leaves=all_positive")
    assert other.code == 2
    assert "different configuration" in other.err
    done.clear()
    done.append(None)  # the first state is not estimated again
    swept: list[object] = []
    with monkeypatch.context() as patched:
        patched.setattr(PartedHistogram, "_below", lambda *words: done.append(words[1]) or one(*words))
        patched.setattr("censafe.products.topdown.public.estimate.lower_estimates", _counting(swept))
        resumed = estimate(censafe, out, files, *choice)
    assert resumed.code == 0, resumed.err
    assert len(done) == len(states(files, "County"))
    assert len(swept) == (1 if information == "lower" else 0)  # the levels down to the states alone
    assert histograms(finished[information]) == histograms(out)
    assert not (out / ".censafe").exists()


def _counting(calls: list[object]):  # type: ignore[no-untyped-def]
    from censafe.estimation.topdown.whole_tree.sweep import lower_estimates

    def counted(*words: object, **named: object) -> object:
        calls.append(words)
        return lower_estimates(*words, **named)  # type: ignore[arg-type]

    return counted


def cut_short(files: Path) -> str:
    path = next((files / FOLDER / "Enumdist.parquet" / DPQUERY / states(files, "Enumdist")[-1]).iterdir())
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-30])
    return "cut short or damaged"


def without_exact_figures(files: Path) -> str:
    place = states(files, "County")[-1]
    shutil.rmtree(files / FOLDER / "County.parquet" / CONSTRAINT / place)
    return f"files in {place}, but none there"


def of_another_product(files: Path) -> str:
    path = next((files / FOLDER / "County.parquet" / DPQUERY / states(files, "County")[-1]).iterdir())
    path.chmod(0o644)
    rewrite(path, lambda rows: [{**rows[0], "query_shape": [1, 1, 1, 5], "value": [1] * 5}, *rows[1:]])
    return "is no query that the configuration measures at this level"


@pytest.mark.parametrize("damage", [cut_short, without_exact_figures])
def test_what_shows_in_the_folders_is_refused_before_anything_is_estimated(
    censafe: CommandLine, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: object
) -> None:
    message = damage(files)  # type: ignore[operator]
    monkeypatch.delattr(PartedHistogram, "estimated")
    done = estimate(censafe, tmp_path / "out", files)
    assert done.code == 1
    assert message in done.err
    assert not (tmp_path / "out").exists()


def test_rows_that_are_wrong_in_the_last_state_leave_nothing_published(
    censafe: CommandLine, files: Path, tmp_path: Path
) -> None:
    message = of_another_product(files)
    done = estimate(censafe, tmp_path / "out", files)
    assert done.code == 1
    assert message in done.err
    assert [path.name for path in (tmp_path / "out").iterdir()] == [".censafe"]


def test_puerto_rico_comes_back_from_its_files(censafe: CommandLine, tmp_path: Path) -> None:
    data, choice = (
        write_pl94(tmp_path / "data", (72,), areas=False),
        ("--set", "information=lower", "--quiet"),
    )
    out, repeated = tmp_path / "out", tmp_path / "again"
    censafe("run", "topdown", "pl94-pr", data, out, "--test-key", 3, *choice, ends=0)
    files = out / "measurements"
    assert {path.name for path in files.iterdir() if path.is_dir()} == {
        "PR_Person_PL_PROD",
        "PR_Unit_PL_PROD",
    }
    censafe("estimate", "topdown", "pl94-pr", repeated, "--measurements", files, *choice, ends=0)
    assert histograms(out) == histograms(repeated)
