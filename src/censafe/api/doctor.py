"""What this machine offers to a run, and what is missing; no data is opened."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple

from censafe.api.arguments import public
from censafe.api.frames import Frame
from censafe.errors import UsageError
from censafe.version import __version__

Status = Literal["ok", "note", "missing", "wrong"]
_NEEDED: Final = ("click", "cryptography", "duckdb", "ibis-framework", "matplotlib", "numba", "numpy", "pyarrow", "rich", "scipy", "sqlglot", "xlsxwriter")  # fmt: skip
_OPTIONAL: Final = {
    "extra sail": ("pysail", 'engine sail: pip install "censafe[sail]"'),
    "extra spark": ("pyspark", 'engine spark: pip install "censafe[spark]"'),
    "extra maps": ("geopandas", 'shapes other than GeoJSON: pip install "censafe[maps]"'),
    "pandas": ("pandas", "Frame.to_pandas: pip install pandas"),
    "polars": ("polars", "Frame.to_polars: pip install polars"),
}
_MEMORY: Final = 4 * 1024**3  # a state; the nation takes 2 to 14 GiB
_DISK: Final = 10 * 1024**3
_FIRST_YEAR, _CLOCK_SECONDS = 2024, 2.0


class _Check(NamedTuple):
    check: str
    status: Status
    value: str
    advice: str = ""


@public
def doctor(folder: Path | str = ".") -> Frame:
    """Look at what a run needs: versions, cores, memory, disk, clock, entropy, compiler cache, and optional packages.

    Args:
        folder: where runs would write.

    Returns:
        Text columns ``check``, ``status`` (``ok``; ``note``: works, and what to know; ``missing``: an optional package;
        ``wrong``: runs would fail), ``value`` and ``advice``.

    Raises:
        UsageError: there is no such folder.

    Source: the operating system and the installed packages.

    Example:
        >>> rows = doctor().arrow.to_pylist()
        >>> [row["status"] for row in rows if row["check"] == "entropy"]
        ['ok']
    """
    import pyarrow as pa

    if not Path(folder).is_dir():
        raise UsageError(f"folder {folder}: there is no such folder; name one where runs would write")
    return Frame(pa.Table.from_pylist([one._asdict() for one in _checks(Path(folder))]))


def _checks(folder: Path) -> Iterator[_Check]:
    yield _Check("censafe", "ok", __version__)
    yield _Check("python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    yield from map(_package, _NEEDED)
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    yield _Check("cores", "ok", f"{own} of {os.cpu_count()}")
    yield _memory()
    yield _disk(folder, "disk")
    yield _disk(Path(tempfile.gettempdir()), "temporary disk")
    yield from (_clock(folder), _entropy(), _cache())
    for name, (module, advice) in _OPTIONAL.items():
        there = importlib.util.find_spec(module) is not None
        yield _Check(name, "ok" if there else "missing", module, "" if there else advice)


def _package(name: str) -> _Check:
    try:
        return _Check(name, "ok", importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return _Check(name, "wrong", "not installed", f"pip install {name}")


def _memory() -> _Check:
    """Memory that is free for new work, or all of it where the system does not say."""
    pages = next((one for one in ("SC_AVPHYS_PAGES", "SC_PHYS_PAGES") if one in os.sysconf_names), "")
    size = os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE") if pages else 0
    meminfo = Path("/proc/meminfo")
    if meminfo.is_file():
        fields = dict(line.split(":", 1) for line in meminfo.read_text(encoding="ascii").splitlines())
        size = int(fields.get("MemAvailable", f"{size // 1024} kB").split()[0]) * 1024
    advice = "" if size >= _MEMORY else "set --memory below it; a state takes up to 4 GiB"
    return _Check("memory", "ok" if not advice else "note", f"{_size(size)} available", advice)


def _disk(folder: Path, name: str) -> _Check:
    if not os.access(folder, os.W_OK):
        return _Check(name, "wrong", f"{folder} cannot be written", "name another folder")
    free = shutil.disk_usage(folder).free
    advice = (
        "" if free >= _DISK else "measurements of a state take gigabytes; name another folder, or --scratch"
    )
    return _Check(name, "ok" if not advice else "note", f"{_size(free)} free in {folder}", advice)


def _clock(folder: Path) -> _Check:
    """Entries of the ledger have dates: the clock must be set, and agree with that of the file system."""
    now = time.time()
    moment = time.gmtime(now)
    if moment.tm_year < _FIRST_YEAR:
        date = time.strftime("%Y-%m-%d", moment)
        return _Check("clock", "wrong", date, "set the clock: ledger entries have dates")
    words = time.strftime("%Y-%m-%d %H:%M UTC", moment)
    if not os.access(folder, os.W_OK):
        return _Check("clock", "ok", words)
    with tempfile.NamedTemporaryFile(dir=folder) as stream:
        apart = abs(os.fstat(stream.fileno()).st_mtime - now)
    words += f"; files {apart:.1f} s apart"
    if apart <= _CLOCK_SECONDS:
        return _Check("clock", "ok", words)
    return _Check(
        "clock", "note", words, "the file system has another clock; dates of files and ledger will differ"
    )


def _entropy() -> _Check:
    """Whether the operating system gives random bytes without waiting for more entropy."""
    try:
        drawn = os.getrandom(32, os.GRND_NONBLOCK) if sys.platform == "linux" else os.urandom(32)
    except (OSError, NotImplementedError):
        return _Check("entropy", "wrong", "the system has no random bytes yet", "wait until its generator is seeded; keys come from it")  # fmt: skip
    return _Check("entropy", "ok", f"{len(drawn)} bytes at once")


def _cache() -> _Check:
    """Where machine code is kept; without such a folder every command compiles once more."""
    named = os.environ.get("NUMBA_CACHE_DIR")
    package = Path(__file__).parents[1]
    folder = Path(named) if named else package
    if os.access(folder, os.W_OK):
        return _Check("compiler cache", "ok", "beside the modules" if folder == package else str(folder))
    advice = "set NUMBA_CACHE_DIR to a writable folder"
    return _Check("compiler cache", "note", "beside the modules it cannot be written", advice)


def _size(size: float) -> str:
    return f"{size / 1024**3:.1f} GiB"
