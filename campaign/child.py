"""Commands of censafe in forked children of a warm process, and what they leave behind."""

from __future__ import annotations

import ctypes
import gc
import hashlib
import importlib
import os
import pkgutil
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import censafe
from censafe.cli import main

TICKS = os.sysconf("SC_CLK_TCK")
LONGEST = 300.0
"""Wall seconds after which a command is held to hang."""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int  # exit code, or minus the signal that ended it
    out: str
    err: str
    seconds: float  # of processor time
    memory: int  # largest resident set, bytes
    hung: bool  # ended because it took too long
    signalled: bool  # the signal of the trial was sent, or what else it does meanwhile was done
    process: int  # of the command, which led a group of its own


def warm() -> None:
    """Import all of censafe, so that a child imports nothing."""
    for module in pkgutil.walk_packages(censafe.__path__, "censafe."):
        importlib.import_module(module.name)
    for name in (
        "ibis.backends.duckdb",
        "matplotlib.pyplot",
        "pyarrow.csv",
        "pyarrow.parquet",
        "scipy.stats",
    ):
        importlib.import_module(name)


def settle() -> None:
    """Leave what is in memory alone, so that children share it."""
    gc.collect()
    gc.freeze()


def call(*words: object) -> int:
    """A command in this very process, its output dropped."""
    sys.argv = ["censafe", *map(str, words)]
    out, err = sys.stdout, sys.stderr
    with Path(os.devnull).open("w", encoding="utf-8") as sink:
        sys.stdout = sys.stderr = sink
        try:
            main()
        except SystemExit as stop:
            return stop.code if isinstance(stop.code, int) else 1
        finally:
            sys.stdout, sys.stderr = out, err
    return 0


Act = Callable[[int], None]
"""Something done to a running command, given its process."""


def run(
    words: Iterable[object],
    box: Path,
    *,
    before: Callable[[], None] = lambda: None,
    work: Callable[[], int] | None = None,
    kill: tuple[int, float] | None = None,
    act: tuple[Act, float] | None = None,
    longest: float = LONGEST,
) -> Ended:
    """One command, or some work in its place, in a child whose temporary folder is ``box/tmp`` and whose output goes to ``box/io``.

    `before` is done in the child first. `kill` is a signal, `act` something else that is done meanwhile, each with the processor seconds after which it is.
    A command that takes more than `longest` wall seconds hangs.
    """
    if kill is not None:
        number = kill[0]
        act = (lambda child: os.kill(child, number)), kill[1]
    return ended(start(words, box, before=before, work=work), box, act=act, longest=longest)


def start(
    words: Iterable[object],
    box: Path,
    *,
    before: Callable[[], None] = lambda: None,
    work: Callable[[], int] | None = None,
) -> int:
    """Start a command as :func:`run` does, and return its process."""
    for name in ("tmp", "io"):
        (box / name).mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _child([str(word) for word in words], box, before, work)
    return child


def ended(child: int, box: Path, *, act: tuple[Act, float] | None = None, longest: float = LONGEST) -> Ended:
    """Wait for a command that was started."""
    signalled, hung, status, usage = _watch(child, act, longest)
    texts = [(box / "io" / name).read_text(encoding="utf-8", errors="replace") for name in ("out", "err")]
    return Ended(
        os.waitstatus_to_exitcode(status),
        *texts,
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss * 1024,
        hung,
        signalled,
        child,
    )


def _child(words: list[str], box: Path, before: Callable[[], None], work: Callable[[], int] | None) -> None:
    code = 99
    try:
        os.setpgid(0, 0)
        for number, name in ((1, "out"), (2, "err")):
            file = os.open(box / "io" / name, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
            os.dup2(file, number)
            os.close(file)
        os.chdir(box)
        os.environ["TMPDIR"] = str(box / "tmp")
        os.environ.pop("CENSAFE_LEDGER", None)
        tempfile.tempdir = None
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.argv = ["censafe", *words]
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
        before()
        code = _outcome(work or _main)
    finally:
        os._exit(code)


def _main() -> int:
    main()
    return 0


def _outcome(work: Callable[[], int]) -> int:
    try:
        code = work()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 98
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return code


def _watch(
    child: int, act: tuple[Act, float] | None, longest: float
) -> tuple[bool, bool, int, resource.struct_rusage]:
    start, signalled, hung, pause = time.monotonic(), False, False, 0.002
    while True:
        finished, status, usage = os.wait4(child, os.WNOHANG)
        if finished:
            return signalled, hung, status, usage
        if act and not signalled and processor_seconds(child) >= act[1]:
            act[0](child)
            signalled = True
        if time.monotonic() - start > longest and not hung:
            hung = True
            os.killpg(child, signal.SIGKILL)
        time.sleep(pause)
        pause = 0.002 if act and not signalled else min(2 * pause, 0.05)


def processor_seconds(process: int) -> float:
    """Of a process and its threads."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def orphans(child: int) -> list[int]:
    """Processes of a group that live on."""
    processes = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == child and fields[0] != "Z":
            processes.append(int(entry.name))
    return processes


def files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Names, relative to a folder, of everything in it."""
    for path in sorted(folder.rglob("*")):
        yield path.relative_to(folder).as_posix(), path


def digests(folder: Path) -> dict[str, str]:
    """Contents of every file below a folder; folders have none."""
    return {name: digest(path) for name, path in files(folder)}


def digest(path: Path) -> str:
    """Contents of one file."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"


class Shim:
    """The shim in a process that was started with it."""

    KINDS = ("write", "fsync", "rename", "open")

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.campaign_calls.restype = ctypes.c_long

    def arm(self, below: Path, kind: str = "", number: int = 0, reason: int = 0) -> None:
        """Count calls below a folder from now on, and fail one of them."""
        place = self.KINDS.index(kind) if kind else -1
        self._library.campaign_arm(str(below).encode(), place, ctypes.c_long(number), reason)

    def calls(self) -> dict[str, int]:
        """How many there were."""
        return {kind: self._library.campaign_calls(place) for place, kind in enumerate(self.KINDS)}

    def clock(self, seconds: int) -> None:
        """Add seconds to what the clock says from now on."""
        self._library.campaign_clock(ctypes.c_long(seconds))

    def fired(self) -> bool:
        """Whether the call that was to fail came."""
        return bool(self._library.campaign_fired())
