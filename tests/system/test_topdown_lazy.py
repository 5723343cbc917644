"""TopDown with noise drawn where the estimate touches it: the same microdata as with stored noise, stopped or not."""

import hashlib
import json
import signal
import textwrap
from pathlib import Path

import pytest

from censafe.privacy.ledger.entries import read_contents
from censafe.privacy.ledger.report import verify
from support.apart import run_apart
from support.commands import CommandLine
from support.runs import Runs

LAZY = ("--set", "noisy_measurements=lazy", "--quiet")
KILL = "os.kill(os.getpid(), signal.SIGKILL)"
# Where the process dies, as a patch that is in place before the command starts.
STAGES = {
    "while a level is estimated": f"""
        estimate = descending.Descent.estimate
        def third(self, part, objective):
            {KILL} if len(self._levels) == 2 else None
            return estimate(self, part, objective)
        descending.Descent.estimate = third
    """,
    "after a level is finished": f"""
        written = account.MeasurementStore.write
        def once(self, part, measured, files):
            written(self, part, measured, files)
            {KILL} if part.name.endswith("County") else None
        account.MeasurementStore.write = once
    """,
    "while microdata are written": f"files.write_histograms = lambda *a, **k: {KILL}",
}


def microdata(out: Path) -> dict[str, str]:
    """SHA-256 of what a run published about records."""
    found = [*(out / "microdata").iterdir(), *(out / "histograms").iterdir()]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def run(censafe: CommandLine, data: Path, out: Path, *more: object) -> dict[str, str]:
    censafe("run", "topdown", "e2e-1940", data, out, "--quiet", *more, ends=0)
    return microdata(out)


def run_and_die(stage: str, *arguments: object) -> None:
    script = (
        "import os, signal, sys\n"
        "from censafe.cli import main\n"
        "from censafe.products.run import account\n"
        "from censafe.estimation.topdown.levels import descent as descending\nfrom censafe.products.topdown import files\n"
        + textwrap.dedent(STAGES[stage])
        + "\nmain()\n"
    )
    begun = () if "--test-key" in arguments else ("--new-ledger",)
    died = run_apart(script, *arguments, *begun)
    assert died.code == -signal.SIGKILL, died.err


def test_lazy_and_stored_noise_give_the_same_microdata_with_any_number_of_workers(
    censafe: CommandLine, runs: Runs, districts: Path, tmp_path: Path
) -> None:
    key = ("--test-key", 3, "--set", "epsilon=8")
    stored = microdata(runs("topdown", "e2e-1940", districts, *key, "--workers", 1))
    lazy = tmp_path / "lazy"
    assert stored == run(censafe, districts, lazy, *key, *LAZY, "--workers", 2, "--threads", 1)
    names = {path.name for path in (lazy / "measurements").iterdir() if path.suffix == ".parquet"}
    levels = ("National", "State", "County", "Enumdist")
    assert {f"persons_{level}.parquet" for level in levels} <= names
    manifest = json.loads((lazy / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["config"]["settings"]["noisy_measurements"] == "lazy"


def test_a_lazy_run_is_not_estimated_again_and_a_second_run_measures_nothing(
    censafe: CommandLine, runs: Runs, districts: Path, tmp_path: Path
) -> None:
    command = ("topdown", "e2e-1940", districts)
    lazy = ("--test-key", 3, "--set", "noisy_measurements=lazy")
    out = runs.copy(tmp_path / "out", *command, *lazy)
    first, before = microdata(out), (out / "manifest.json").read_bytes()
    censafe("run", *command, out, *lazy, ends=0, says="Nothing was measured or spent")
    assert before == (out / "manifest.json").read_bytes()
    assert first == microdata(out)
    refused = censafe("estimate", out, ends=2)
    assert "lazy" in refused.err or "not kept" in refused.err


@pytest.mark.parametrize("stage", STAGES)
def test_a_killed_lazy_run_goes_on_below_its_last_level_with_the_same_key(
    censafe: CommandLine, runs: Runs, districts: Path, tmp_path: Path, stage: str
) -> None:
    ledger = tmp_path / "ledger.jsonl"
    if stage == "while a level is estimated":  # a key that is kept in a folder
        key: tuple[object, ...] = ("--key-dir", tmp_path / "keys", "--ledger", ledger)
    else:
        key = ("--test-key", 3)
    out = tmp_path / "out"
    run_and_die(stage, "run", "topdown", "e2e-1940", districts, out, *key, *LAZY)
    drawn = {path.name: path.read_bytes() for path in (out / "measurements").glob("*.parquet")}
    assert drawn
    found = run(censafe, districts, out, *key, *LAZY)
    assert drawn == {name: (out / "measurements" / name).read_bytes() for name in drawn}
    if stage != "while a level is estimated":
        assert found == microdata(runs("topdown", "e2e-1940", districts, *key, *LAZY[:2]))
        return
    report = verify(ledger)
    assert [row.state for row in report.rows] == ["committed"] * 4
    events = [entry.event for entry in read_contents(ledger).entries]
    assert events.count("reserve") == 4
    assert list((tmp_path / "keys").iterdir()) == []


def test_a_finished_level_that_was_changed_stops_the_run(
    censafe: CommandLine, districts: Path, tmp_path: Path
) -> None:
    out, ledger = tmp_path / "out", tmp_path / "ledger.jsonl"
    command = ("run", "topdown", "e2e-1940", districts, out, "--ledger", ledger, *LAZY)
    run_and_die("while a level is estimated", *command)
    victim = out / "measurements" / "persons_State.parquet"
    victim.chmod(0o644)
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(bytes(content))
    censafe(*command, ends=4, says="persons_State.parquet")
