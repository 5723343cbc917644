"""Parquet tables: the same columns as the CSV files, in any order, as text or as integers."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from censafe.population.files.delimited import csv_relation, no_rows, printable_names
from censafe.population.files.layout import MAFID_HIGH, MAFID_LOW, TABLES, TableSchema, layout
from censafe.population.files.relation import Relation, TableFiles, engine_errors, name_in
from censafe.population.findings import Finding, layout_finding

_OVERLAP = 3


def table_relation(source: TableFiles) -> Relation:
    """Check the headers of a table's files and describe how to scan them."""
    return csv_relation(source) if source.kind == "text" else parquet_relation(source)


def parquet_relation(source: TableFiles) -> Relation:
    """Check the schemas of a table's files and describe how to scan them."""
    schema = layout(source.table)
    findings: list[Finding] = []
    kinds: list[dict[str, str]] = []
    rows = 0
    spans: list[tuple[int, int]] = []
    for path in source.paths:
        label = name_in(source.paths, path)
        metadata = parquet_metadata(str(path), label, findings)
        if metadata is None:
            continue
        fields = list(metadata.schema.to_arrow_schema())
        kind = {field.name: _kind(field.type) for field in fields}
        rows += metadata.num_rows
        spans += _mafid_spans(metadata)
        kinds.append(kind)
        findings += _problems(label, kind, schema)
        names = [field.name for field in fields]
        repeated = [name for name in schema.header if names.count(name) > 1]
        if repeated:
            findings.append(
                layout_finding(label, "columns repeated", "each column once", column=", ".join(repeated))
            )
    integers = {name for kind in kinds for name, type_name in kind.items() if type_name == "integer"}
    mixed = sorted(name for name in integers if any(kind.get(name) == "text" for kind in kinds))
    if mixed and source.table in TABLES:  # whose files are scanned as one
        problem, allowed = "the type differs between files", "one type in all files"
        findings.append(layout_finding(source.label, problem, allowed, column=", ".join(mixed)))
    if not rows and not any(finding.severity == "stop" for finding in findings):
        findings += no_rows(source, "the table has no rows")
    return Relation(
        table=source.table,
        label=source.label,
        rows_about=rows,
        findings=tuple(findings),
        files=source.paths,
        integers=frozenset(integers),
        clustered=_clustered(spans),
    )


def readable_texts(texts: Any) -> list[Any]:
    """Values of an Arrow array; bytes of text that are not UTF-8 become U+FFFD, which no code holds."""
    import pyarrow as pa

    try:
        return list(texts.to_pylist())
    except UnicodeDecodeError:
        if pa.types.is_dictionary(texts.type):
            texts = texts.dictionary_decode()
        values = texts.cast(pa.large_binary()).to_pylist()
        return [None if value is None else value.decode("utf-8", "replace") for value in values]


def parquet_metadata(path: str, label: str, findings: list[Finding]) -> Any:
    """Metadata of a Parquet file; None, and a finding, where it is no whole one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from censafe.geography.files import require_plausible_size

    try:
        with engine_errors(label):
            metadata = pq.read_metadata(path)
    except (pa.ArrowException, UnicodeDecodeError):  # the latter of names of columns
        findings.append(layout_finding(label, "the file is not a whole Parquet file", "Parquet"))
        return None
    require_plausible_size(path, metadata)
    return metadata


def _mafid_spans(metadata: Any) -> list[tuple[int, int]]:
    """Smallest and largest MAFID of every row group; the whole range where that is unknown."""
    names = metadata.schema.to_arrow_schema().names
    if "MAFID" not in names:
        return []
    spans = []
    for group in range(metadata.num_row_groups):
        statistics = metadata.row_group(group).column(names.index("MAFID")).statistics
        bounds: tuple[Any, Any] = ("", "")
        if statistics and statistics.has_min_max:
            with suppress(UnicodeDecodeError):  # reported when the values are read
                bounds = statistics.min, statistics.max
        known = all(isinstance(bound, int) or str(bound).isdecimal() for bound in bounds)
        spans.append((int(bounds[0]), int(bounds[1])) if known else (MAFID_LOW, MAFID_HIGH))
    return spans


def _clustered(spans: list[tuple[int, int]]) -> bool:
    """Whether row groups overlap little: an average MAFID lies in the span of few of them."""
    if not spans:
        return True
    width = max(high for _, high in spans) - min(low for low, _ in spans) + 1
    return sum(high - low + 1 for low, high in spans) <= _OVERLAP * width


def _kind(arrow_type: object) -> str:
    import pyarrow as pa

    if pa.types.is_dictionary(arrow_type):
        arrow_type = arrow_type.value_type  # type: ignore[attr-defined]
    if pa.types.is_integer(arrow_type):
        return "integer"
    if pa.types.is_boolean(arrow_type):
        return "boolean"
    if pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type):
        return "text"
    return "other"


def _problems(label: str, kinds: dict[str, str], schema: TableSchema) -> list[Finding]:
    missing = [name for name in schema.header if name not in kinds]
    extra = [name for name in kinds if name not in schema.header]
    wrong = [
        column.name
        for column in schema.columns
        if kinds.get(column.name) == "other" or (kinds.get(column.name) == "boolean" and not column.choices)
    ]
    allowed = "the columns " + ", ".join(schema.header)
    names = printable_names(list(kinds), schema.header)
    unexpected = "unexpected columns" if names else f"{len(extra)} unexpected columns"
    problems = (
        (missing, "columns missing", allowed, ", ".join(missing)),
        (extra, unexpected, allowed, names),
        (wrong, "type is neither text nor integer", "text or integer", ", ".join(wrong)),
    )
    return [layout_finding(label, *words, column=column) for columns, *words, column in problems if columns]
