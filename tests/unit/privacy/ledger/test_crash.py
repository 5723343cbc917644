"""A process killed at every system call of a run: the totals stay exact, and nothing is measured unpaid or twice."""

import os
import subprocess
import sys
from fractions import Fraction
from importlib import import_module

import pytest

from censafe.errors import LedgerError
from censafe.privacy.ledger.entries import read_contents
from censafe.privacy.ledger.report import verify
from censafe.privacy.loss.accountant import derive_totals
from censafe.privacy.loss.promises import Promise
from support.ledgers import FILES, RUN, make_plan, open_ledger, stated

RHO = Promise("zcdp", "add_remove", "person")


def new_name(path):
    """Where the key is until the first line is safe."""
    return path.with_name(f".{path.with_suffix('.key').name}.new")


# For every N one forked process, which kills itself before, or in the middle of, the Nth call that changes the disk.
DRIVER = """
import os, sys
from pathlib import Path
from support.ledgers import FILES, RUN, SHA, make_plan, open_ledger

def killed_at(limit, call, counter):
    def run(descriptor, *rest):
        counter.append(1)
        if len(counter) == limit:
            if rest:
                call(descriptor, bytes(rest[0])[: len(rest[0]) // 2])
            os._exit(9)
        return call(descriptor, *rest)
    return run

def release(folder, limit):
    counter = []
    os.write, os.fsync = killed_at(limit, os.write, counter), killed_at(limit, os.fsync, counter)
    plan = make_plan()
    with open_ledger(folder / "l.jsonl") as ledger:
        ledger.open_run(plan, accounts=ledger.accounts(FILES.values()), run=RUN)
        for part in plan.parts:
            reservation = ledger.reserve(plan, part)
            noise = os.open(folder / f"{part.name}.noise", os.O_WRONLY | os.O_CREAT)
            os.write(noise, b"drawn")
            os.fsync(noise)
            ledger.commit(reservation, f"{part.name}.parquet", SHA)
            os.close(os.open(folder / f"{part.name}.acknowledged", os.O_WRONLY | os.O_CREAT))
        ledger.close_run(plan)
    os._exit(0)

for limit in range(1, 1000):
    folder = Path(sys.argv[1]) / str(limit)
    folder.mkdir()
    child = os.fork()
    if child == 0:
        release(folder, limit)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == 0:
        sys.exit(0)
    if status != 9:
        sys.exit(status)
sys.exit(2)
"""


@pytest.fixture(scope="module")
def crashed(tmp_path_factory):
    """One folder for every system call at which a process was killed; the last one ran to its end."""
    base = tmp_path_factory.mktemp("crash")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", DRIVER, base], env=environment, check=True)
    folders = sorted(base.iterdir(), key=lambda folder: int(folder.name))
    assert len(folders) > 20
    return folders


def test_after_every_crash_all_noise_drawn_is_paid_for(crashed):
    plan = make_plan()
    for folder in crashed:
        drawn = {file.stem for file in folder.glob("*.noise")}
        acknowledged = {file.stem for file in folder.glob("*.acknowledged")}
        with open_ledger(folder / "l.jsonl") as ledger:
            charged = {part.name for part in plan.parts} & (
                set(ledger.reservations(RUN)) | set(ledger.committed(RUN))
            )
            assert drawn <= charged, folder
            assert acknowledged <= set(ledger.committed(RUN)), folder


@pytest.mark.parametrize("strict", [False, True])
def test_after_every_crash_a_restart_ends_with_exact_totals(crashed, strict, tmp_path):
    plan = make_plan()
    for folder in crashed:
        path = tmp_path / f"{folder.name}-{strict}.jsonl"
        path.write_bytes((folder / "l.jsonl").read_bytes())
        for name, copied in (("l.key", path.with_suffix(".key")), (".l.key.new", new_name(path))):
            if (folder / name).exists():
                copied.touch(0o600)
                copied.write_bytes((folder / name).read_bytes())
        with open_ledger(path, strict=strict) as ledger:
            lost = list(ledger.reservations(RUN)) if strict else []
            ledger.settle_open(RUN)
            ledger.open_run(plan, accounts=ledger.accounts(FILES.values()), run=RUN, spend_more=True)
            for part in plan.parts:
                if part.name not in ledger.committed(RUN):
                    ledger.commit(ledger.reserve(plan, part), f"{part.name}.parquet", "0" * 64)
            ledger.close_run(plan)
        expected = plan.total + sum((part.cost for part in plan.parts if part.name in lost), Fraction(0))
        assert [expected] == stated(path)
        derived = derive_totals(entry.body for entry in read_contents(path).entries)
        assert {expected} == {total for (_, promise), total in derived.items() if promise == RHO}


def test_a_reader_sees_only_whole_lines_after_every_crash(crashed):
    for folder in crashed:
        report = verify(folder / "l.jsonl")
        assert report.entries <= 6
        lines = (folder / "l.jsonl").read_bytes()
        assert report.torn_bytes == len(lines) - (lines.rfind(b"\n") + 1)


def test_the_key_survives_every_crash_or_was_never_used(crashed):
    for folder in crashed:
        if (folder / "l.key").exists():
            assert len((folder / "l.key").read_text().strip()) == 64
            assert (folder / "l.jsonl").read_bytes().count(b"\n") > 0
        elif (folder / "l.jsonl").read_bytes().endswith(b"\n"):
            assert len((folder / ".l.key.new").read_text().strip()) == 64
        else:
            with pytest.raises(LedgerError, match="cannot be read"):
                verify(folder / "absent.jsonl")
            assert b"\n" not in (folder / "l.jsonl").read_bytes()


@pytest.mark.parametrize("place", ["ledger.commitments.fsync_folder", "ledger.book.new_key"])
def test_an_interrupt_while_a_ledger_is_made_leaves_no_key(tmp_path, monkeypatch, place):
    module, name = f"censafe.privacy.{place}".rsplit(".", 1)
    original = getattr(import_module(module), name)

    def interrupted(path):
        original(path)
        raise KeyboardInterrupt

    path = tmp_path / "l"
    with monkeypatch.context() as patch:
        patch.setattr(f"{module}.{name}", interrupted)
        with pytest.raises(KeyboardInterrupt):
            open_ledger(path)
    assert not new_name(path).exists()
    open_ledger(path).close()
    assert sorted(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("place", ["file.fsync_folder", "book.settle_key"])
def test_an_interrupt_once_the_first_line_is_written_keeps_the_key(tmp_path, monkeypatch, place):
    path, plan, module = tmp_path / "l", make_plan(), "censafe.privacy.ledger"

    def interrupted(_place):
        monkeypatch.undo()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), open_ledger(path) as ledger:
        accounts = ledger.accounts(FILES.values())
        monkeypatch.setattr(f"{module}.{place}", interrupted)
        ledger.open_run(plan, accounts=accounts, run=RUN)
    assert path.read_bytes().count(b"\n") == 1
    assert not new_name(path).exists()
    with open_ledger(path) as ledger:
        assert ledger.accounts(FILES.values()) == accounts
        ledger.open_run(plan, accounts=accounts, run=RUN, spend_more=True)


def test_a_start_killed_before_its_first_line_leaves_a_key_that_the_next_one_takes(tmp_path):
    path = tmp_path / "l"
    killed = open_ledger(path)
    accounts = killed.accounts(FILES.values())
    killed._file.close()  # as the kernel does
    with open_ledger(path) as ledger:
        assert ledger.accounts(FILES.values()) == accounts
    new_name(path).write_text("torn")
    with open_ledger(path) as ledger:
        assert ledger.accounts(FILES.values()) != accounts
