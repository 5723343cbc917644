"""The only way from the relational engine's errors to ours.

The engine's messages quote records, so none of their text may go on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from censafe.errors import CensafeError, DataError, StorageError

__all__ = ["engine_errors"]


@contextmanager
def engine_errors(what: str) -> Iterator[None]:
    """Translate engine errors inside the block into censafe errors without their text.

    Args:
        what: file or stage, for the message; no record values.

    Raises:
        StorageError: memory or disk ran out, or a file could not be opened.
        DataError: the engine could not make sense of a file.
    """
    translated: CensafeError
    try:
        yield
    except (duckdb.CatalogException, duckdb.BinderException, duckdb.ParserException):
        raise  # a fault of our own query, which quotes no record
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except RuntimeError as error:
        if isinstance(
            error.__cause__, KeyboardInterrupt | SystemExit
        ):  # a signal came while the engine worked
            raise error.__cause__ from None
        raise
    except duckdb.OutOfMemoryException:
        translated = StorageError(f"{what}: memory ran out; raise the memory limit or use smaller parts")
    except (duckdb.IOException, duckdb.HTTPException, OSError) as error:
        full = "No space left" in str(error) or getattr(error, "errno", None) == 28
        reason = (
            "the disk is full where working files are kept; free space there"
            if full
            else "a file cannot be read or written; check that it exists, is whole and is readable"
        )
        translated = StorageError(f"{what}: {reason}")
    except duckdb.Error as error:
        translated = DataError(
            f"{what}: the content cannot be read ({type(error).__name__}); allowed: one consistent line "
            "ending, quotes only around whole values, UTF-8; fix: write the file again"
        )
    else:
        return
    raise translated from None
