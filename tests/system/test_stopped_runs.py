"""A run of any product that stops by an error, a signal or a kill at any rename or ledger entry, and what comes after."""

from __future__ import annotations

import itertools
import json
import shutil
import signal
import stat
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from censafe.privacy.ledger.book import Ledger
from censafe.privacy.ledger.report import verify
from censafe.products.phsafe.estimates import STATEMENT
from censafe.publication.atomic import sha256_file
from support.apart import run_apart
from support.commands import CommandLine, everyone_config, write_config
from support.safetab_folders import write_folders
from support.topdown_inputs import write_1940

Command = tuple[object, ...]
Stop = Callable[..., bool]
"""Stop a command at the numbered rename; whether it got as far."""
EVERY = 30  # points at which a run writes, at least
SAMPLED = (3, 9)
INTERVALS = ("--intervals", "--simulations", "0", "--confidence", "0.95", "--query", "total")


class InjectedError(BaseException):
    pass


@pytest.fixture
def commands(data: Path, config: Path, tmp_path: Path) -> dict[str, Command]:
    """A release of every product that takes the small populations."""
    safetab = write_folders(tmp_path / "safetab")
    return {
        "phsafe": ("run", "phsafe", config, data),
        "phsafe for everyone": ("run", "phsafe", write_config(tmp_path / "everyone.json", everyone_config()), data),
        "safetab-p": ("run", "safetab-p", safetab.p, safetab.data),
        "safetab-h": ("run", "safetab-h", safetab.h, safetab.data),
        "topdown": ("run", "topdown", "e2e-1940", write_1940(tmp_path / "topdown" / "data")),
    }  # fmt: skip


def _fail_at(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Raise at one of the moments at which something is reserved, committed or given its name."""
    counter = itertools.count()

    def failing(owner: type, method: str) -> None:
        real: Callable[..., object] = getattr(owner, method)

        def step(*arguments: object, **options: object) -> object:
            if next(counter) == number:
                raise InjectedError
            return real(*arguments, **options)

        monkeypatch.setattr(owner, method, step)

    failing(Path, "replace")
    failing(Path, "rename")
    failing(Ledger, "reserve")
    failing(Ledger, "commit")


def _stop_and_finish(
    censafe: CommandLine, monkeypatch: pytest.MonkeyPatch, command: Command, folder: Path, number: int
) -> bool:
    """Whether the run was stopped there; afterwards the same command finishes it at the planned cost."""
    folder.mkdir()
    out, ledger = folder / "out", folder / "ledger.jsonl"
    whole = (*command, out, "--quiet", "--ledger", ledger)
    with monkeypatch.context() as patch:
        _fail_at(patch, number)
        try:
            censafe(*whole, ends=0)
            stopped = False
        except InjectedError:
            stopped = True
    done = censafe(*whole)
    assert done.code == 0, (number, done.err)
    report = verify(ledger)
    paid = [row.part for row in report.rows if row.state == "committed"]
    assert len(paid) == len(set(paid)) == len({row.part for row in report.rows})
    assert {row.state for row in report.rows} <= {"committed", "void"}
    assert not (out / ".censafe").exists()
    assert not list(Path(str(command[3])).parent.glob(".censafe-scratch-*"))
    return stopped


@pytest.mark.parametrize("product", ["phsafe", "safetab-p"])
def test_a_run_that_fails_somewhere_is_finished_by_the_same_command(
    censafe: CommandLine,
    commands: dict[str, Command],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    product: str,
) -> None:
    for number in SAMPLED:
        assert _stop_and_finish(censafe, monkeypatch, commands[product], tmp_path / str(number), number)


@pytest.mark.long
@pytest.mark.parametrize("product", ["phsafe", "safetab-p"])
def test_a_run_that_fails_anywhere_is_finished_by_the_same_command(
    censafe: CommandLine,
    commands: dict[str, Command],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    product: str,
) -> None:
    points = itertools.count()
    stopped = itertools.takewhile(
        lambda number: _stop_and_finish(
            censafe, monkeypatch, commands[product], tmp_path / str(number), number
        ),
        points,
    )
    assert len(list(stopped)) > EVERY


def test_the_key_of_a_run_goes_when_nothing_is_reserved_and_stays_while_something_is(
    censafe: CommandLine, commands: dict[str, Command], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, out = tmp_path / "keys", tmp_path / "out"
    command = (*commands["phsafe"], out, "--quiet", "--ledger", tmp_path / "l.jsonl", "--key-dir", keys)
    censafe(*command, "--cap", "1", ends=3)
    assert list(keys.iterdir()) == []
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "commit", lambda *_: (_ for _ in ()).throw(InjectedError()))
        with pytest.raises(InjectedError):
            censafe(*command)
    assert len(list(keys.iterdir())) == 1
    keys.chmod(0o770)
    censafe(*command, ends=1, says="others may write in this key folder")
    keys.chmod(0o700)
    censafe(*command, ends=0)
    assert list(keys.iterdir()) == []
    assert {row.state for row in verify(tmp_path / "l.jsonl").rows} == {"committed"}


def test_an_input_that_changes_while_it_is_read_is_not_measured(
    censafe: CommandLine, commands: dict[str, Command], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from censafe.tabulation.tables.counting import CountAccumulator

    command = (*commands["phsafe"], tmp_path / "out", "--quiet", "--ledger", tmp_path / "l.jsonl")
    persons = next(path for path in Path(str(command[3])).iterdir() if path.name.startswith("persons"))
    before, finish = persons.read_bytes(), CountAccumulator.finish

    def change(self: CountAccumulator, *arguments: object) -> object:
        persons.write_bytes(before + b"\n")
        return finish(self, *arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(CountAccumulator, "finish", change)
        refused = censafe(*command)
    assert refused.code == 1
    assert f"{persons.name} changed while the run was reading" in refused.err
    assert verify(tmp_path / "l.jsonl").rows == ()
    assert not (tmp_path / "out").exists()
    persons.write_bytes(before)
    censafe(*command, ends=0)


def test_a_finished_run_is_checked_against_its_manifest(
    censafe: CommandLine, commands: dict[str, Command], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    command = (*commands["phsafe for everyone"], out, "--quiet", "--test-key", "1")
    censafe(*command, ends=0)
    censafe(*command, ends=0)
    (out / "notes.csv").write_text("mine")
    censafe(*command, ends=4, says="notes.csv")
    (out / "notes.csv").unlink()
    (out / "codebook.csv").write_text("changed")
    censafe(*command, ends=4, says="codebook.csv: changed")
    censafe("estimate", out, "--quiet", ends=0)
    censafe(*command, ends=0)


def _dies_at(number: int, *command: object) -> bool:
    """Whether a command of its own process got as far as one of its renames, and was killed there."""
    script = f"""
        import itertools, os, pathlib, signal
        from censafe.cli import main
        counter = itertools.count()
        def killing(real):
            def step(self, target):
                if next(counter) == {number}:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(self, target)
            return step
        pathlib.Path.replace = killing(pathlib.Path.replace)
        pathlib.Path.rename = killing(pathlib.Path.rename)
        main()
    """
    return run_apart(textwrap.dedent(script), *command, "--quiet").code == -signal.SIGKILL


@pytest.fixture
def stops_at(censafe: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Stop:
    """As a kill at one of the renames, but in this process, which is quicker."""

    def stops(number: int, *command: object) -> bool:
        with monkeypatch.context() as patch:
            _fail_at(patch, number)
            try:
                censafe(*command, "--quiet", ends=0)
            except InjectedError:
                return True
        return False

    return stops


def _estimates_survive(censafe: CommandLine, command: Command, stop: Stop, number: int) -> bool:
    out = Path(str(command[4]))
    choices = {"phsafe": (), "topdown": INTERVALS}
    killed = stop(number, "estimate", out, *choices.get(str(command[1]), ("--config", command[2])))
    done = censafe(*command)
    assert done.code == 0, (number, done.err)  # verified against its manifest
    assert not (out / ".censafe").exists()
    return killed


def test_an_estimate_that_is_killed_leaves_one_generation(
    censafe: CommandLine, commands: dict[str, Command], tmp_path: Path
) -> None:
    command = (*commands["phsafe for everyone"], tmp_path / "out", "--quiet", "--test-key", "1")
    censafe(*command, ends=0)
    assert _estimates_survive(censafe, command, _dies_at, 20)


@pytest.mark.parametrize(("product", "numbers"), [("safetab-h", (4, 14)), ("topdown", (20, 38))])
def test_an_estimate_that_stops_somewhere_leaves_one_generation(
    censafe: CommandLine,
    commands: dict[str, Command],
    tmp_path: Path,
    stops_at: Stop,
    product: str,
    numbers: tuple[int, ...],
) -> None:
    command = (*commands[product], tmp_path / "out", "--quiet", "--test-key", "1")
    censafe(*command, ends=0)
    for number in numbers:
        assert _estimates_survive(censafe, command, stops_at, number)


@pytest.mark.long
@pytest.mark.parametrize("product", ["phsafe", "safetab-p", "safetab-h", "topdown"])
def test_an_estimate_that_is_killed_at_any_rename_leaves_one_generation(
    censafe: CommandLine, commands: dict[str, Command], tmp_path: Path, product: str
) -> None:
    command = (*commands[product], tmp_path / "out", "--quiet", "--test-key", "1")
    censafe(*command, ends=0)
    killed = itertools.takewhile(
        lambda number: _estimates_survive(censafe, command, _dies_at, number), itertools.count()
    )
    assert len(list(killed)) > 10


@pytest.fixture
def estimated(censafe: CommandLine, commands: dict[str, Command], tmp_path: Path) -> Command:
    """The command that makes estimates from a public table, done once before."""
    out = tmp_path / "run"
    censafe(*commands["phsafe"], out, "--quiet", "--test-key", "1", ends=0)
    noisy = shutil.copytree(out / "tables" / "PH2", tmp_path / "noisy" / "PH2").parent
    (tmp_path / "from").mkdir()
    command = ("estimate", "phsafe", tmp_path / "from" / "files", "--measurements", noisy)
    censafe(*command, "--set", "alpha=0.1", ends=0)
    return command


def _files_survive(censafe: CommandLine, command: Command, stop: Stop, number: int) -> bool:
    out = Path(str(command[2]))
    (out / "notes.txt").write_text("mine")
    killed = stop(number, *command)
    if (out / STATEMENT).exists():
        _whole(out)
    censafe(*command, ends=0)
    assert [path.name for path in out.parent.iterdir()] == ["files"]
    assert {path.name for path in out.iterdir()} == {"PH2", "estimates.parquet", STATEMENT, "notes.txt"}
    assert _whole(out) == 0.05
    return killed


def _whole(out: Path) -> float:
    """The error rate of estimates of which every file is the one that the statement names."""
    statement = json.loads((out / STATEMENT).read_text(encoding="utf-8"))
    found = {name: sha256_file(out / name) for name in statement["outputs"]}
    assert found == statement["outputs"]
    return float(statement["settings"]["alpha"])


def test_estimates_from_files_that_stop_somewhere_leave_one_generation(
    censafe: CommandLine, estimated: Command, stops_at: Stop
) -> None:
    for number in (3, 9):
        assert _files_survive(censafe, estimated, stops_at, number)


@pytest.mark.long
def test_estimates_from_files_that_are_killed_at_any_rename_leave_one_generation(
    censafe: CommandLine, estimated: Command
) -> None:
    killed = itertools.takewhile(
        lambda number: _files_survive(censafe, estimated, _dies_at, number), itertools.count()
    )
    assert len(list(killed)) > 5


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.long)]
)
def test_a_signal_keeps_what_is_reserved_and_removes_scratch(
    censafe: CommandLine, commands: dict[str, Command], tmp_path: Path, number: int, code: int
) -> None:
    out, ledger = tmp_path / "out", tmp_path / "l.jsonl"
    command = (*commands["phsafe"], out, "--quiet", "--ledger", ledger)
    script = (
        "import os, signal, time\nsignal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it\n"
        "from censafe.cli import main\nfrom censafe.products.phsafe import recipe\n"
        f"recipe.measure = lambda *a: (os.kill(os.getpid(), {int(number)}), time.sleep(30))\nmain()\n"
    )
    stopped = run_apart(script, *command)
    assert stopped.code == code
    messages = stopped.err.splitlines()
    assert messages[0].startswith("Ledger ")
    assert messages[1:] == ["Stopped. Run the same command again to resume."]
    assert (out / ".censafe" / "identity.json").exists()
    assert not list(Path(str(command[3])).parent.glob(".censafe-scratch-*"))
    censafe(*command, ends=0)
    assert list(verify(ledger).totals[0].stated.values()) == [46]


@pytest.mark.parametrize("verb", [("truth", "--confidential"), ("evaluate", "--trials", "2")])
def test_what_compares_with_the_truth_is_for_its_owner_alone(
    censafe: CommandLine, data: Path, config: Path, tmp_path: Path, verb: tuple[str, ...]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    censafe(verb[0], "phsafe", config, data, out, *verb[1:], "--quiet", ends=0)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (out, *out.rglob("*"))}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}


def test_a_killed_truth_starts_again_without_what_it_left(
    censafe: CommandLine, data: Path, config: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    script = (
        "import os, signal\nfrom censafe.cli import main\nfrom censafe.evaluation import confidential\n"
        "real = confidential.atomic_text\n"
        "def write(path, text):\n"
        "    if path.name == 'manifest.json':\n        os.kill(os.getpid(), signal.SIGKILL)\n    return real(path, text)\n"
        "confidential.atomic_text = write\nmain()\n"
    )
    command = ("truth", "phsafe", config, data, out, "--confidential", "--quiet")
    assert run_apart(script, *command).code == -signal.SIGKILL
    assert (out / "tables").exists() and (out / "CONFIDENTIAL.txt").exists()
    (out / ".tables.00.partial").write_text("confidential")
    out.chmod(0o750)
    censafe(*command, ends=0)
    assert not [path for path in out.rglob("*") if path.name.startswith(".")]
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
