"""The ledger: every budget is written down, on stable storage, before the noise that it pays for exists.

One file records all runs of all datasets of a place. A dataset is recognised by a keyed commitment to its input files,
whatever it is called. Opening verifies the whole file; everything that the ledger refuses, it refuses before writing.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from censafe import __version__
from censafe.errors import LedgerError, OverspendError
from censafe.model import Definition, PartPlan, ReleasePlan
from censafe.privacy.accountant import compose, part_cost
from censafe.privacy.budget import exact
from censafe.privacy.commitments import commit_to_files, key_path_of, load_or_create_key
from censafe.privacy.ledger_caps import choose_cap, require_within, require_within_rho_cap
from censafe.privacy.ledger_entries import decode, encode, fraction_text, parse, read_entries
from censafe.privacy.ledger_file import LedgerFile
from censafe.privacy.ledger_records import (
    Reservation,
    RunRecord,
    Settlement,
    common_fields,
    cost_by_part,
    partition_fields,
    promise_fields,
    query_fields,
    reservation_of,
    run_state_of,
    second_release_text,
)
from censafe.privacy.ledger_report import LedgerReport, audited_state, verify
from censafe.privacy.ledger_state import Charge, ChargeState, LedgerState, RunState
from censafe.privacy.proofs import proven

__all__ = ["Ledger", "LedgerReport", "Reservation", "RunRecord", "Settlement", "read_entries", "verify"]

_RUN = re.compile(r"[0-9a-f]{8,64}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_LIVE = (ChargeState.RESERVED, ChargeState.COMMITTED)


class Ledger:
    """An exclusively locked, verified ledger; use it as a context manager.

    Build one with :meth:`open`.
    """

    def __init__(self, file: LedgerFile, label: str, *, strict: bool) -> None:
        self._file = file
        self._label = label
        self._strict = strict
        contents = parse(file.read(), file.path)
        self._state: LedgerState = audited_state(contents, file.path)
        self._seq = len(contents.entries)
        self._head = contents.head
        self._key = load_or_create_key(key_path_of(file.path), create=self._seq == 0)
        self._run: RunState | None = None
        self.torn: Path | None = file.set_aside(contents.torn) if contents.torn else None

    @classmethod
    def open(cls, path: Path, *, dataset: str, strict: bool = False) -> Ledger:
        """Lock, verify and, where it does not exist, create a ledger and its key.

        Args:
            path: the ledger file; its key is the file of the same name with the ending ``.key``.
            dataset: label of the dataset, for people.
            strict: reservations of killed runs become ``lost`` and stay charged, instead of ``void``.

        Returns:
            The ledger; its ``torn`` names the file that a torn last line was moved to, or is None.

        Raises:
            LedgerError: locked, unwritable, broken (with the line number), or its key is missing.
        """
        path = Path(path)
        key_path_of(path)
        file = LedgerFile.open(path)
        try:
            return cls(file, dataset, strict=strict)
        except BaseException:
            file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give up the lock and forget the key."""
        self._file.close()
        self._key = b""

    @property
    def path(self) -> Path:
        """The ledger file."""
        return self._file.path

    @property
    def head(self) -> str:
        """SHA-256 of the last line, hexadecimal; zeros for an empty ledger."""
        return self._head

    def dataset_commitment(self, file_hashes: Mapping[str, str]) -> str:
        """Keyed commitment to input files, by :func:`~censafe.privacy.commitments.commit_to_files`."""
        return commit_to_files(self._key, file_hashes)

    def spent(self, dataset: str) -> dict[Definition, Fraction]:
        """What a dataset has been charged: rho and epsilon, never added to each other."""
        return {definition: self._state.total(dataset, definition) for definition in Definition}

    def charged(self, dataset: str, definition: Definition) -> Fraction:
        """What a cap is compared with; under zCDP, pure-DP charges count as epsilon^2 / 2."""
        return self._state.charged(dataset, definition)

    def committed(self, run: str) -> dict[str, tuple[str, str]]:
        """Measured parts of a run: name of the measurement file and its SHA-256, by part."""
        charges = self._state.charges_of(run, ChargeState.COMMITTED)
        return {charge.part: (charge.file, charge.sha256) for charge in charges}

    def held(self, run: str) -> dict[str, Reservation]:
        """Open reservations of a run, by part."""
        return {
            charge.part: reservation_of(charge)
            for charge in self._state.charges_of(run, ChargeState.RESERVED)
        }

    def paid(self, run: str) -> Fraction:
        """Sum of the committed costs of a run, to be compared with its plan."""
        return compose(charge.cost for charge in self._state.charges_of(run, ChargeState.COMMITTED))

    def open_run(
        self,
        plan: ReleasePlan,
        *,
        dataset: str,
        cap: Fraction | None = None,
        operator_text: str = "",
        config_digest: str = "",
        spend_more: bool = False,
        run: str | None = None,
        folder: str = "",
    ) -> RunRecord:
        """Start a run, or take one up again, and check that all of it fits the cap.

        Args:
            plan: what will be measured.
            dataset: commitment from :meth:`dataset_commitment`.
            cap: most that the dataset may be charged in all; by default the cap that an operator named for it before, or
                else what it holds already plus what this run has yet to spend.
            operator_text: free text of the operator, kept in the file.
            config_digest: SHA-256 of the configuration.
            spend_more: the operator knows that the dataset was released before.
            run: identifier of the run (8 to 64 hexadecimal digits); one that the ledger knows is taken up again.
            folder: where the run's files are, for people.

        Raises:
            OverspendError: the dataset was released before and ``spend_more`` is not given, or the cap is too small.
            LedgerError: ``run`` has another plan or dataset than the one recorded.
            TypeError: a float among the costs or as cap.
        """
        costs = cost_by_part(plan)
        name = self._run_name(run)
        known = self._known_run(name, plan, dataset)
        charged = self._state.charged(dataset, plan.definition)
        if known and known.closed:
            self._run = known
            return RunRecord(name, dataset, known.cap, charged, closed=True)
        if not known and not spend_more:
            self._refuse_second_release(plan, dataset)
        live = {charge.part for charge in self._state.charges_of(name, *_LIVE)}
        due = [cost for part, cost in costs.items() if part not in live]
        needed = charged + compose(due)
        kept = known if known and not spend_more else None
        limit, source = choose_cap(self._state, plan.definition, dataset, cap, kept, needed)
        require_within(self.path, needed, limit, plan.definition)
        if cap is None:
            require_within_rho_cap(self.path, self._state, dataset, plan.definition, due)
        opened = run_state_of(
            plan, name, dataset, self._label, folder, limit, by_operator=source == "operator"
        )
        details = {"cap_source": source, "config": config_digest, "operator": operator_text, "folder": folder}
        self._start(opened, plan, details)
        return RunRecord(name, dataset, limit, charged, closed=False)

    @proven("ledger.proof.md", digest="7de76655eda8018b")
    def reserve(self, plan: ReleasePlan, part: PartPlan, cap: Fraction | None = None) -> Reservation:
        """Write down the cost of a part; on return it is on stable storage and noise may be drawn.

        Args:
            plan: the plan of the open run.
            part: one of its parts.
            cap: a smaller cap than the run's, if any.

        Raises:
            OverspendError: the cap does not allow it; nothing is written.
            LedgerError: another plan, a part that is reserved or measured already, or the file cannot be written.
        """
        run = self._require_run()
        if plan.digest() != run.plan or part not in plan.parts:
            raise LedgerError(
                f"{self.path}: part {part.name} is not of the plan that the run was opened with"
            )
        if any(charge.part == part.name for charge in self._state.charges_of(run.run, *_LIVE)):
            raise LedgerError(
                f"{self.path}: part {part.name} was reserved before; committed parts are never measured again"
            )
        limit = run.cap if cap is None else min(run.cap, exact(cap, "cap"))
        cost = part_cost(part)
        require_within(
            self.path, self._state.charged(run.dataset, run.definition) + cost, limit, run.definition
        )
        total_after = self._state.total(run.dataset, run.definition) + cost
        body = {
            **common_fields(run, total_after),
            **promise_fields(plan, self._label, cost, limit),
            "part": part.name,
            "queries": query_fields(part),
            **partition_fields(part),
            "source": "system",
        }
        return reservation_of(self._state.charges[self._append("reserve", body)])

    def commit(self, reservation: Reservation, file: str, sha256: str) -> None:
        """Record the measurement file of a reservation, after the file is on stable storage.

        Args:
            reservation: from :meth:`reserve` or :meth:`settle_open`.
            file: name of the measurement file in the run folder.
            sha256: of its bytes, hexadecimal.

        Raises:
            LedgerError: the reservation is not open, or the file cannot be written.
        """
        charge = self._state.charges.get(reservation.seq)
        if (
            charge is None
            or charge.state is not ChargeState.RESERVED
            or reservation_of(charge) != reservation
        ):
            raise LedgerError(f"{self.path}: part {reservation.part} has no open reservation to commit")
        if not file or not _SHA256.fullmatch(sha256):
            raise ValueError("commit needs the name of the measurement file and its SHA-256 in hexadecimal")
        self._settle(charge, "commit", {"file": file, "sha256": sha256})

    def settle_open(
        self,
        run: str,
        *,
        finished: Mapping[str, tuple[str, str]] | None = None,
        redo: Collection[str] = (),
    ) -> Settlement:
        """Settle the reservations that a killed run left open.

        Args:
            run: its identifier.
            finished: parts whose complete measurement file was found and belongs to the plan: (file, SHA-256) by part.
            redo: parts that will be drawn again at the same addresses, under the same key and input.

        Returns:
            What became of each; every other reservation becomes ``void``, or ``lost`` under a strict ledger.
        """
        done: dict[str, list[str]] = {"commit": [], "void": [], "lost": []}
        again: dict[str, Reservation] = {}
        for charge in self._state.charges_of(run, ChargeState.RESERVED):
            if finished and charge.part in finished:
                file, sha256 = finished[charge.part]
                self.commit(reservation_of(charge), file, sha256)
                done["commit"].append(charge.part)
            elif charge.part in redo:
                again[charge.part] = reservation_of(charge)
            else:
                event = "lost" if self._strict else "void"
                self._settle(charge, event, {})
                done[event].append(charge.part)
        return Settlement(tuple(done["commit"]), again, tuple(done["void"]), tuple(done["lost"]))

    def close_run(self, plan: ReleasePlan) -> None:
        """Record that every part of the plan is committed.

        Raises:
            LedgerError: a part is missing, or the ledger's sum for the run is not the plan's total.
        """
        run = self._require_run()
        if run.closed:
            return
        missing = [part.name for part in plan.parts if part.name not in self.committed(run.run)]
        if plan.digest() != run.plan or missing or self.held(run.run):
            raise LedgerError(
                f"{self.path}: the run cannot be closed; not committed: {', '.join(missing) or 'another plan'}"
            )
        if self.paid(run.run) != plan.total:
            raise LedgerError(f"{self.path}: the ledger's sum for the run is not the total of its plan")
        self._append("close", common_fields(run, self._state.total(run.dataset, run.definition)))
        self._run = self._state.runs[run.run]

    def _start(self, opened: RunState, plan: ReleasePlan, details: Mapping[str, str]) -> None:
        body = {
            **common_fields(opened, self._state.total(opened.dataset, plan.definition)),
            **promise_fields(plan, self._label, plan.total, opened.cap),
            **details,
            "program": f"censafe {__version__}",
        }
        self._append("open", body)
        self._run = self._state.runs[opened.run]

    def _append(self, event: str, body: Mapping[str, Any]) -> int:
        """Check an entry, write it, and count it once the line is on stable storage."""
        seq = self._seq + 1
        time = datetime.now(UTC).isoformat(timespec="seconds")
        line = encode({**body, "seq": seq, "time": time, "event": event, "prev": self._head})
        entry = decode(line, seq, self._head)
        outcome = self._state.check(entry)
        self._file.append(line)
        self._state.record(outcome)
        self._seq, self._head = seq, entry.digest
        return seq

    def _settle(self, charge: Charge, event: str, details: Mapping[str, str]) -> None:
        run = self._state.runs[charge.run]
        total = self._state.total(run.dataset, run.definition)
        paid = {"part": charge.part, "reservation": charge.seq, "cost": fraction_text(charge.cost)}
        after = total - charge.cost if event == "void" else total
        self._append(event, {**common_fields(run, after), **paid, **details})

    def _require_run(self) -> RunState:
        if self._run is None:
            raise LedgerError(f"{self.path}: open a run before reserving anything")
        return self._run

    def _known_run(self, name: str, plan: ReleasePlan, dataset: str) -> RunState | None:
        known = self._state.runs.get(name)
        if known and (known.plan, known.dataset) != (plan.digest(), dataset):
            what = "input" if known.plan == plan.digest() else "plan"
            raise LedgerError(
                f"{self.path}: run {name} was opened with another {what}; "
                f"restore its {what}, or start a run in a new folder"
            )
        return known

    def _run_name(self, run: str | None) -> str:
        name = secrets.token_hex(8) if run is None else run
        if not _RUN.fullmatch(name):
            raise ValueError("a run is named by 8 to 64 hexadecimal digits")
        return name

    def _refuse_second_release(self, plan: ReleasePlan, dataset: str) -> None:
        """A dataset that was charged before needs the operator's word."""
        spent = {definition: total for definition, total in self.spent(dataset).items() if total > 0}
        if spent:
            runs = [run for run in self._state.runs.values() if run.dataset == dataset]
            unfinished = [run.folder for run in runs if run.folder and self.held(run.run)]
            labels = [run.label for run in runs]
            raise OverspendError(f"{self.path}: {second_release_text(plan, spent, labels, unfinished)}")
