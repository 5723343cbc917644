"""Run the command line inside the test process, and small configurations for it."""

import json
import sys
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from censafe.cli import main

TABLES = ("PH1_num", "PH1_denom", "PH2", "PH3", "PH4", "PH5_denom", "PH6", "PH7", "PH8_denom")
LEVELS = ("usa_A-G", "usa_H,I", "usa_*", "state_A-G", "state_H,I", "state_*")


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


class CommandLine:
    def __call__(
        self,
        *arguments: object,
        new_ledger: bool = True,
        ends: int | None = None,
        says: str | Iterable[str] = (),
    ) -> Outcome:
        """Run one command; the exit code is that of the process. A release begins the default ledger, unless ``new_ledger`` is off.

        The code must be ``ends``, and the words of ``says`` must be among the messages.
        """
        if new_ledger and arguments[:1] == ("run",) and not {"--ledger", "--test-key"} & set(arguments):
            arguments = (*arguments, "--new-ledger")
        streams = [TextIOWrapper(BytesIO(), encoding="utf-8", newline="", write_through=True) for _ in "oe"]
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(streams[0]), redirect_stderr(streams[1]):
            patch.setattr(sys, "argv", ["censafe", *map(str, arguments)])
            with pytest.raises(SystemExit) as stop:
                main()
        code = stop.value.code
        out, err = (stream.buffer.getvalue().decode() for stream in streams)  # type: ignore[attr-defined]
        done = Outcome(code if isinstance(code, int) else 1, out, err)
        assert ends is None or done.code == ends, done
        for words in (says,) if isinstance(says, str) else says:
            assert words in err, err
        return done


def levels_of(table: str) -> tuple[str, ...]:
    return tuple(level for level in LEVELS if level.endswith("*")) if table in ("PH2", "PH6") else LEVELS


def bureau_config(*, budget: float = 1.0, definition: str = "zcdp") -> dict[str, Any]:
    """A valid configuration in the Bureau's form for the small population of two states."""
    return {
        "privacy_budget": {table: dict.fromkeys(levels_of(table), budget) for table in TABLES},
        "tau": {"PH1_num": 5, "PH2": 5, "PH3": 5, "PH4": 5, "PH6": 5, "PH7": 5},
        "state_filter": ["44", "50"],
        "reader": "csv",
        "privacy_defn": definition,
    }


def everyone_config(*, budget: float = 1.0) -> dict[str, Any]:
    """The same for everyone alone, not by race, so that there are few fits."""
    config = bureau_config(budget=budget)
    for budgets in config["privacy_budget"].values():
        budgets.update({level: 0 for level in budgets if not level.endswith("*")})
    return config


def write_config(path: Path, config: dict[str, Any]) -> Path:
    path.write_text(json.dumps(config), encoding="utf-8")
    return path
