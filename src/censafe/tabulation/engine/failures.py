"""What went wrong on a server, without its words: they may quote a record."""

from __future__ import annotations

from enum import Enum

from censafe.errors import CensafeError, DataError, StorageError

# Words of Apache Spark, Sail and gRPC by which the kinds of failures are told apart; they are never shown.
_MEMORY = (
    "resources exhausted",
    "outofmemory",
    "out of memory",
    "memory limit",
    "memoryerror",
    "unable to allocate",
    "exit code 137",
    "exit status 137",
)
_SERVER = (
    "unavailable",
    "session_closed",
    "session_not_found",
    "session_changed",
    "connection refused",
    "socket closed",
    "session not found",
    "invalid session",
    "table_or_view_not_found",  # a server that was started anew knows nothing of the tables of a run
    "table not found",
    "view not found",
)
_WORKER = (
    "executorlost",
    "executor lost",
    "worker lost",
    "lost worker",
    "fetchfailed",
    "exitcodeexception",
    "worker is not",
    "heartbeat",
    "actor",
)
_FILES = (
    "path_not_found",
    "path does not exist",
    "filenotfound",
    "no such file",
    "permission denied",
    "accesscontrol",
    "object not found",
    "not found: /",
    "no files found",
)
_SETUP = (
    "no module named",
    "another version of censafe",
    "python_version_mismatch",
    "different version of python",
)
_FULL = ("no space left", "file too large", "quota exceeded")
_CONTENT = ("parquet", "utf-8", "utf8", "corrupt")


class Failure(Enum):
    """Kinds of failures of a server."""

    MEMORY = "memory"
    SERVER = "server"
    WORKER = "worker"
    FILES = "files"
    FULL = "full"
    CONTENT = "content"
    SETUP = "setup"
    OTHER = "other"

    @property
    def lost(self) -> bool:
        """Whether the same work may succeed when it is done again."""
        return self in (Failure.SERVER, Failure.WORKER, Failure.OTHER)

    def error(self, label: str) -> CensafeError:
        """The error of a run that cannot go on; nothing was measured, and the same command resumes it."""
        kind = DataError if self is Failure.CONTENT else StorageError
        return kind(f"{label}: {_MESSAGES[self]}")


_MESSAGES = {
    Failure.MEMORY: "a worker ran out of memory; give workers more (Apache Spark: spark.executor.memory; Kubernetes: the limit of "
    "the pods), or use more workers or `engine` duckdb, which writes to disk what does not fit",
    Failure.SERVER: "the server was lost and does not answer; start it, then start the same command again",
    Failure.WORKER: "workers were lost three times at the same stage; see that they run, then start the same command again",
    Failure.FILES: "workers cannot read or write the data or the scratch folder; both must be seen by every worker under the same "
    "path; name a shared folder with `scratch`",
    Failure.FULL: "the disk is full where the working files are, or a file would be larger than the system allows (ulimit -f); free space there, or raise the limit",
    Failure.CONTENT: "the content of a file cannot be read; allowed: whole Parquet files whose text is UTF-8; fix: write the file again",
    Failure.SETUP: "workers have not what this process has; allowed: the same minor version of Python and the same version of `censafe`; fix: "
    "install both on every worker (Apache Spark: PYSPARK_PYTHON names the interpreter)",
    Failure.OTHER: "the server could not do a stage, three times; its own log says why",
}


def failure_of(error: BaseException) -> Failure:
    """What kind of failure an error of a server is.

    Example:
        >>> failure_of(RuntimeError("Resources exhausted: Failed to allocate")).value
        'memory'
    """
    text = f"{type(error).__name__} {error}".lower()
    for failure, words in (
        (Failure.SETUP, _SETUP),
        (Failure.MEMORY, _MEMORY),
        (Failure.FULL, _FULL),
        (Failure.FILES, _FILES),
        (Failure.WORKER, _WORKER),
        (Failure.SERVER, _SERVER),
        (Failure.CONTENT, _CONTENT),
    ):
        if any(word in text for word in words):
            return failure
    return Failure.OTHER
