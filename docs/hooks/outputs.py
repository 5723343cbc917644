"""Output files and their columns, and errors with their exit codes, from the data and types that decide on them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import get_args

import pyarrow as pa

from censafe import errors
from censafe.publication.columns import TidyName, tidy_columns

__all__ = ["errors_page", "files_page"]

_FILES = """# Output files and their columns

A run writes one folder. What is in it depends on the product:

| file | products | what |
|---|---|---|
| `certificate.html`, `certificate.json` | all | what was protected, how, at what cost, and what is not promised |
| `manifest.json` | all | plan, configuration, versions, digests of all outputs, keyed commitments to the inputs; written last |
| `codebook.csv` | all | what columns, cells and codes mean |
| `measurements/` | all | the noisy answers as they were measured; each file is committed in the ledger |
| `tables/` | all | PHSafe and SafeTab: one folder a table, the Bureau's layout, `|` between columns; TopDown: redistricting tables, one Parquet file a level |
| `tables.parquet` | PHSafe, SafeTab | every number with label, variance, margin of error, confidence, budget |
| `estimates/` | PHSafe, after `estimate` | non-negative counts, averages and intervals in the Bureau's layout |
| `microdata/` | TopDown | one record a person and a housing unit, in the Bureau's layout |
| `histograms/` | TopDown | counts of every area that are not 0: area, cell, count |
| `csv/` | TopDown | copies of tables and histograms as text; files of more than 1 GiB are left out |
| `intervals.parquet`, `intervals.csv`, `intervals/` | TopDown, after `estimate --intervals` | unbiased estimates and intervals of every area |

The columns of the tidy files follow; the `codebook.csv` of a run says the same of its own files.
"""
_TITLES = {
    "tables": "`tables.parquet` of PHSafe",
    "groups": "`tables.parquet` of SafeTab",
    "topdown": "`csv/` of TopDown",
    "intervals": "`intervals.parquet` of TopDown",
}
_ERRORS = """# Errors and exit codes

A message says what is wrong, where (file, column, number of rows), what is allowed and what to do; never a value of a record.
`--examples FILE` writes keys of offending records to a private file. On the command line the type of an error decides the exit code;
in Python each is an exception of `censafe.errors`, below `CensafeError`.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | bad data or configuration; or the disk, a folder or a file refused |
| 2 | wrong usage: an unknown option, or a request that makes no sense as a whole |
| 3 | budget refused: the cap, earlier spending without `--spend-more`, a broken or locked ledger |
| 4 | an infeasible problem, output that failed its own check, or a release of what is not private |
| 70 | a fault of the program; the message names a report without any value of a record |
| 130 | interrupted (Ctrl-C); 143 by SIGTERM. The same command continues |

| error | below | exit code | meaning |
|---|---|---|---|
"""


def files_page() -> str:
    """Files of a run and the columns of the tidy ones."""
    text = _FILES
    for name in get_args(TidyName):
        text += f"\n## {_TITLES.get(name, name)}\n\n| column | type | meaning |\n|---|---|---|\n"
        for column, what in tidy_columns(name).items():
            kind = "text" if pa.types.is_dictionary(what.type) else str(what.type)
            text += f"| `{column}` | {kind} | {what.meaning.replace('|', chr(92) + '|').replace('*', chr(92) + '*')} |\n"
    return text


def errors_page() -> str:
    """Exceptions and exit codes."""
    return _ERRORS + "".join(
        f"| `{kind.__name__}` | {_base(kind)} | {kind.exit_code} | {inspect.getdoc(kind)} |\n"
        for kind in _kinds(errors.CensafeError)
    )


def _kinds(kind: type[errors.CensafeError]) -> Iterator[type[errors.CensafeError]]:
    yield kind
    for inner in kind.__subclasses__():
        if inner.__module__ == errors.__name__:
            yield from _kinds(inner)


def _base(kind: type[errors.CensafeError]) -> str:
    base = kind.__base__
    return f"`{base.__name__}`" if base is not None else ""
