"""What an evaluation hands back to the command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["TopdownEvaluation"]


@dataclass(frozen=True)
class TopdownEvaluation:
    """CONFIDENTIAL unless public. What an evaluation found and where it was written.

    Args:
        lines: a summary.
        files: what was written.

    Example:
        >>> print(TopdownEvaluation(("Nothing is wrong.",), (Path("report.html"),)).text())
        Nothing is wrong.
        Files:
          report.html
    """

    lines: tuple[str, ...]
    files: tuple[Path, ...]

    def text(self) -> str:
        """The summary and the files."""
        return "\n".join([*self.lines, "Files:", *(f"  {path}" for path in self.files)])
