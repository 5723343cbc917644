"""What bad input gets: exit code 1, a message that names the place and the fix, and nothing left behind.

Every rule is broken in the tests of readers and configurations; here stand some of every kind.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from censafe.privacy.ledger.book import Ledger
from censafe.privacy.ledger.report import verify
from censafe.products.run.folder import RunFolder
from censafe.publication import atomic
from support.commands import CommandLine, bureau_config, write_config
from support.ledgers import stated

Change = Callable[[Path], None]


def _replace(name: str, old: str, new: str, count: int = 1) -> Change:
    def change(folder: Path) -> None:
        path = folder / name
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, count), encoding="utf-8")

    return change


def _append(name: str, line: str) -> Change:
    return lambda folder: (folder / name).write_text((folder / name).read_text() + line + "\n")


def _write(name: str, data: bytes) -> Change:
    def change(folder: Path) -> None:
        (folder / name).write_bytes(data)

    return change


STOPPED: dict[str, tuple[Change, tuple[str, ...]]] = {
    "semicolons": (lambda f: _replace("persons.csv", ",", ";", 10_000)(f), ("persons.csv", "semicolon", "comma")),
    "missing column": (_replace("persons.csv", "CENRACE,RELSHIP", "RELSHIP"), ("persons.csv", "CENRACE")),
    "unknown race code": (_replace("persons.csv", ",01,20", ",64,20"), ("persons.csv", "CENRACE", "01 to 63")),
    "duplicate unit": (_append("units.csv", "2,100000002,1,0,2,02,2,6,05,5"), ("units.csv", "MAFID", "2 rows", "every MAFID once")),
    "orphan person": (_append("persons.csv", "3,100000999,30,1,01,20"), ("persons.csv", "MAFID", "1 row")),
    "unit without place": (_replace("geo.csv", "2,100000003,44", "2,100000030,44"), ("MAFID",)),
    "truncated file": (
        lambda folder: (folder / "units.csv").write_bytes((folder / "units.csv").read_bytes()[:-12]),
        ("units.csv",),
    ),
    "not text": (_write("persons.csv", b"PK\x03\x04\xff\xfe\x00\x00" * 50), ("persons.csv",)),
    "missing file": (lambda folder: (folder / "geo.csv").unlink(), ("geo",)),
    "no region left": (
        lambda folder: _replace("geo.csv", ",44,001", ",06,001", 99)(folder)
        or _replace("geo.csv", ",50,001", ",06,001", 99)(folder),
        ("geo.csv", "no region is left"),
    ),
    "truncated parquet": (
        lambda folder: [path.unlink() for path in folder.iterdir()]
        and [(folder / f"{name}.parquet").write_bytes(b"PAR1abc") for name in ("persons", "units", "geo")],
        ("parquet",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", STOPPED)
def test_broken_records_stop_the_run_with_the_place_and_leave_nothing(
    censafe: CommandLine, data: Path, config: Path, tmp_path: Path, fault: str
) -> None:
    change, fragments = STOPPED[fault]
    change(data)
    done = censafe("run", "phsafe", config, data, tmp_path / "out", "--quiet", ends=1, says=fragments)
    assert "Traceback" not in done.err
    assert "10000000" not in done.err  # no MAFID
    assert not (tmp_path / "out").exists()
    ledger = tmp_path / "censafe-ledger.jsonl"
    assert not ledger.exists() or not verify(ledger).rows


def truth_of(censafe: CommandLine, config: Path, data: Path, out: Path) -> dict[str, bytes]:
    censafe("truth", "phsafe", config, data, out, "--confidential", ends=0)
    return {path.name: path.read_bytes() for path in out.glob("tables/*/*.csv")}


@pytest.fixture(scope="module")
def plain(censafe: CommandLine, released: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The exact tables of the small population."""
    out = tmp_path_factory.mktemp("plain") / "truth"
    return truth_of(censafe, released / "config.json", released / "data", out)


def test_pipes_give_the_same_truth(
    censafe: CommandLine, data: Path, config: Path, tmp_path: Path, plain: dict[str, bytes]
) -> None:
    _replace("geo.csv", ",", "|", 10_000)(data)
    assert truth_of(censafe, config, data, tmp_path / "changed") == plain


def _config(**changes: Any) -> dict[str, Any]:
    chosen = bureau_config() | changes
    return {key: value for key, value in chosen.items() if value is not None}


def _budget(table: str, level: str, value: object) -> dict[str, Any]:
    chosen = bureau_config()
    chosen["privacy_budget"][table][level] = value
    return chosen


CONFIGS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "missing tau": (_config(tau={"PH2": 5}), ("tau: missing table", "PH3")),
    "negative budget": (_budget("PH3", "usa_*", -1), ("privacy_budget.PH3.usa_*", "negative")),
    "infinite budget": (_budget("PH3", "usa_*", float("inf")), ("privacy_budget.PH3.usa_*", "--private-path")),
}  # fmt: skip


@pytest.mark.parametrize("fault", CONFIGS)
def test_broken_configurations_name_the_key(
    censafe: CommandLine, data: Path, tmp_path: Path, fault: str
) -> None:
    chosen, fragments = CONFIGS[fault]
    path = write_config(tmp_path / "bad.json", chosen)
    for verb in (("validate", "phsafe", path, data), ("run", "phsafe", path, data, tmp_path / "out")):
        censafe(*verb, ends=1, says=fragments)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", [b"", b"\xff\xfe{}", b'{"reader": "csv', b"[" * 100_000, None])
def test_a_configuration_that_is_none_gets_a_fix(
    censafe: CommandLine, data: Path, tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "bad.json"
    path.mkdir() if content is None else path.write_bytes(content)
    censafe("run", "phsafe", path, data, tmp_path / "out", ends=1, says=("bad.json", "; fix: "))
    assert not (tmp_path / "out").exists()


def test_an_unknown_key_warns_in_the_bureaus_json(censafe: CommandLine, data: Path, tmp_path: Path) -> None:
    path = write_config(tmp_path / "extra.json", bureau_config() | {"color": "red"})
    censafe("validate", "phsafe", path, data, ends=0, says="unknown key 'color' is ignored")


def test_infinite_budgets_are_legal_on_the_private_path_of_truth(
    censafe: CommandLine, data: Path, tmp_path: Path
) -> None:
    path = write_config(tmp_path / "inf.json", bureau_config(budget=float("inf")))
    censafe("truth", "phsafe", path, data, tmp_path / "exact", "--confidential", "--private-path", ends=0)
    assert len(list((tmp_path / "exact" / "tables").iterdir())) == 12  # eleven tables and the stamp


@pytest.mark.parametrize("verb", [("evaluate", "--trials", "2"), ("truth", "--confidential")])
def test_a_full_disk_leaves_nothing_of_an_evaluation(
    censafe: CommandLine,
    data: Path,
    config: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    verb: tuple[str, ...],
) -> None:
    """However many files were written before the disk was full."""
    before, real, written = sorted(tmp_path.rglob("*")), atomic.sync, list[str]()
    limit = [0]
    command = (verb[0], "phsafe", config, data, tmp_path / "out", *verb[1:], "--quiet")

    def full(path: Path) -> None:
        if len(written) >= limit[0] and path.is_file():
            raise OSError(28, "No space left on device")
        written.append(path.name)
        real(path)

    for last in (0, 3, 8):
        written.clear()
        limit[0] = last
        with monkeypatch.context() as patch:
            patch.setattr(atomic, "sync", full)
            stopped = censafe(*command)
        assert stopped.code == 1
        assert "the disk is full" in stopped.err
        assert sorted(tmp_path.rglob("*")) == before
    censafe(*command, ends=0)


def test_an_evaluation_removes_the_records_of_a_killed_start_wherever_they_lay(
    censafe: CommandLine, data: Path, config: Path, tmp_path: Path
) -> None:
    left = tmp_path / "first" / ".censafe-scratch-00112233445566ff"
    left.mkdir(parents=True)
    (left / "records.parquet").write_text("confidential", encoding="utf-8")
    work = tmp_path / "out" / ".censafe"
    work.mkdir(parents=True)
    (work / "identity.json").write_text(
        '{"identity": {"kind": "evaluation"}, "run": "0123456789abcdef"}', encoding="utf-8"
    )
    (work / "scratch.json").write_text(json.dumps([str(left.parent)]), encoding="utf-8")
    done = censafe(
        "evaluate", "phsafe", config, data, tmp_path / "out", "--trials", "1", "--scratch",
        tmp_path / "second", "--quiet",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert not left.exists()


def test_a_full_disk_leaves_ledger_and_inputs_whole_and_the_run_goes_on_later(
    censafe: CommandLine, data: Path, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = {path: path.read_bytes() for path in data.iterdir()}
    command = ("run", "phsafe", config, data, tmp_path / "out", "--quiet")
    real = atomic.sync

    def full(path: Path) -> None:
        if "PH3" in path.name:
            raise OSError(28, "No space left on device")
        real(path)

    with monkeypatch.context() as patch:
        patch.setattr(atomic, "sync", full)
        stopped = censafe(*command)
    assert stopped.code == 1
    assert "the disk is full" in stopped.err
    assert not (tmp_path / "out" / "tables").exists()
    assert not list((tmp_path / "out").rglob("*partial*"))
    assert inputs == {path: path.read_bytes() for path in data.iterdir()}
    censafe(*command, ends=0)
    assert stated(tmp_path / "censafe-ledger.jsonl") == [46]


def test_a_broken_ledger_stops_with_its_line(censafe: CommandLine, release_copy: Path) -> None:
    ledger, two = release_copy / "censafe-ledger.jsonl", release_copy / "two"
    command = ("run", "phsafe", release_copy / "config.json", release_copy / "data", two)
    lines = ledger.read_text().splitlines()
    assert '"time":"20' in lines[2]
    lines[2] = lines[2].replace('"time":"20', '"time":"21', 1)
    ledger.write_text("\n".join(lines) + "\n")
    for verb in (("ledger", "verify", ledger), command):
        censafe(*verb, ends=3, says="line 4")
    assert not two.exists()


def test_a_locked_ledger_and_a_busy_folder_are_refused(
    censafe: CommandLine, data: Path, config: Path, tmp_path: Path
) -> None:
    with Ledger.open(tmp_path / "censafe-ledger.jsonl", label="other"):
        locked = censafe("run", "phsafe", config, data, tmp_path / "out")
    assert locked.code == 3
    assert "lock" in locked.err
    with RunFolder(tmp_path / "out") as folder:
        folder.identify({"plan": "other"})
        busy = censafe("run", "phsafe", config, data, tmp_path / "out")
    assert busy.code == 2
    assert "another run is working" in busy.err


def test_a_folder_with_other_things_is_refused_untouched(
    censafe: CommandLine, data: Path, config: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.txt").write_text("mine")
    for verb in (
        ("run", "phsafe", config, data, out),
        ("truth", "phsafe", config, data, out, "--confidential"),
    ):
        censafe(*verb, ends=2, says="not empty")
    assert [path.name for path in out.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (("rum",), "Did you mean 'run'"),
        (("run", "phsave"), "phsafe"),
        (("plan", "phsafe", "sdhc-uz"), "sdhc-us"),
        (("run", "phsafe", "sdhc-us"), "DATA and OUT are missing"),
        (("run", "phsafe", "sdhc-us", "/nowhere/at/all", "out"), "does not exist"),
        (("run", "phsafe", "sdhc-us", ".", "out", "--cap", "much"), "is not a number"),
        (("run", "phsafe", "sdhc-us", ".", "out", "--set", "reader"), "KEY=VALUE"),
        (("evaluate", "phsave"), "Did you mean 'phsafe'"),
        (("run", "phsafe", "sdhc-us", ".", "out", "--confidence", "0.8"), "0.9"),
    ],
)
def test_typing_errors_get_a_hint(censafe: CommandLine, arguments: tuple[str, ...], fragment: str) -> None:
    done = censafe(*arguments)
    assert done.code in (1, 2)
    assert fragment in done.err
