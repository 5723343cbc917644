"""PUBLIC FACTS. Reading and checking the files in which the products define their tables of population groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from typing import Any, TypeVar

from censafe.errors import ConfigError
from censafe.model import TableVariant
from censafe.model.groups.cells import GroupLayout, GroupTable, Shell
from censafe.model.parsing import parse_toml

FILE = "tables.toml"
_T = TypeVar("_T")


def table_text(package: str) -> str:
    """The tables of a product as they ship with it."""
    return files(package).joinpath(FILE).read_text(encoding="utf-8")


def parse_tables(text: str, place: str, build: Callable[[dict[str, Any]], _T]) -> _T:
    """Parse definitions and build values from them."""
    document = parse_toml(text, place)
    try:
        return build(document)
    except ConfigError as error:
        raise ConfigError(f"{place}: {error}") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"{place}: a value is not of the kind that its key needs: {error}") from error


def check_table(table: GroupTable, variants: Sequence[TableVariant]) -> None:
    """Compare what is written with what is measured."""
    problems = list(_problems(table, variants))
    if problems:
        raise ConfigError(f"{table.key}: {'; '.join(problems)}")


def _problems(table: GroupTable, variants: Sequence[TableVariant]) -> Iterator[str]:
    paths = [layout.path for layout in table.layouts]
    if len(set(paths)) < len(paths):
        yield "two files have the same name"
    if list(table.shells) != list(range(len(variants))):
        yield f"the files must have tables for the stat levels 0 to {len(variants) - 1}, not {list(table.shells)}"
        return
    for layout in table.layouts:
        for level, shell in layout.shells.items():
            for problem in _shell_problems(layout, shell, len(variants[level].cells)):
                yield f"{shell.table} at stat level {level} {problem}"


def _shell_problems(layout: GroupLayout, shell: Shell, measured: int) -> Iterator[str]:
    if shell.basis != measured:
        yield f"must sum {measured} measured cells, not {shell.basis}"
    members = [member for cell in shell.cells for member in cell.members]
    if any(not 0 <= member < measured for member in members):
        yield f"has a member outside 0 to {measured - 1}"
    left_out = sorted(set(range(measured)) - set(members))
    if left_out:
        yield f"writes no cell with the measured cells {left_out}"
    if any(not cell.members or len(set(cell.members)) < len(cell.members) for cell in shell.cells):
        yield "has a cell that sums nothing, or a measured cell twice"
    if len({cell.code for cell in shell.cells}) < len(shell.cells):
        yield "has two cells with the same code"
    if len({cell.fields for cell in shell.cells}) < len(shell.cells):
        yield "has two cells with the same entries in the file"
    if any(len(cell.fields) != len(layout.cell_columns) for cell in shell.cells):
        yield f"must have entries for the columns {', '.join(layout.cell_columns) or '(none)'}"
