"""What becomes of an error that nobody expected: a message, and a file that says where it happened.

Neither holds a value: only types of errors, files, lines and functions of the program.
"""

from __future__ import annotations

import errno
import os
import re
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Final

from censafe.version import __version__

__all__ = ["FAULT", "fault_message", "in_options", "printable", "system_message"]

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
    "settings": "set",
    "targets": "target",
}
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


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
    return re.sub(r"`([a-z][a-z0-9_]*)`", lambda found: _option(found[1]), text)


def _option(name: str) -> str:
    return "--" + _OPTIONS.get(name, name.replace("_", "-"))


def system_message(error: OSError | MemoryError) -> str:
    """What the operating system refused, in words; paths are those that the operator named."""
    if isinstance(error, MemoryError):
        return "memory ran out; set a limit with --memory, use fewer --threads, or a machine with more memory"
    place = f"{error.filename}: " if isinstance(error.filename, str) else ""
    if error.errno in _FULL:
        return f"{place}the disk is full; free space, and run the same command again"
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
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        lines.append(f"{type(one).__module__}.{type(one).__qualname__}")
        frames = traceback.extract_tb(one.__traceback__)
        lines += [f"  {frame.filename}:{frame.lineno} in {frame.name}: {frame.line}" for frame in frames]
        one = one.__cause__ or one.__context__
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
