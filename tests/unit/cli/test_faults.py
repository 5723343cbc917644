"""Errors that nobody expected: one message, a report without values, and an exit code."""

import errno
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import click
import duckdb
import pytest

from censafe.cli import faults, root
from censafe.cli.faults import fault_message, listening, system_message
from censafe.errors import DataError, StorageError
from censafe.model.engine import interruptible, stream_of
from censafe.population.blocks.source import block_files
from censafe.population.detailed.files import find_totals
from censafe.population.files.relation import engine_errors, find_table
from censafe.publication.tables.sdhc import read_noisy_table
from support.commands import CommandLine


def _raise(error: BaseException) -> object:
    def invoke(*_arguments: object, **_options: object) -> None:
        raise error

    return invoke


def test_a_fault_becomes_a_message_and_a_report_without_values(
    censafe: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(root, "invoke", _raise(KeyError("secret 100000001")))
    done = censafe("configs", ends=70)
    (report,) = tmp_path.glob("censafe-fault-*.txt")
    assert str(report) in done.err
    text = report.read_text()
    assert "builtins.KeyError" in text
    assert "test_faults.py" in text
    assert "Traceback" not in done.err
    assert "100000001" not in text + done.err
    assert stat.S_IMODE(report.stat().st_mode) == 0o600


def test_without_any_folder_the_fault_is_still_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(**_options: object) -> None:
        raise FileNotFoundError(errno.ENOENT, "no usable folder")

    monkeypatch.setattr(faults.tempfile, "gettempdir", none)
    monkeypatch.setattr(faults.tempfile, "mkstemp", none)
    assert "No report could be written" in fault_message(ValueError("secret"))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "full", "plan.xlsx"), "plan.xlsx: the disk is full"),
        (OSError(errno.ENAMETOOLONG, "long", "x" * 300), "the name is too long"),
        (PermissionError(errno.EACCES, "no", "out"), "out: Permission denied"),
        (MemoryError(), "memory ran out"),
        (RuntimeError("can't start new thread"), "memory ran out"),
    ],
)
def test_what_the_system_refuses_is_said_in_words(
    censafe: CommandLine, monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    assert words in system_message(error)
    monkeypatch.setattr(root, "invoke", _raise(error))
    censafe("configs", ends=1, says=words)


@pytest.mark.parametrize("option", [("--memory", "abc"), ("--memory", "GB"), ("--threads", "100000")])
def test_limits_of_the_engine_are_checked_first(
    censafe: CommandLine, tmp_path: Path, option: tuple[str, str]
) -> None:
    censafe("validate", "phsafe", "sdhc-us", tmp_path, *option, ends=2, says=option[0])


def test_a_table_in_two_formats_is_an_error(tmp_path: Path) -> None:
    for name in ("persons.csv", "persons.parquet", "person-records.txt", "person-records.parquet"):
        (tmp_path / name).touch()
    with pytest.raises(DataError, match=r"persons.csv, persons.parquet.*move the others away$"):
        find_table(tmp_path, "persons")
    with pytest.raises(DataError, match=r"person-records.txt, person-records.parquet.*move the others away$"):
        find_table(tmp_path, "safetab-persons")
    (tmp_path / "persons.csv").unlink()
    assert find_table(tmp_path, "persons").kind == "parquet"


@pytest.mark.parametrize("place", [".", "tables/t1", "t1"])
@pytest.mark.parametrize("names", [("pop-group-totals.txt", "pop-group-totals.parquet"), ("a.csv", "a.txt")])
def test_totals_in_two_formats_are_an_error(tmp_path: Path, place: str, names: tuple[str, str]) -> None:
    folder = tmp_path / place
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).touch()
    with pytest.raises(DataError, match=r"several candidates found .*, .*name the file with `t1`"):
        find_totals(tmp_path)
    assert find_totals(folder / names[1]).paths == (folder / names[1],)


def test_a_file_in_the_place_of_a_data_folder_is_called_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    finders: tuple[Callable[[Path], object], ...] = (
        lambda path: find_table(path, "persons"),
        lambda path: find_table(path, "safetab-persons"),
        block_files,
    )
    for find in finders:
        with pytest.raises(StorageError, match="file: a file, not a data folder; name the folder"):
            find(tmp_path / "file")
        with pytest.raises(StorageError, match="there is no such data folder"):
            find(tmp_path / "none")


def test_public_tables_that_cannot_be_read_are_not_blamed_for_their_form(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot be read \(Is a directory\)"):
        read_noisy_table("PH2", [tmp_path])


def test_memory_that_runs_out_names_the_option() -> None:
    with pytest.raises(StorageError, match="give the engine more with `memory`"), engine_errors("geo.csv"):
        raise duckdb.OutOfMemoryException


def test_a_path_that_is_no_text_is_refused_by_name(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from censafe.cli import root

    out = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    found = CliRunner().invoke(root, ["run", "phsafe", "sdhc-us", str(tmp_path), out])
    assert found.exit_code == 2
    assert "not valid UTF-8" in found.output


SLOW = "SELECT sum(range % 7) FROM range(1000000000000)"
STREAM = "SELECT hash(range) FROM range(1000000000000) WHERE range < 5000000 OR hash(range) = 7"


def _soon(number: int) -> None:
    threading.Timer(0.2, os.kill, (os.getpid(), number)).start()


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """Signals have their usual effect, also where whoever started the tests ignores them."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTERM, signal.SIGHUP)}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_stops_the_work_and_gives_the_exit_code_of_a_shell(number: int, code: int) -> None:
    with listening() as interruption, pytest.raises(SystemExit):
        _soon(number)
        time.sleep(60)
    assert interruption.exit_code == code
    assert interruption.number == number


def test_an_engine_at_work_stops_as_the_program_does() -> None:
    with listening() as interruption, duckdb.connect() as con:
        interruptible(con, duckdb.ConnectionException)
        _soon(signal.SIGINT)
        with pytest.raises(SystemExit), engine_errors("records"):
            con.execute(SLOW)
    assert interruption.number == signal.SIGINT


def _stopped(work: Callable[[duckdb.DuckDBPyConnection], object]) -> None:
    """Nothing but the signal ends these queries: they would take a quarter of an hour at least."""
    with listening() as interruption, duckdb.connect() as con, pytest.raises(SystemExit):
        interruptible(con, duckdb.ConnectionException)
        work(con)
    assert interruption.exit_code == 130


def test_a_stream_of_the_engine_stops_at_a_signal() -> None:
    def read(con: duckdb.DuckDBPyConnection) -> None:
        with engine_errors("records"), stream_of(con) as cursor:
            batches = cursor.execute(STREAM).to_arrow_reader(1000)
            _soon(signal.SIGINT)
            list(batches)

    _stopped(read)


def test_an_interrupted_stream_is_no_unreadable_file() -> None:
    """The engine may be interrupted before the signal is handled in the thread that reads the stream."""
    with duckdb.connect() as con:
        interruptible(con, duckdb.ConnectionException)
        with pytest.raises(KeyboardInterrupt), engine_errors("records"), stream_of(con) as cursor:
            batches = cursor.execute(STREAM).to_arrow_reader(1000)
            threading.Timer(0.2, cursor.interrupt).start()
            list(batches)


def test_queries_of_other_threads_stop_at_a_signal() -> None:
    def count(con: duckdb.DuckDBPyConnection) -> None:
        with engine_errors("records"), stream_of(con) as cursor:
            cursor.execute(SLOW)

    def wait(con: duckdb.DuckDBPyConnection) -> None:
        with ThreadPoolExecutor(2) as pool:
            waiting = [pool.submit(count, con) for _ in range(2)]
            _soon(signal.SIGINT)
            for future in waiting:
                future.result()

    _stopped(wait)


def test_a_signal_that_the_caller_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with listening() as interruption:
            os.kill(os.getpid(), signal.SIGHUP)
        assert interruption.number is None
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


_DESTRUCTOR = """
import os, signal, time
from censafe.cli.faults import listening

class Dying:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(1000):
            pass

with listening():
    Dying()
    time.sleep(60)
print("ran to its end")
"""


def test_a_signal_inside_a_destructor_is_not_lost() -> None:
    """Python prints and drops an exception that is raised there; the command must end all the same, and say nothing of it."""
    done = subprocess.run(
        [sys.executable, "-c", _DESTRUCTOR], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (143, "", "")


def test_other_exceptions_of_destructors_are_shown_as_before() -> None:
    seen: list[str] = []
    before, sys.unraisablehook = sys.unraisablehook, lambda dropped: seen.append(str(dropped.exc_value))
    try:
        with listening():
            sys.unraisablehook(SimpleNamespace(exc_value=ValueError("shown")))  # type: ignore[arg-type]
        assert seen == ["shown"]
    finally:
        sys.unraisablehook = before


@pytest.mark.parametrize("before", [True, False], ids=["before the work", "after it"])
def test_a_signal_beside_the_work_is_answered(
    monkeypatch: pytest.MonkeyPatch, censafe: CommandLine, before: bool
) -> None:
    """It comes when the program has begun to listen and the work has not, or when the work is over and the program listens still."""

    @contextmanager
    def struck(_interruption: object) -> Iterator[None]:
        if before:
            os.kill(os.getpid(), signal.SIGINT)
        yield
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(faults, "_heard_in_callbacks", struck)
    done = censafe("configs")
    assert (done.code, done.err) == (130, "Stopped. Run the same command again to resume.\n")


# What the command line does before anything else.


_CODE = """
import os, sys
from censafe.cli import main
assert "numpy" not in sys.modules
sys.argv = ["censafe", "--version"]
try:
    main()
except SystemExit:
    print(os.environ["OPENBLAS_NUM_THREADS"])
"""


def test_linear_algebra_has_one_thread_unless_the_environment_says_otherwise() -> None:
    """It must be set before numpy is imported; twenty seconds of a processor of a small run went into waiting threads."""
    for given, expected in (({}, "1"), ({"OPENBLAS_NUM_THREADS": "3"}, "3")):
        environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
        environment |= {"PYTHONPATH": os.pathsep.join(sys.path)} | given
        done = subprocess.run(
            [sys.executable, "-c", _CODE], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.split()[-1] == expected


# Numbers of options that nothing can be done with are refused as they are read, by every verb.


def verbs(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            part = command.get_command(context, name)
            assert part is not None
            for words, one in verbs(part, click.Context(part, parent=context)):
                yield f"{name} {words}".strip(), one
    else:
        yield "", command


OPTIONS = [
    (words, option)
    for words, command in verbs(root, click.Context(root))
    for option in command.params
    if isinstance(option.type, click.types.IntParamType | click.types.FloatParamType)
]


@pytest.mark.parametrize(
    ("words", "option"), OPTIONS, ids=[f"{words} {option.name}" for words, option in OPTIONS]
)
def test_every_number_has_a_largest_and_a_smallest(words: str, option: click.Parameter) -> None:
    if isinstance(option.type, click.IntRange):
        assert option.type.min is not None and option.type.max is not None and option.type.max < 2**63
    else:
        assert isinstance(option.type, click.FloatRange), words
    for text in ("1" + "0" * 400, "9" * 5000, "-1" + "0" * 400, "nan", "inf", "-inf", "1e999"):
        with pytest.raises(click.BadParameter):
            option.type.convert(text, option, None)


def test_the_table_has_the_verbs_of_the_command_line() -> None:
    found = {words for words, _ in OPTIONS}
    assert {
        "run", "synth", "demo", "plan", "replicate", "attack rank", "evaluate sweep", "evaluate phsafe",
    } <= found  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [
        ("synth", "{}/data", "--persons", "99999999999999999999"),
        ("synth", "{}/data", "--persons", "100", "--seed", "1" + "0" * 400),
        ("run", "phsafe", "sdhc-us", "{}", "{}/out", "--test-key", "9" * 5000),
        ("plan", "phsafe", "sdhc-us", "--size", "1" + "0" * 400),
        ("attack", "rank", "{}", "{}/out", "--rows", "99999999999999999999"),
    ],
)
def test_such_numbers_are_wrong_usage(
    censafe: CommandLine,
    tmp_path: Path,
    words: tuple[str, ...],
) -> None:
    censafe(*(word.format(tmp_path) for word in words), ends=2)
    assert list(tmp_path.iterdir()) == []


def test_the_largest_seed_is_one(censafe: CommandLine, tmp_path: Path) -> None:
    for layout in ("phsafe", "pl94", "dhc", "ipums-1940"):
        done = censafe(
            "synth", tmp_path / layout, "--persons", 100, "--states", "44", "--seed", 2**63 - 1, "--layout",
            layout,
        )  # fmt: skip
        assert done.code == 0, done.err
