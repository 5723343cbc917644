"""Bad input: a generator of corruptions by reader and rule, each tried by a release on a ledger."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from campaign import child
from campaign.outcomes import Baselines, said
from campaign.trials import Failures, Finding
from campaign.worlds import Scenario
from censafe.privacy.ledger.report import verify

CANARY = "QZJX7731"
"""A value that stands in no valid input; it must not come back in any byte of what the program says or writes."""


@dataclass(frozen=True)
class Target:
    """One file that a command reads."""

    scenario: str
    file: str  # below the folder of the inputs
    mark: str  # between fields; empty for Parquet, `json` for JSON


TARGETS = (
    *(Target("run phsafe", f"phsafe/data/{name}.csv", ",") for name in ("persons", "units", "geo")),
    Target("run phsafe", "config.json", "json"),
    *(Target(f"run {product}", f"safetab/records/{name}.txt", "|")
      for product, names in (("safetab-p", ("person-records", "GRF-C")), ("safetab-h", ("household-records", "pop-group-totals", "GRF-C")))
      for name in names),
    *(Target(f"run {product}", f"safetab/{folder}/{name}.txt", "|")
      for product, folder in (("safetab-p", "parameters_p"), ("safetab-h", "parameters_h"))
      for name in ("race-and-ethnicity-codes", "race-characteristic-iterations", "ethnicity-characteristic-iterations",
                   "race-and-ethnicity-code-to-iteration")),
    *(Target(f"run {product}", f"safetab/{folder}/config.json", "json")
      for product, folder in (("safetab-p", "parameters_p"), ("safetab-h", "parameters_h"))),
    *(Target("run e2e-1940", f"e2e/data/{name}.parquet", "") for name in ("histogram", "units")),
    *(Target("run dhc", f"dhc/data/{name}.parquet", "") for name in ("persons", "units")),
)  # fmt: skip

RECORDS = ("persons.", "units.", "geo.", "person-records", "household-records", "histogram.")
"""Files of confidential records; names and codes of all others are public, and may be said."""

Edit = Callable[[Path], None]


@dataclass(frozen=True)
class Corruption:
    """One way to spoil a file."""

    target: Target
    rule: str
    column: str  # empty for the whole file
    edit: Edit
    fatal: bool  # whether no run may accept the file; otherwise it may be read as something valid
    named: bool = False  # whether the message must name the column


def corruptions(folder: Path) -> list[Corruption]:
    """All of them, for the inputs in a folder."""
    listed: list[Corruption] = []
    for target in TARGETS:
        path = folder / target.file
        listed += _of_bytes(target)
        if target.mark == "json":
            listed += _of_json(target, json.loads(path.read_text(encoding="utf-8")))
        elif target.mark:
            listed += _of_text(target, path.read_text(encoding="utf-8"))
        else:
            listed += _of_parquet(target, pq.read_schema(path))
    return listed


def of_bytes(change: Callable[[bytes], bytes]) -> Edit:
    return lambda path: path.write_bytes(change(path.read_bytes())) and None


def _of_bytes(target: Target) -> Iterator[Corruption]:
    text = bool(target.mark)
    edits: tuple[tuple[str, Edit, bool], ...] = (
        ("missing", Path.unlink, True),
        ("empty", of_bytes(lambda _: b""), True),
        ("a folder in its place", _folder, not target.file.endswith("parquet")),
        ("a link to itself", _loop, True),
        ("random bytes", of_bytes(lambda old: random.Random(len(old)).randbytes(997)), True),
        ("cut in the middle", of_bytes(lambda old: old[: 2 * len(old) // 3 + 1]), not text),
        ("compressed", of_bytes(lambda old: b"\x1f\x8b\x08\x00" + old), True),
        ("no UTF-8", of_bytes(lambda old: old[:-3] + b"\xff\xfe" + old[-3:]), text),
        (
            "a NUL byte",
            of_bytes(lambda old: old[:-2] + b"\x00" + old[-2:]),
            text and "parameters_" not in target.file,
        ),
    )
    yield from (Corruption(target, rule, "", edit, fatal) for rule, edit, fatal in edits)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def _of_json(target: Target, document: dict[str, Any]) -> Iterator[Corruption]:
    def key_as(key: str, value: Any) -> Edit:
        return _json(lambda old: {**old, key: value})

    yield Corruption(target, "a list", "", _json(lambda _: []), True)
    yield Corruption(target, "a number", "", _json(lambda _: 3), True)
    for key, value in list(document.items())[:24]:
        if not isinstance(value, bool):
            yield Corruption(target, "another type", key, key_as(key, {"x": [CANARY]}), True, True)
        yield Corruption(target, "null", key, key_as(key, None), True, True)
        if isinstance(value, int | float) and not isinstance(value, bool):
            for bad in (-1, 1e400, "NaN", "1/0"):
                yield Corruption(target, f"{bad}", key, key_as(key, bad), True, True)
    yield Corruption(target, "a key that no one reads", "", key_as("no_such_key", 1), False)


def _json(change: Callable[[Any], Any]) -> Edit:
    def edit(path: Path) -> None:
        path.write_text(json.dumps(change(json.loads(path.read_text(encoding="utf-8")))), encoding="utf-8")

    return edit


Rows = list[list[str]]


def _of_text(target: Target, text: str) -> Iterator[Corruption]:
    header = text.splitlines()[0].split(target.mark)

    def rows(change: Callable[[Rows], Rows]) -> Edit:
        def edit(path: Path) -> None:
            old = [line.split(target.mark) for line in path.read_text(encoding="utf-8").splitlines()]
            lines = "".join(target.mark.join(row) + "\n" for row in change(old))
            path.write_text(lines, encoding="utf-8")

        return edit

    def cell(place: int, value: str) -> Edit:
        def change(old: Rows) -> Rows:
            row = len(old) // 2 or 1
            old[row][place] = value
            return old

        return rows(change)

    other = ";" if target.mark == "," else ","
    edits: tuple[tuple[str, Edit, bool], ...] = (
        (
            "another delimiter",
            lambda path: path.write_text(path.read_text().replace(target.mark, other)) and None,
            True,
        ),
        ("a cell too many", rows(lambda old: [*old, [*old[-1], CANARY]]), True),
        ("a cell too few", rows(lambda old: [*old, old[-1][:-1]]), True),
        ("an open quotation", rows(lambda old: [*old, ['"' + old[-1][0], *old[-1][1:]]]), True),
        (
            "an unknown column",
            rows(lambda old: [[*old[0], "COLOR"], *([*row, "1"] for row in old[1:])]),
            not target.file.endswith("GRF-C.txt"),  # the Bureau's has further columns
        ),
        ("columns in another order", rows(lambda old: [[row[1], row[0], *row[2:]] for row in old]), True),
        ("header twice", rows(lambda old: [old[0], *old]), not target.file.endswith("geo.csv")),
        ("no header", rows(lambda old: old[1:]), True),
    )
    yield from (Corruption(target, rule, "", edit, fatal) for rule, edit, fatal in edits)
    for place, name in enumerate(header):
        without = rows(lambda old, place=place: [row[:place] + row[place + 1 :] for row in old])
        renamed = rows(
            lambda old, place=place: [[*old[0][:place], "RENAMED", *old[0][place + 1 :]], *old[1:]]
        )
        yield Corruption(target, "column left out", name, without, True, True)
        yield Corruption(target, "column renamed", name, renamed, True, True)
        strict = not (
            name.endswith("_NAME") or name == "TABBLKST"
        )  # units of no state are left out, with a warning
        for rule, value, fatal, named in (
            ("a word", CANARY, strict, strict),
            ("a number too long", "9" * 30, strict, strict),
            ("a fraction", "1.5", strict, strict),
            ("a negative number", "-1", strict and name != "COUNT", strict),
            ("nothing", "", False, False),
            ("a blank before", " 1", False, False),
        ):
            yield Corruption(target, rule, name, cell(place, value), fatal, named)


def _of_parquet(target: Target, schema: pa.Schema) -> Iterator[Corruption]:
    def table(change: Callable[[pa.Table], pa.Table]) -> Edit:
        return lambda path: pq.write_table(change(pq.read_table(path)), path)

    def column(name: str, make: Callable[[pa.ChunkedArray], Any]) -> Edit:
        return table(lambda old: old.set_column(old.schema.get_field_index(name), name, make(old[name])))

    yield Corruption(target, "no rows", "", table(lambda old: old.slice(0, 0)), False)
    yield Corruption(target, "rows twice", "", table(lambda old: pa.concat_tables([old, old])), False)
    unread = ["RTYPE"] if target.scenario == "run dhc" and "persons" in target.file else []
    for name in (name for name in schema.names if name not in unread):
        needed = name != "count"  # without it every row is one record
        without = table(lambda old, name=name: old.drop_columns([name]))
        renamed = table(
            lambda old, name=name: old.rename_columns(
                ["x" if column == name else column for column in old.column_names]
            )
        )
        yield Corruption(target, "column left out", name, without, needed, needed)
        yield Corruption(target, "column renamed", name, renamed, needed, needed)
        changes: dict[str, Callable[[pa.ChunkedArray], Any]] = {
            "words": lambda old: pa.array([CANARY] * len(old)),
            "fractions": lambda old: pa.array([0.5] * len(old)),
            "lists": lambda old: pa.array([[1]] * len(old)),
            "a missing value": lambda old: pa.array([None, *old.to_pylist()[1:]], old.type),
        }
        if pa.types.is_integer(schema.field(name).type):
            changes |= {
                "negative numbers": lambda old: pa.array([-1, *old.to_pylist()[1:]], pa.int64()),
                "numbers too large": lambda old: pa.array([2**62, *old.to_pylist()[1:]], pa.int64()),
            }
        for rule, change in changes.items():
            yield Corruption(target, rule, name, column(name, change), True, True)


class BadInput:
    """Corruptions of every input file of every product."""

    name = "bad-input"
    long = 0
    short = 40

    def __init__(self, baselines: Baselines, folder: Path) -> None:
        self._baselines = baselines
        self._folder = folder
        everything = corruptions(baselines.world.folder)
        self._corruptions = [one for one in everything if one.target.scenario in baselines.scenarios]
        self.long = len(self._corruptions)

    def trial(self, number: int, chance: random.Random, box: Path) -> Finding:
        """Spoil one file of a copy of the inputs and release; in the short form any one, in the long form each once."""
        short = self.long > self.short and chance.random() < 2 and "short" in self._folder.name
        corruption = self._corruptions[chance.randrange(self.long) if short else number]
        world, copy = self._baselines.world.folder, box / "world"
        scenario = world_of(self._baselines.world.scenarios[corruption.target.scenario], world, copy)
        box.mkdir(parents=True)
        top = corruption.target.file.split("/")[0]
        for name in {top, *(["config.json", "phsafe"] if scenario.name == "run phsafe" else [])}:
            source = world / name
            copy.mkdir(exist_ok=True)
            shutil.copytree(source, copy / name) if source.is_dir() else shutil.copy(source, copy / name)
        corruption.edit(copy / corruption.target.file)
        before = _listing(copy)
        ledger = box / "ledger.jsonl"
        ended = child.run(scenario.command(box, ("--ledger", str(ledger))), box, longest=60)
        failures = said(ended)
        failures += _refused(corruption, ended, box, ledger, _listing(copy) == before)
        name = f"{corruption.target.scenario}: {corruption.target.file}, {corruption.rule}{f' in {corruption.column}' if corruption.column else ''}"
        return Finding(
            name,
            failures,
            {
                "code": str(ended.code),
                "reader": corruption.target.file.rsplit("/", 1)[-1],
                "rule": corruption.rule,
            },
        )


def _listing(folder: Path) -> list[str]:
    """Names below a folder; a link that leads nowhere cannot be read."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def world_of(scenario: Scenario, world: Path, copy: Path) -> Scenario:
    """The same command on a copy of the inputs."""
    words = tuple(word.replace(str(world), str(copy)) for word in scenario.words)
    return Scenario(scenario.name, words, cost=scenario.cost)


def _refused(
    corruption: Corruption, ended: child.Ended, box: Path, ledger: Path, inputs_stay: bool
) -> Failures:
    """What is wrong with how a spoiled input was answered."""
    failures = Failures()
    failures.unless(
        not corruption.fatal or ended.code in (1, 4),
        f"exit code {ended.code} where 1 is due: {ended.err[-300:]}",
    )
    failures.unless(inputs_stay, "something was left beside the inputs")
    file = corruption.target.file.rsplit("/", 1)[-1]
    if ended.code == 0:
        return failures + _clean(box, ended, file, published=True)
    failures.unless(ended.code in (1, 4), f"exit code {ended.code}: {ended.err[-300:]}")
    failures.unless(file.split(".")[0] in ended.err, f"the message does not name {file}: {ended.err[-300:]}")
    failures.unless(
        not corruption.named or corruption.column in ended.err,
        f"the message does not name {corruption.column}: {ended.err[-300:]}",
    )
    failures.unless(bool(re.search(_FIX, ended.err)), f"the message names no fix: {ended.err[-300:]}")
    failures.unless(
        not (box / "out").exists() and not (box / "out-redistricting").exists(), "an output folder was left"
    )
    failures.unless(not ledger.exists() or not verify(ledger).rows, "the ledger was charged")
    return failures + _clean(box, ended, file, published=False)


_FIX = r"(?i)allowed|needed|expected|must|fix:|set |use |give |name |write |remove|make |check|correct|every |needs|export|see |add |only|should|no input file|which column"


def _clean(box: Path, ended: child.Ended, file: str, *, published: bool) -> Failures:
    """Whether the canary stands anywhere but in the inputs."""
    failures = Failures()
    failures.unless(
        not [name for name, _ in child.files(box / "tmp")], "a file was left in the temporary folder"
    )
    if not file.startswith(RECORDS):
        return failures
    failures.unless(CANARY not in ended.err + ended.out, "a value of the input is in a message")
    for top in ("out", "tmp", "io"):
        for name, path in child.files(box / top):
            if path.is_file():
                content = path.read_bytes()
                failures.unless(CANARY.encode() not in content, f"a value of the input is in {top}/{name}")
                if published and path.suffix == ".parquet":
                    failures.unless(
                        CANARY not in str(pq.read_table(path).to_pydict()),
                        f"a value of the input is in {name}",
                    )
    return failures
