"""A SafeTab run that is killed at any stage: what the same command does next, and what it has cost."""

import signal
import textwrap
from pathlib import Path

import pytest

from censafe.privacy.ledger.entries import read_contents
from censafe.privacy.ledger.report import verify
from support.apart import run_apart
from support.commands import CommandLine
from support.ledgers import stated
from support.safetab_folders import SafetabFolders, t1_of

KILL = "lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)"
# Where the process dies, as a patch that is in place before the command starts.
STAGES = {
    "while the records are read": f"intake.SafetabSource.load = {KILL}",
    "while a level is measured": """
        measure = measuring.measure_adaptive
        def second(source, queries, *a, **k):
            if queries[0].level == "usa_2":
                os.kill(os.getpid(), signal.SIGKILL)
            return measure(source, queries, *a, **k)
        measuring.measure_adaptive = second
    """,
    "before the third commit": """
        commit = ledger.Ledger.commit
        def third(self, reservation, file, sha256):
            if len(self.committed(reservation.run)) == 2:
                os.kill(os.getpid(), signal.SIGKILL)
            commit(self, reservation, file, sha256)
        ledger.Ledger.commit = third
    """,
    "while the tables are published": f"release.write_group_tidy = {KILL}",
    "before the manifest has its name": """
        import pathlib
        replace = pathlib.Path.replace
        def last(self, target):
            if self.name == "manifest.json" and "staging" in self.parts:
                os.kill(os.getpid(), signal.SIGKILL)
            return replace(self, target)
        pathlib.Path.replace = last
    """,
}


SAMPLED = ("while a level is measured", "before the manifest has its name")


def _run_and_die(patch: str, *arguments: object) -> None:
    script = (
        "import os, signal, sys\n"
        "from censafe.cli import main\n"
        "from censafe.privacy.ledger import book as ledger\n"
        "from censafe.products.detailed import intake, release\n"
        "from censafe.products.detailed import recipe as measuring\n" + textwrap.dedent(patch) + "\nmain()\n"
    )
    died = run_apart(script, *arguments, "--new-ledger")
    assert died.code == -signal.SIGKILL, died.err


@pytest.mark.parametrize(
    "stage", [pytest.param(one, marks=() if one in SAMPLED else pytest.mark.long) for one in STAGES]
)
def test_the_same_command_finishes_a_killed_run_at_the_planned_cost(
    censafe: CommandLine, folders: SafetabFolders, tmp_path: Path, stage: str
) -> None:
    out, ledger = tmp_path / "out", tmp_path / "censafe-ledger.jsonl"
    command = ("run", "safetab-p", folders.p, folders.data, out, "--quiet", "--set", "coterminous=donor")
    _run_and_die(STAGES[stage], *command)
    assert not (out / "manifest.json").exists()
    committed = {row.file: row.sha256 for row in verify(ledger).rows if row.state == "committed"}
    measured = {name: (out / "measurements" / name).read_bytes() for name in committed}
    expected = {"while the records are read": 0, "while a level is measured": 1, "before the third commit": 2}
    assert len(committed) == expected.get(stage, 6)
    censafe(*command, ends=0)
    report = verify(ledger)
    assert stated(ledger) == [6]
    assert sorted(row.part for row in report.rows if row.state == "committed") == [
        "county_2", "pr_state_2", "state_2", "tract_2", "usa_1", "usa_2",
    ]  # fmt: skip
    assert {name: (out / "measurements" / name).read_bytes() for name in measured} == measured
    assert not [path for path in out.rglob("*") if path.name.startswith(".")]
    assert t1_of(out)
    assert "Nothing was measured or spent" in censafe(*command).err


def test_a_run_with_all_measurements_opens_the_geography_and_no_records(
    censafe: CommandLine, folders: SafetabFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    command = ("run", "safetab-p", folders.p, folders.data, out, "--set", "coterminous=donor")
    _run_and_die(STAGES["while the tables are published"], *command)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("records were read again")

    monkeypatch.setattr("censafe.population.detailed.source.load_records", refuse)
    censafe(*command, ends=0, says="read the geography")
    assert (out / "coterminous" / "t1t2" / "coterminous_classes.csv").exists()


def test_a_kept_key_draws_the_same_noise_again(
    censafe: CommandLine, folders: SafetabFolders, tmp_path: Path
) -> None:
    keys, ledger = tmp_path / "keys", tmp_path / "censafe-ledger.jsonl"
    command = ("run", "safetab-p", folders.p, folders.data, tmp_path / "out", "--key-dir", keys)
    _run_and_die(STAGES["while a level is measured"], *command)
    assert len(list(keys.iterdir())) == 1
    censafe(*command, ends=0)
    events = [entry.event for entry in read_contents(ledger).entries]
    assert "void" not in events
    assert events.count("reserve") == 6
    assert list(keys.iterdir()) == []
