"""The relational engine: a handful of operations written once with Ibis, and the engines that compute them.

DuckDB in this process is the default. Sail and Apache Spark are reached over Spark Connect. All give the same integers.
"""

from censafe.tabulation.engine.choice import connect
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
