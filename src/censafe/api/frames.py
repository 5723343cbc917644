"""Tables as they leave the package: Arrow inside, any data frame outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


class Frame:
    """One table. Any library that reads the Arrow stream interface takes it as it is.

    Args:
        arrow: the table.

    Source: Apache Arrow, "The Arrow PyCapsule Interface".

    Example:
        >>> import pyarrow as pa
        >>> Frame(pa.table({"REGION_ID": ["44", "50"], "COUNT": [12, -3]}))
        Frame(2 rows: REGION_ID, COUNT)
        >>> Frame(pa.table({"COUNT": [12, -3]})).arrow.column("COUNT").to_pylist()
        [12, -3]
    """

    def __init__(self, arrow: pa.Table) -> None:
        self.arrow = arrow

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.arrow.column_names)

    def __len__(self) -> int:
        return int(self.arrow.num_rows)

    def __repr__(self) -> str:
        rows = f"{len(self):,} row{'' if len(self) == 1 else 's'}"
        names = ", ".join(self.columns[:8])
        return f"Frame({rows}: {names}{', ...' if len(self.columns) > 8 else ''})"

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The Arrow stream interface, by which DuckDB, pandas, Polars and others read the table."""
        return self.arrow.__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """A pandas data frame.

        Raises:
            ModuleNotFoundError: pandas is not installed.
        """
        return self.arrow.to_pandas()

    def to_polars(self) -> Any:
        """A Polars data frame.

        Raises:
            ModuleNotFoundError: Polars is not installed.
        """
        import polars

        return polars.from_arrow(self.arrow)


class Frames(Mapping[str, Frame]):
    """Tables by name, each read on first use.

    Args:
        readers: by name, what reads the table.

    Example:
        >>> import pyarrow as pa
        >>> Frames({"PH3": lambda: pa.table({"COUNT": [1]})})
        Frames(PH3)
    """

    def __init__(self, readers: Mapping[str, Callable[[], pa.Table]]) -> None:
        self._readers = dict(readers)

    def __getitem__(self, name: str) -> Frame:
        if name not in self._readers:
            raise KeyError(f"{name}: there are {', '.join(self._readers) or 'no tables'}")
        return Frame(self._readers[name]())

    def __iter__(self) -> Iterator[str]:
        return iter(self._readers)

    def __len__(self) -> int:
        return len(self._readers)

    def __repr__(self) -> str:
        return f"Frames({', '.join(self._readers)})"
