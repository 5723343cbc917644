"""The relational engine: a handful of operations written once with Ibis, and the engines that compute them.

DuckDB in this process is the default. Sail and Apache Spark are reached over Spark Connect. All give the same integers.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from censafe.tabulation.engine.operations import (
    count_by,
    drop_non_unique,
    joined_by_key,
    matches,
    recode,
    record_batches,
    repeated_keys,
    stored,
    where,
)

if TYPE_CHECKING:
    from censafe.model.engine import Engine, EngineChoice
    from censafe.model.observer import Observer

__all__ = [
    "connect",
    "count_by",
    "drop_non_unique",
    "joined_by_key",
    "matches",
    "recode",
    "record_batches",
    "repeated_keys",
    "stored",
    "where",
]


def connect(
    work: Path,
    *,
    threads: int | None = None,
    memory: str | None = None,
    choice: EngineChoice | None = None,
    observer: Observer | None = None,
) -> Engine:
    """Open an engine that keeps all that it writes below ``work``."""
    if choice is None or choice.name == "duckdb":
        from censafe.tabulation.engine.embedded import open_embedded

        return open_embedded(work, threads=threads, memory=memory)
    with warnings.catch_warnings():
        # It is about pandas, which is not used: rows travel as Arrow.
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        from censafe.tabulation.engine.cluster import Connecting, open_cluster, open_sail

        if choice.name == "sail":
            engine, reach = open_sail(
                work, threads=threads, memory=memory, trust_this_machine=choice.trust_this_machine
            )
            if observer is not None:
                observer.remark(reach)
        else:
            label = f"spark at {choice.url.partition(';')[0]}"
            engine = open_cluster(work, Connecting(choice.url, label), threads=threads, memory=memory)
    # The client says it in threads that outlive a call; what comes of it is said once, by us.
    warnings.filterwarnings("ignore", r".*RETRIES_EXCEEDED", UserWarning)
    return engine
