"""The ledger's file under locks, torn lines, tampering, full disks and lost keys."""

import errno
import hashlib
import json
import os
import resource
import subprocess
import sys
from fractions import Fraction

import pytest

from censafe.errors import LedgerError, OverspendError
from censafe.privacy.ledger import file as ledger_file
from censafe.privacy.ledger.book import Ledger
from censafe.privacy.ledger.commitments import commit_to_file, commit_to_key, commit_to_name, key_path_of
from censafe.privacy.ledger.entries import NO_HEAD, encode, read_contents
from censafe.privacy.ledger.report import verify
from support.ledgers import FILES, RUN, SHA, make_plan, open_ledger, running, spend, stated


def failing(number):
    """A call that the system refuses with an error of this number."""

    def refuse(*_args, **_options):
        raise OSError(number, os.strerror(number))

    return refuse


def rechain(path, lines):
    """Write bodies back with a valid chain, as a forger who edits the file would."""
    prev = NO_HEAD
    written = []
    for body in lines:
        line = encode({**body, "prev": prev})
        prev = hashlib.sha256(line).hexdigest()
        written.append(line + b"\n")
    path.write_bytes(b"".join(written))


# --- locks -----------------------------------------------------------------------------------------------------------


def test_a_second_writer_is_refused_in_the_same_process(path):
    with open_ledger(path), pytest.raises(LedgerError, match="another run holds the ledger"):
        open_ledger(path)
    open_ledger(path).close()


def test_a_second_writer_is_refused_in_another_process(path):
    code = (
        "import sys; from pathlib import Path; from censafe.errors import LedgerError\n"
        "from censafe.privacy.ledger.book import Ledger\n"
        "try: Ledger.open(Path(sys.argv[1]), label='x')\n"
        "except LedgerError as error: sys.exit('held' if 'another run holds' in str(error) else str(error))\n"
    )
    with open_ledger(path):
        held = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=False)
        assert (held.returncode, held.stderr.strip()) == (1, "held")
    free = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=False)
    assert (free.returncode, free.stderr) == (0, "")


def test_a_child_process_cannot_write(path, monkeypatch):
    with running(path) as (ledger, plan):
        monkeypatch.setattr(ledger_file.os, "getpid", lambda: -1)
        with pytest.raises(LedgerError, match="only the process"):
            ledger.reserve(plan, plan.parts[0])


def test_a_foreign_line_during_the_run_is_noticed(path):
    with running(path) as (ledger, plan):
        with path.open("ab") as other:
            other.write(b"{}\n")
        with pytest.raises(LedgerError, match="changed by something else"):
            ledger.reserve(plan, plan.parts[0])


def test_a_file_replaced_while_opening_is_noticed(path, monkeypatch):
    monkeypatch.setattr(ledger_file.os.path, "samestat", lambda *_: False)
    with pytest.raises(LedgerError, match="was replaced"):
        open_ledger(path)


# --- unwritable ------------------------------------------------------------------------------------------------------


def test_places_that_cannot_be_written_are_ledger_errors(tmp_path):
    with pytest.raises(LedgerError, match="cannot be opened for writing"):
        open_ledger(tmp_path / "absent" / "ledger.jsonl")
    with pytest.raises(LedgerError, match="cannot be opened for writing"):
        open_ledger(tmp_path)


def test_a_ledger_without_permission_is_a_ledger_error(path, monkeypatch):
    monkeypatch.setattr(ledger_file.os, "open", failing(errno.EACCES))
    with pytest.raises(LedgerError, match=r"Permission denied.*nothing is measured without a ledger"):
        open_ledger(path)


def test_a_file_system_without_locks_is_a_ledger_error(path, monkeypatch):
    monkeypatch.setattr(ledger_file.fcntl, "flock", failing(errno.ENOLCK))
    with pytest.raises(LedgerError, match="cannot be locked"):
        open_ledger(path)


@pytest.mark.parametrize("full_after", [0, 1, 100])
def test_a_full_disk_leaves_the_ledger_as_it_was(path, monkeypatch, full_after):
    with running(path, run=RUN) as (ledger, plan):
        before = path.read_bytes()
        write, left = os.write, [full_after]

        def short_write(descriptor, data):
            if not left[0]:
                raise OSError(errno.ENOSPC, "No space left on device")
            count = write(descriptor, bytes(data)[: left[0]])
            left[0] -= count
            return count

        monkeypatch.setattr(ledger_file.os, "write", short_write)
        with pytest.raises(LedgerError, match="No space left on device"):
            ledger.reserve(plan, plan.parts[0])
        assert before == path.read_bytes()
        monkeypatch.undo()
        with pytest.raises(LedgerError, match="an earlier write to it failed"):
            ledger.reserve(plan, plan.parts[0])
    with open_ledger(path) as ledger:
        ledger.open_run(plan, accounts=ledger.accounts(FILES.values()), run=RUN)
        ledger.reserve(plan, plan.parts[0])
    assert stated(path) == [Fraction(1, 3)]


def test_a_disk_that_stays_full_leaves_a_torn_line_for_the_next_opening(path, monkeypatch):
    with running(path) as (ledger, plan):
        before = path.read_bytes()
        monkeypatch.setattr(ledger_file.os, "fsync", failing(errno.EIO))
        monkeypatch.setattr(ledger_file.os, "ftruncate", failing(errno.EIO))
        with pytest.raises(LedgerError, match="Input/output error"):
            ledger.reserve(plan, plan.parts[0])
        monkeypatch.undo()
    # The line is whole on this disk although it was never known to be: it counts, which is the safe side.
    assert path.read_bytes().startswith(before)
    assert stated(path) == [Fraction(1, 3)]


def test_a_file_size_limit_is_a_full_disk(path):
    """A real short write by the operating system, in a process of its own."""
    code = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from support.ledgers import FILES, make_plan, open_ledger\n"
        "from censafe.errors import LedgerError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); path = Path(sys.argv[1]); plan = make_plan()\n"
        "with open_ledger(path) as ledger:\n"
        "    ledger.open_run(plan, accounts=ledger.accounts(FILES.values()))\n"
        "    size = path.stat().st_size\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50, resource.RLIM_INFINITY))\n"
        "    try: ledger.reserve(plan, plan.parts[0])\n"
        "    except LedgerError: sys.exit(0 if path.stat().st_size == size else 2)\n"
        "sys.exit(3)\n"
    )
    assert resource.RLIMIT_FSIZE >= 0
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code, path], env=environment, check=False)
    assert done.returncode == 0
    assert verify(path).entries == 1


def test_file_and_folder_are_flushed_before_a_reservation_returns(path, monkeypatch):
    plan = make_plan()
    open_ledger(path).close()
    names = {path.stat().st_ino: "file", path.parent.stat().st_ino: "folder"}
    calls = []
    for name in ("write", "fsync"):
        call = getattr(os, name)

        def recorded(descriptor, *rest, name=name, call=call):
            calls.append((name, names.get(os.fstat(descriptor).st_ino, "key")))
            return call(descriptor, *rest)

        monkeypatch.setattr(ledger_file.os, name, recorded)
    with open_ledger(path) as ledger:
        ledger.open_run(plan, accounts=ledger.accounts(FILES.values()))
        calls.clear()
        ledger.reserve(plan, plan.parts[0])
        assert calls == [("write", "file"), ("fsync", "file"), ("fsync", "folder")]


# --- torn and tampered lines -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("torn", [b"{", b'{"seq":7,"event":"reserve"', b"\xff\xfe\x00"])
def test_a_torn_last_line_is_set_aside_and_reported(path, torn):
    spend(path, make_plan())
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    assert verify(path).torn_bytes == len(torn)
    assert len(read_contents(path).entries) == 6
    with open_ledger(path) as ledger:
        assert ledger.torn is not None
        assert torn == ledger.torn.read_bytes()
        assert whole == path.read_bytes()
        record = ledger.open_run(make_plan(), accounts=ledger.accounts(FILES.values()), spend_more=True)
        assert record.cap.amount == 1
    assert verify(path).torn_bytes == 0


@pytest.mark.parametrize(
    ("call", "message"), [("fsync", "cannot be locked"), ("ftruncate", "cannot be set aside")]
)
def test_a_torn_line_that_cannot_be_moved_stays(path, monkeypatch, call, message):
    spend(path, make_plan())
    path.write_bytes(path.read_bytes() + b"{")
    monkeypatch.setattr(ledger_file.os, call, failing(errno.ENOSPC))
    with pytest.raises(LedgerError, match=message):
        open_ledger(path)
    assert path.read_bytes().endswith(b"{")


def test_every_single_changed_byte_is_noticed(path):
    spend(path, make_plan(), cap=Fraction(3, 4))
    good = path.read_bytes()
    head = verify(path).head
    last = good.rstrip(b"\n").rfind(b"\n") + 1
    for position in range(0, len(good), 7):
        bad = bytearray(good)
        bad[position] ^= 1
        path.write_bytes(bad)
        # Within the last line no later hash exists: there the printed head shows the change.
        with pytest.raises(LedgerError, match=r"line \d|no line has the hash"):
            verify(path, head=head)
        if position < last - 1:
            with pytest.raises(LedgerError, match=r"line \d"):
                open_ledger(path)


def test_a_removed_line_stops_with_its_number(path):
    spend(path, make_plan())
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2] + lines[3:]))
    with pytest.raises(LedgerError, match="line 3: sequence number 4 where 3 is due"):
        open_ledger(path)


@pytest.mark.parametrize(
    "text", [b"\n", b"[]\n", b"1\n", b"nonsense\n", b'{"seq":1,"seq":1}\n', b"[" * 9999 + b"\n"]
)
def test_lines_that_are_no_entries(path, text):
    path.write_bytes(text)
    with pytest.raises(LedgerError, match="line 1: "):
        open_ledger(path)


def edit(line, **fields):
    def change(bodies):
        bodies[line - 1].update(fields)

    return change


def drop(line, field):
    def change(bodies):
        del bodies[line - 1][field]

    return change


RHO = "zcdp add_remove person"


def charge(cost):
    return {"cost": cost, "losses": {"add_remove": cost}, "total_after": {RHO: cost}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (edit(2, **charge("1/4")), "line 3: commit of another part or cost"),
        (edit(2, total_after={RHO: "1/4"}), "line 2: total_after is not the sum"),
        (edit(2, total_after={}), "line 2: total_after is not the sum"),
        (edit(2, total_after="1/3"), "line 2: total_after is not an object of fractions"),
        (edit(2, cost="2/6"), "line 2: cost is not a reduced fraction"),
        (edit(2, cost="0.5"), "line 2: cost is not a reduced fraction"),
        (edit(2, cost="-1/3"), "line 2: cost is not a reduced fraction"),
        (edit(2, cost=1), "line 2: cost is not text"),
        (edit(2, **charge("0/1")), "line 2: losses are not positive"),
        (edit(2, cost="1/4"), "line 2: a cost that is not positive, or not the loss of the same entry"),
        (edit(2, losses={"replace": "1/3"}), "line 2: losses are not positive losses by relation, with the plan's own"),
        (edit(2, losses={"add_remove": "1/3", "replace": "1/3"}), "line 2: losses that are not those of the plan"),
        (edit(2, unit="household"), "line 2: losses that are not those of the plan"),
        (edit(1, accounts=[]), "line 1: accounts is not a list of texts"),
        (edit(1, accounts=["b", "a"]), "line 1: accounts are not in order"),
        (edit(1, accounts=["a", "a"]), "line 1: accounts are not in order, or one stands there twice"),
        (edit(1, cap_promise="rho"), "line 1: cap_promise is not a promise"),
        (edit(1, cap_source="friend"), "line 1: cap_source is not one of"),
        (edit(1, format=3), "line 1: format 3 where 2 is due"),
        (edit(2, seq=True), "line 2: seq is not a whole number"),
        (edit(2, **charge("2/3")), "line 2: the reservation exceeds a cap"),
        (edit(1, cap="1/4"), "line 2: the reservation exceeds a cap"),
        (edit(2, plan="0"), "line 2: a reservation under another plan"),
        (edit(2, definition="puredp"), "line 2: losses that are not those of the plan"),
        (edit(2, definition="rdp"), "line 2: definition is not one of zcdp, puredp"),
        (edit(2, run="ffffffff"), "line 2: reserve outside an open run"),
        (edit(3, reservation=9), "line 3: commit without an open reservation"),
        (edit(5, reservation=2), "line 5: commit without an open reservation"),
        (edit(4, part="PH1"), "line 4: part PH1 is reserved twice"),
        (edit(3, event="refund"), "line 3: unknown event 'refund'"),
        (edit(6, event="open"), "line 6: open without"),
        (drop(4, "losses"), "line 4: reserve without losses"),
        (drop(1, "event"), "line 1: event is not text"),
        (edit(1, key=[1]), "line 1: key is not text"),
    ],
)  # fmt: skip
def test_a_forged_ledger_with_a_valid_chain_still_has_to_add_up(path, change, message):
    spend(path, make_plan())
    bodies = [json.loads(line) for line in path.read_text().splitlines()]
    change(bodies)
    rechain(path, bodies)
    with pytest.raises(LedgerError) as caught:
        open_ledger(path)
    assert message in str(caught.value)


@pytest.mark.parametrize(("drops", "message"), [((4,), "line 5: close a"), ((2, 3, 4, 5), None)])
def test_closing_with_open_reservations_is_invalid(path, drops, message):
    spend(path, make_plan())
    bodies = [json.loads(line) for line in path.read_text().splitlines()]
    remaining = [body for index, body in enumerate(bodies) if index not in drops]
    for seq, body in enumerate(remaining, start=1):
        body["seq"] = seq
    rechain(path, remaining)
    if message is None:
        assert verify(path).entries == 2
        return
    with pytest.raises(LedgerError, match="line 5: closes a run with open reservations"):
        verify(path)


def test_reopening_a_closed_run_in_the_file_is_invalid(path):
    spend(path, make_plan())
    bodies = [json.loads(line) for line in path.read_text().splitlines()]
    rechain(path, [*bodies, {**bodies[0], "seq": 7, "total_after": {RHO: "1/2"}}])
    with pytest.raises(LedgerError, match="line 7: opens a run that is closed"):
        verify(path)


def test_verifying_needs_a_readable_file_and_changes_nothing(path):
    with pytest.raises(LedgerError, match="cannot be read"):
        verify(path)
    spend(path, make_plan())
    before = path.read_bytes()
    with open_ledger(path):
        verify(path)
    assert before == path.read_bytes()


# --- key -------------------------------------------------------------------------------------------------------------


def test_the_key_is_made_once_for_its_owner_only(path):
    open_ledger(path).close()
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    spend(path, make_plan())
    key = key_path_of(path)
    assert key.name == "censafe-ledger.key"
    assert key.stat().st_mode & 0o777 == 0o600
    first = key.read_bytes()
    assert len(bytes.fromhex(first.decode())) == 32
    with open_ledger(path) as ledger:
        expected = {commit_to_file(bytes.fromhex(first.decode()), sha256) for sha256 in FILES.values()}
        assert expected == ledger.accounts(FILES.values())
    assert first == key.read_bytes()
    assert sorted(file.name for file in path.parent.iterdir()) == [
        "censafe-ledger.jsonl",
        "censafe-ledger.key",
    ]


def test_a_lost_key_stops(path):
    spend(path, make_plan())
    key_path_of(path).unlink()
    with pytest.raises(LedgerError, match="key of this ledger is missing"):
        open_ledger(path)


def test_another_key_beside_the_ledger_stops(path):
    spend(path, make_plan())
    key = key_path_of(path)
    key.write_text("0" * 64 + "\n")
    with pytest.raises(LedgerError, match=r"is not the key that censafe-ledger\.jsonl was written with"):
        open_ledger(path)


@pytest.mark.parametrize("remains", ["nothing", "an empty file", "a torn line"])
def test_a_missing_or_empty_ledger_beside_its_key_stops(path, remains):
    spend(path, make_plan())
    whole = path.read_bytes()
    path.unlink()
    if remains != "nothing":
        path.write_bytes(b"" if remains == "an empty file" else whole[:20])
    for _ in range(2):
        with pytest.raises(LedgerError, match="missing or empty: what was spent would be forgotten"):
            spend(path, make_plan())
        assert path.exists() == (remains != "nothing")
    if remains != "nothing":
        with pytest.raises(LedgerError, match="missing or empty: what was spent would be forgotten"):
            verify(path)
    path.write_bytes(whole)
    with pytest.raises(OverspendError, match="`spend_more`"):
        spend(path, make_plan())


def test_a_damaged_or_exposed_key_stops(path):
    spend(path, make_plan())
    key = key_path_of(path)
    good = key.read_text()
    for bad in ("", "abc", "\u00e9" * 64):
        key.write_text(bad)
        with pytest.raises(LedgerError, match=r"damaged|cannot be read"):
            open_ledger(path)
    key.write_text(good)
    key.chmod(0o644)
    with pytest.raises(LedgerError, match="chmod 600"):
        open_ledger(path)
    key.unlink()
    key.mkdir(mode=0o700)
    with pytest.raises(LedgerError, match="cannot be read"):
        open_ledger(path)


def test_a_key_that_cannot_be_written_leaves_nothing(path, monkeypatch):
    from censafe.privacy.ledger import commitments

    monkeypatch.setattr(commitments.os, "write", failing(errno.ENOSPC))
    with pytest.raises(LedgerError, match="key of the ledger cannot be written"):
        open_ledger(path)
    assert [file.name for file in path.parent.iterdir()] == ["censafe-ledger.jsonl"]


def test_a_key_that_cannot_get_its_name_gets_it_at_the_next_opening(path, monkeypatch):
    monkeypatch.setattr(type(path), "rename", failing(errno.EIO))
    with pytest.raises(LedgerError, match="key of the ledger cannot be written"):
        spend(path, make_plan())
    monkeypatch.undo()
    spend(path, make_plan())
    assert key_path_of(path).exists()


def test_a_ledger_named_like_a_key_is_refused(tmp_path):
    with pytest.raises(LedgerError, match=r"ending \.key"):
        Ledger.open(tmp_path / "ledger.key", label="x")


@pytest.mark.parametrize("hashes", [[], ["xyz"], ["A" * 64]])
def test_accounts_are_of_sha256_digests(path, hashes):
    with open_ledger(path) as ledger, pytest.raises(ValueError, match=r"SHA-256|at least one record file"):
        ledger.accounts(hashes)


def test_commitments_depend_on_key_content_and_kind_only():
    one = commit_to_file(bytes(32), SHA)
    assert one != commit_to_file(b"1" * 32, SHA)
    assert one != commit_to_file(bytes(32), "a" * 64)
    assert len({one, commit_to_name(bytes(32), SHA), commit_to_key(bytes(32))}) == 3


# --- what is not, or no longer, the ledger's file --------------------------------------------------------------------


def replaced(path):
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    copy.rename(path)


@pytest.mark.parametrize(
    "change",
    [lambda path: path.unlink(), replaced, lambda path: os.link(path, path.with_name("second"))],
    ids=["removed", "replaced by a copy", "linked"],
)
def test_a_ledger_that_is_removed_or_replaced_during_a_run_is_noticed(path, change):
    with running(path) as (ledger, plan):
        ledger.reserve(plan, plan.parts[0])
        before = path.read_bytes()
        change(path)
        with pytest.raises(LedgerError, match="removed, replaced or linked elsewhere"):
            ledger.reserve(plan, plan.parts[1])
        assert not path.exists() or before == path.read_bytes()


def test_a_ledger_that_vanishes_while_a_line_is_flushed_is_noticed(path, monkeypatch):
    with running(path) as (ledger, plan):
        monkeypatch.setattr(ledger_file, "fsync_folder", lambda _folder: path.unlink())
        with pytest.raises(LedgerError, match="removed, replaced or linked elsewhere"):
            ledger.reserve(plan, plan.parts[0])


def test_a_pipe_is_no_ledger(path):
    os.mkfifo(path)
    with pytest.raises(LedgerError, match="is not a regular file"):
        open_ledger(path)
    with pytest.raises(LedgerError, match="is not a regular file"):
        verify(path)


def test_a_ledger_of_the_first_format_is_named_as_such(path):
    line = encode({"seq": 1, "event": "open", "dataset": "a" * 64, "run": RUN, "prev": NO_HEAD})
    path.write_bytes(line + b"\n")
    for call in (open_ledger, verify):
        with pytest.raises(LedgerError, match=r"earlier version.*whole sets of files.*CENSAFE_LEDGER"):
            call(path)
