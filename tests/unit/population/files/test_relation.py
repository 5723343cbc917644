"""Errors of the embedded engine, translated and at the end of a run."""

import duckdb
import pytest

from censafe.errors import StorageError
from censafe.population.files.relation import at_the_end, engine_errors


def test_what_is_given_up_at_the_end_may_be_ended_by_a_signal() -> None:
    """A reader that is being closed when its query is ended must not raise, which Python would print."""
    with pytest.raises(KeyboardInterrupt), engine_errors("records"):
        raise duckdb.InterruptException("ended")
    with at_the_end("records"):
        raise duckdb.InterruptException("ended")
    with at_the_end("records"):
        raise StorageError("closed already")


@pytest.mark.parametrize("signal", [SystemExit, KeyboardInterrupt])
def test_the_signal_itself_is_not_swallowed(signal: type[BaseException]) -> None:
    with pytest.raises(signal), at_the_end("records"):
        raise signal
