"""Sessions of a Spark Connect server: how they are opened, how long a lost server is waited for, and how they are closed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import grpc

from censafe.tabulation.engine.sail_server import SailServer
from censafe.tabulation.engine.spark_client import PrivateChannel, PySparkException, SparkSession

RETRIES = 7  # of a call of the protocol
_LONGEST_WAIT = 4000  # milliseconds between them
_Result = TypeVar("_Result")


class Connecting:
    """How sessions of one server are opened and closed.

    Args:
        url: of the server; of no use for one that was started here.
        server: one that was started for this run, which is stopped with the session.
    """

    def __init__(self, url: str, label: str, server: SailServer | None = None) -> None:
        self.label = label
        self._url = url
        self._server = server
        self._calls = ThreadPoolExecutor(1, thread_name_prefix="spark")

    @property
    def here(self) -> bool:
        """Whether the server was started for this run."""
        return self._server is not None

    @property
    def ended(self) -> bool:
        """Whether the server was started for this run and has ended, so that it is not started again."""
        return self._server is not None and self._server.lost

    def call(self, work: Callable[[], _Result]) -> _Result:
        """Do calls of the protocol in a thread of their own, since Ctrl-C inside the client would leave its locks taken forever."""
        return self._calls.submit(work).result()

    def session(self) -> Any:
        """A new session of the server."""
        opened = SparkSession(self._url if self._server is None else PrivateChannel(self._server.target))
        self.wait(opened, 2)
        return opened

    def wait(self, session: Any, retries: int) -> None:
        """How often a call of the protocol is repeated; without, a lost server is waited for more than ten minutes at every call.

        The number of the policies in use changes, so that it holds for calls that repeat themselves at this moment as well.
        """
        for policy in session.client.get_retry_policies():
            policy.max_retries, policy.max_backoff = retries, _LONGEST_WAIT

    def close(self, session: Any) -> None:
        """End a session, and the server with it where it is ours."""
        with suppress(PySparkException, grpc.RpcError), silent():
            self.wait(session, 0)
            session.stop()
        if self._server is not None:
            self._server.stop()
        self._calls.shutdown(wait=False, cancel_futures=True)


@contextmanager
def silent() -> Iterator[None]:
    """Without warnings of the client about its attempts: what comes of them is said once, by us."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r".*RETRIES_EXCEEDED", UserWarning)
        yield
