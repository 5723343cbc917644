"""A run that is killed at any stage: what the same command does next, and what it has cost."""

import signal
import textwrap
from pathlib import Path

import pytest

from censafe.privacy.ledger.entries import read_contents
from censafe.privacy.ledger.report import verify
from support.apart import run_apart
from support.commands import CommandLine
from support.ledgers import stated

KILL = "lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)"
# Where the process dies, as a patch that is in place before the command starts.
STAGES = {
    "while the records are counted": f"intake.HouseholdIntake.count = {KILL}",
    "after the first reservation": f"recipe.measure = {KILL}",
    "while the measurement file is written": f"files.sha256_file = {KILL}",
    "before the commit": f"ledger.Ledger.commit = {KILL}",
    "after three commits": """
        commit = ledger.Ledger.commit
        def third(self, reservation, file, sha256):
            commit(self, reservation, file, sha256)
            if len(self.committed(reservation.run)) == 3:
                os.kill(os.getpid(), signal.SIGKILL)
        ledger.Ledger.commit = third
    """,
    "before the run is closed": f"ledger.Ledger.close_run = {KILL}",
    "while the tables are published": f"release.write_tidy = {KILL}",
    "before the manifest has its name": f"folder.move_into_place = {KILL}",
}

SAMPLED = ("after the first reservation", "after three commits", "before the manifest has its name")


def _run_and_die(patch: str, *arguments: object) -> None:
    script = (
        "import os, signal, sys\n"
        "from censafe.cli import main\n"
        "from censafe.privacy.ledger import book as ledger\n"
        "from censafe.products.run import account, folder, runner\n"
        "from censafe.products.phsafe import intake, recipe, release\n"
        "from censafe.publication.measurements import sealed as files\n"
        + textwrap.dedent(patch)
        + "\nmain()\n"
    )
    died = run_apart(script, *arguments, "--new-ledger")
    assert died.code == -signal.SIGKILL, died.err


@pytest.mark.parametrize(
    "stage", [pytest.param(one, marks=() if one in SAMPLED else pytest.mark.long) for one in STAGES]
)
def test_the_same_command_finishes_a_killed_run_at_the_planned_cost(
    censafe: CommandLine, data: Path, config: Path, tmp_path: Path, stage: str
) -> None:
    out, ledger = tmp_path / "out", tmp_path / "censafe-ledger.jsonl"
    command = ("run", "phsafe", config, data, out, "--quiet")
    _run_and_die(STAGES[stage], *command)
    assert not (out / "manifest.json").exists()
    assert not (out / "tables").exists()
    committed = {row.file: row.sha256 for row in verify(ledger).rows if row.state == "committed"}
    measured = {name: (out / "measurements" / name).read_bytes() for name in committed}
    censafe(*command, ends=0)
    report = verify(ledger)
    assert stated(ledger) == [46]
    assert sorted(row.part for row in report.rows if row.state == "committed") == sorted(
        {row.part for row in report.rows}
    )
    assert {name: (out / "measurements" / name).read_bytes() for name in measured} == measured
    assert not [path for path in out.rglob("*") if path.name.startswith(".")]


def test_a_kept_key_redoes_the_reserved_part_without_a_new_reservation(
    censafe: CommandLine, data: Path, config: Path, tmp_path: Path
) -> None:
    keys, ledger = tmp_path / "keys", tmp_path / "censafe-ledger.jsonl"
    command = ("run", "phsafe", config, data, tmp_path / "out", "--key-dir", keys)
    _run_and_die(STAGES["while the measurement file is written"], *command)
    assert len(list(keys.iterdir())) == 1
    censafe(*command, ends=0)
    events = [entry.event for entry in read_contents(ledger).entries]
    assert "void" not in events
    assert events.count("reserve") == 9
    assert list(keys.iterdir()) == []


def test_a_strict_ledger_counts_the_lost_reservation(
    censafe: CommandLine, data: Path, config: Path, tmp_path: Path
) -> None:
    ledger = tmp_path / "censafe-ledger.jsonl"
    command = ("run", "phsafe", config, data, tmp_path / "out", "--strict-ledger")
    _run_and_die(STAGES["after the first reservation"], *command)
    censafe(*command, ends=3, says="the cap of rho = 46")
    censafe(*command, "--cap", "52", ends=0)
    assert stated(ledger) == [52]


def test_lost_and_foreign_measurements_stop_the_run(
    censafe: CommandLine, data: Path, config: Path, tmp_path: Path
) -> None:
    out, ledger = tmp_path / "out", tmp_path / "censafe-ledger.jsonl"
    command = ("run", "phsafe", config, data, out, "--quiet")
    _run_and_die(STAGES["after three commits"], *command)
    victim = out / "measurements" / "PH2.parquet"
    before = victim.read_bytes()
    victim.unlink()
    censafe(*command, ends=4, says=("PH2.parquet", "never measured again"))
    victim.write_bytes(before)
    ledger.rename(tmp_path / "moved.jsonl")
    (tmp_path / "censafe-ledger.key").rename(tmp_path / "moved.key")
    foreign = censafe(*command)
    assert foreign.code in (2, 4)  # another ledger has another key, so the input has another commitment
    assert "another run" in foreign.err or "has no entry" in foreign.err
    censafe(*command, "--ledger", tmp_path / "moved.jsonl", ends=0)


def test_what_a_killed_run_left_in_another_scratch_place_goes(
    censafe: CommandLine, data: Path, config: Path, tmp_path: Path
) -> None:
    command = ("run", "phsafe", config, data, tmp_path / "out", "--quiet", "--test-key", "1")
    _run_and_die(STAGES["while the records are counted"], *command, "--scratch", tmp_path / "other")
    assert len(list((tmp_path / "other").iterdir())) == 1
    censafe(*command, ends=0)
    assert list((tmp_path / "other").iterdir()) == []
