"""What becomes of a run that does not end by itself: an unexpected error, Ctrl-C, or a request of the system to end.

An error leaves a message and a file that says where it happened. Neither holds a value: only types of errors, files, lines and
functions of the program. Interrupted work stops where it is, scratch goes, one line is said.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

from censafe.model.closing import write_refusal
from censafe.model.engine import interrupt_queries
from censafe.version import __version__

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_REPEAT_AFTER: Final = 0.1  # seconds after which queries are ended that began meanwhile, and a signal that was dropped is sent once more
_SHELL: Final = 128  # exit code of a process that a signal ended is this much above the signal's number


class Interruption:
    """Which signal came, if any; an engine may turn the exception that it raises into another one on the way."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.raised: SystemExit | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Note the signal and stop what runs; scratch is removed on the way out."""
        self.number = number
        interrupt_queries()  # an engine that called this waits for its own threads next, and holds the interpreter
        self.raised = SystemExit(self.exit_code)
        raise self.raised

    @property
    def exit_code(self) -> int:
        """As a shell says it: 130 for Ctrl-C, 143 for SIGTERM."""
        return _SHELL + (self.number or signal.SIGINT)


@contextmanager
def _heard_in_callbacks(interruption: Interruption) -> Iterator[None]:
    """Send a signal once more that came inside a destructor or a callback, where Python prints every exception and drops it."""
    before, timers = sys.unraisablehook, list[threading.Timer]()

    def hook(dropped: sys.UnraisableHookArgs) -> None:
        number = interruption.number
        if number is None or not isinstance(dropped.exc_value, SystemExit | KeyboardInterrupt):
            before(dropped)
        if number is None or dropped.exc_value is not interruption.raised:
            return  # the run is ending already, and a second signal would stop it from removing its scratch
        timer = threading.Timer(_REPEAT_AFTER, os.kill, (os.getpid(), number))  # the callback is over by then
        timer.daemon = True
        timers.append(timer)
        timer.start()

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before
        for timer in timers:  # none may come after the handlers that listen for it
            timer.cancel()


@contextmanager
def listening(interruption: Interruption | None = None) -> Iterator[Interruption]:
    """Listen for signals inside the block, but for those that the caller of the program ignores.

    Args:
        interruption: that notes them; a new one by default.
    """
    interruption = interruption or Interruption()
    before: dict[int, Callable[..., Any] | int | None] = {}
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    for number in _SIGNALS:
        handler = signal.getsignal(number)
        if handler is not signal.SIG_IGN:
            before[number] = handler
            signal.signal(number, interruption)
    try:
        with _heard_in_callbacks(interruption), _ending_queries(tuple(before)):
            yield interruption
    finally:
        for listened, handler in before.items():
            signal.signal(listened, handler)


@contextmanager
def _ending_queries(numbers: tuple[int, ...]) -> Iterator[None]:
    """End what engines compute as soon as one of the signals comes; Python handles it only when they return."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    done = threading.Event()

    def watch() -> None:
        while came := os.read(read, 64):
            if any(number in numbers for number in came):
                interrupt_queries()
                while not done.wait(_REPEAT_AFTER):
                    interrupt_queries()

    watcher = threading.Thread(target=watch, name="signals", daemon=True)
    watcher.start()
    before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        done.set()
        os.close(write)
        watcher.join()
        os.close(read)


FAULT: Final = 70
"""Exit code of a fault of the program itself (EX_SOFTWARE)."""
# Arguments of the public interface whose option has another name.
_OPTIONS: Final = {
    "confidences": "confidence given more than once",
    "configuration": "config",
    "file_format": "format",
    "margins": "moe",
    "parameters": "config",
    "queries": "query",
    "results": "result",
    "settings": "set",
    "targets": "target",
}


def printable(text: str) -> str:
    """Text that any terminal takes, also where a path is not UTF-8.

    Example:
        >>> printable("data" + chr(0xDCFF))
        'data\\\\udcff'
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def in_options(text: str) -> str:
    """A message whose arguments, named as Python has them, are written as options.

    Example:
        >>> in_options("`areas_of` belongs to files of persons; see `queries`")
        '--areas-of belongs to files of persons; see --query'
    """
    return re.sub(r"`([a-z][a-z0-9_]*)`", lambda match: _option(match[1]), text)


def _option(name: str) -> str:
    return "--" + _OPTIONS.get(name, name.replace("_", "-"))


def system_message(error: OSError | MemoryError | RuntimeError) -> str:
    """What the operating system refused, in words: a file, or memory; paths are those that the operator named."""
    if not isinstance(error, OSError):
        return "memory ran out; set a limit with --memory, use fewer --threads, or a machine with more memory"
    place = f"{error.filename}: " if isinstance(error.filename, str) else ""
    if refusal := write_refusal(error):
        return f"{place}{refusal}, and run the same command again"
    if error.errno == errno.ENAMETOOLONG:
        return f"{place[:80]}...: the name is too long for this file system; allowed: usually 255 bytes a name; use a shorter one"
    reason = os.strerror(error.errno) if error.errno else "the system refused a file"
    return f"{place}{reason}; check that the path exists and that you may read or write it"


def fault_message(error: BaseException) -> str:
    """Write the report of an unexpected error, and say where it is.

    Args:
        error: what was raised.
    """
    name = _write(_report(error))
    where = f"Where it happened stands in {name}, without any value of a record; send it with the command." if name else (
        "No report could be written: neither the temporary folder nor the working folder can be written."
    )  # fmt: skip
    return (
        f"the program has a fault ({type(error).__name__}). What was published before stays as it is. {where}"
    )


def _report(error: BaseException) -> str:
    lines = [f"censafe {__version__}, Python {sys.version.split()[0]}, {sys.platform}"]
    seen: set[int] = set()
    exception: BaseException | None = error
    while exception is not None and id(exception) not in seen:
        seen.add(id(exception))
        lines.append(f"{type(exception).__module__}.{type(exception).__qualname__}")
        frames = traceback.extract_tb(exception.__traceback__)
        lines += [f"  {frame.filename}:{frame.lineno} in {frame.name}: {frame.line}" for frame in frames]
        exception = exception.__cause__ or exception.__context__
    return "\n".join(lines) + "\n"


def _write(text: str) -> str:
    """Path of the report, readable by its owner only; empty where none can be written."""
    try:
        folder = tempfile.gettempdir()
    except OSError:
        folder = os.curdir
    for place in dict.fromkeys((folder, os.curdir)):
        try:
            number, name = tempfile.mkstemp(prefix="censafe-fault-", suffix=".txt", dir=place)
            with os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace") as stream:
                stream.write(text)
        except OSError:
            continue
        return str(Path(name).absolute())
    return ""
