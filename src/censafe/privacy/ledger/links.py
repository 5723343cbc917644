"""Which runs a dataset answers for: all that were charged to one of its accounts, or to an account read with one of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from censafe.privacy.proofs import proven

__all__ = ["Links"]


class Links:
    """Accounts of the runs that hold at least one charge that counts.

    An account is a keyed commitment to a record file, or to a name that the operator gave to a dataset.
    """

    def __init__(self) -> None:
        self._accounts: dict[str, frozenset[str]] = {}
        self._runs: defaultdict[str, set[str]] = defaultdict(set)
        self._found: dict[frozenset[str], tuple[frozenset[str], frozenset[str]]] = {}

    def join(self, run: str, accounts: Collection[str]) -> None:
        """A run was charged: its accounts are linked."""
        if run not in self._accounts:
            self._accounts[run] = frozenset(accounts)
            for account in accounts:
                self._runs[account].add(run)
            self._found.clear()

    def leave(self, run: str) -> None:
        """Nothing of a run counts any more: what it alone linked comes apart."""
        for account in self._accounts.pop(run, frozenset()):
            self._runs[account].discard(run)
        self._found.clear()

    @proven("ledger.proof.md", digest="90f215a128432f40")
    def reach(self, accounts: Collection[str]) -> tuple[frozenset[str], frozenset[str]]:
        """Charged runs, and accounts, that are linked with some of the given accounts, these included.

        The smallest sets with: the given accounts are in; a run with an account that is in, is in; so are all its accounts.
        """
        start = frozenset(accounts)
        if start not in self._found:
            reached, runs, waiting = set(start), set[str](), list(start)
            while waiting:
                for run in self._runs.get(waiting.pop(), set()) - runs:
                    runs.add(run)
                    waiting.extend(self._accounts[run] - reached)
                    reached |= self._accounts[run]
            self._found[start] = frozenset(runs), frozenset(reached)
        return self._found[start]

    def datasets(self) -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
        """Runs and accounts of every dataset that was charged, in the order of their first charges."""
        return tuple(dict.fromkeys(self.reach(accounts) for accounts in self._accounts.values()))
