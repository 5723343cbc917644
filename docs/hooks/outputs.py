"""Output files and their columns, and errors with their exit codes, from the data and types that decide on them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import get_args

import pyarrow as pa

from censafe import errors
from censafe.evaluation.shipped import CODEBOOK
from censafe.publication.columns import TidyName, tidy_columns

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
| `table_estimates.parquet`, `table_estimates_codebook.csv` | TopDown, with `--tables` | linear estimates of census tables with standard deviations |
| `names.csv` | TopDown and SafeTab, with `--names` | names of areas |

Other commands write:

| file | command | what |
|---|---|---|
| `report.html`, `figures/` | `evaluate`, `attack` | the page, and each of its figures as SVG |
| `*.csv`, `*.parquet` | `evaluate`, `attack` | the numbers behind the page; [their columns](#columns-of-evaluations-and-attacks) |
| `evaluation.json`, `manifest.json` | `evaluate`, `attack` | configuration and choices; whether the folder is confidential |
| `CONFIDENTIAL.txt` | `truth`, `evaluate`, `attack` | the stamp of a folder that compares with, or holds, confidential counts |
| `tables/`, the layout of the run | `truth` | true tables, without noise |
| a file, or `TABLE_GEOGRAPHY.parquet` | `tables` | one row for each area and cell (`GEOID`, `GISJOIN`, `NAME`, `table`, `variable`, `label`, `value`; with intervals also `low`, `high`, and `bias`, `rmse` or `estimate`, `sd`), or one row for each area and one column for each variable |
| `44/ri000012020.dhc`, `44/rigeo2020.dhc` | `tables --segments` | the Bureau's segments: FILEID, STUSAB, CHARITER, CIFSN, LOGRECNO, then cells |
| `card-GEOID.html` | `card` | one page for an area |
| a folder for each replicate | `replicate` | the files of a run, stamped |
| `synthetic.json` | `synth` | SHA-256 of the files, by which a run recognizes records behind which no person stands |
| `censafe-ledger.jsonl`, `censafe-ledger.key` | `run`, beside the data | the ledger and its key, both private ([Privacy](../../PRIVACY.md)) |

The columns of the tidy files follow; the `codebook.csv` of a run says the same of its own files.
"""
_TITLES = {
    "tables": "`tables.parquet` of PHSafe",
    "groups": "`tables.parquet` of SafeTab",
    "topdown": "`csv/` of TopDown",
    "intervals": "`intervals.parquet` of TopDown",
    "table_estimates": "`table_estimates.parquet` of TopDown",
}
_EVALUATED = """
## Columns of evaluations and attacks

Every frame has its columns in `codebook.csv` beside it; these are all that are known. A frame over several runs adds `_run_mean` and `_run_sd` to a name, a frame of
two sides `_sf` (as tabulated) and `_dp` (as published). `classification` says who may see the file.

| column | meaning | unit |
|---|---|---|
"""
_ERRORS = """# Errors and exit codes

A message says what is wrong, where (file, column, number of rows), what is allowed and what to do; never a value of a record.
`--examples FILE` writes keys of offending records to a private file. On the command line the type of an error decides the exit code;
in Python each is an exception of `censafe.errors`, below `CensafeError`.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | bad data or configuration; or the disk, a folder or a file refused |
| 2 | wrong usage: an unknown option, or a request that makes no sense as a whole |
| 3 | budget refused: the cap, earlier spending without `--spend-more`, no ledger without `--new-ledger`, a cited result that another ledger paid for, a broken or locked ledger |
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
            text += f"| `{column}` | {kind} | {_cell(what.meaning)} |\n"
    text += _EVALUATED
    for column, (meaning, unit) in sorted(CODEBOOK.items()):
        text += f"| `{column}` | {_cell(meaning)} | {_cell(unit)} |\n"
    return text


def _cell(words: str) -> str:
    """Words of a cell of a Markdown table."""
    return words.replace("|", "\\|").replace("*", "\\*")


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
