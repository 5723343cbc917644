"""Every error that censafe raises on purpose.

CensafeError                  exit code
├── InputError                1   bad data or bad configuration
│   ├── DataError                 a file, column, code or record that breaks a rule
│   └── ConfigError               a key, value or budget that breaks a rule
├── UsageError                2   a request that makes no sense (second run over another run's folder)
├── BudgetError               3   privacy budget refused
│   ├── OverspendError            the cap does not allow the cost
│   └── LedgerError               ledger broken, locked or unwritable
├── CheckError                4   an infeasible problem or a failed check of our own output
├── ReleaseError              4   something not private was about to be released
└── StorageError              1   disk full, folder not writable, file vanished

Messages say what is wrong, where (file, column, how many rows), what is allowed and what to do;
they never contain a confidential value. The name of an argument stands in single backquotes, as Python has it (`areas_of`);
the command line writes it as its option (--areas-of).
"""

from __future__ import annotations


class CensafeError(Exception):
    """Base of all errors that censafe raises on purpose."""

    exit_code = 1


class InputError(CensafeError):
    """Bad data or bad configuration."""


class DataError(InputError):
    """A file, column, code or record that breaks a rule of its layout."""


class ConfigError(InputError):
    """A configuration key, value or budget that breaks a rule."""


class UsageError(CensafeError):
    """A request that makes no sense as a whole."""

    exit_code = 2


class BudgetError(CensafeError):
    """Privacy budget refused."""

    exit_code = 3


class OverspendError(BudgetError):
    """The cap of the dataset does not allow the cost."""


class LedgerError(BudgetError):
    """The ledger is broken, locked by another run or cannot be written."""


class CheckError(CensafeError):
    """An infeasible problem, or output that failed its own check."""

    exit_code = 4


class ReleaseError(CensafeError):
    """Something that is not private was about to be released."""

    exit_code = 4


class StorageError(CensafeError):
    """The disk is full, a folder is not writable or a file vanished."""
