"""Sessions of a Spark Connect server: how they are opened, how long a lost server is waited for, and how they are closed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import grpc

from censafe.tabulation.engine.spark_client import DefaultPolicy, PySparkException, SparkSession

__all__ = ["RETRIES", "Connecting", "silent"]

RETRIES = 8  # of a call of the protocol
_LONGEST_WAIT = 4000  # milliseconds between them


class Connecting:
    """How sessions of one server are opened and closed.

    Args:
        url: of the server.
        label: how messages call it.
        server: a server of this process, which is stopped with the session.
    """

    def __init__(self, url: str, label: str, server: Any = None) -> None:
        self.label = label
        self._url = url
        self._server = server

    def session(self) -> Any:
        """A new session of the server."""
        opened = SparkSession(self._url)
        self.wait(opened, 2)
        return opened

    def wait(self, session: Any, retries: int) -> None:
        """How often a call of the protocol is repeated; without, a lost server is waited for more than ten minutes at every call."""
        session.client.set_retry_policies([DefaultPolicy(max_retries=retries, max_backoff=_LONGEST_WAIT)])

    def close(self, session: Any) -> None:
        """End a session, and the server with it where it is ours."""
        with suppress(PySparkException, grpc.RpcError), silent():
            self.wait(session, 0)
            session.stop()
        if self._server is not None:
            self._server.stop()


@contextmanager
def silent() -> Iterator[None]:
    """Without warnings of the client about its attempts: what comes of them is said once, by us."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r".*RETRIES_EXCEEDED", UserWarning)
        yield
