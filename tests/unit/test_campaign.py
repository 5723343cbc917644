"""The checks of the campaign can fail: the library that makes calls fail, and what is held against a command."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")
def test_the_numbered_call_fails_once_and_calls_elsewhere_do_not_count(tmp_path: Path) -> None:
    library, inside, outside = tmp_path / "shim.so", tmp_path / "in", tmp_path / "out"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-o", library, ROOT / "campaign" / "shim.c", "-ldl"], check=True
    )
    inside.mkdir()
    outside.mkdir()
    script = textwrap.dedent(f"""
        import ctypes, errno, os
        shim = ctypes.CDLL({str(library)!r})
        shim.campaign_arm({str(inside)!r}.encode(), 0, ctypes.c_long(2), errno.ENOSPC)
        def write(folder):
            file = os.open(folder + "/file", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
            try:
                return os.write(file, b"x")
            except OSError as error:
                return error.errno
            finally:
                os.close(file)
        found = [write({str(outside)!r})] + [write({str(inside)!r}) for _ in range(3)]
        assert found == [1, 1, errno.ENOSPC, 1], found
        assert (shim.campaign_calls(0), shim.campaign_calls(3), shim.campaign_fired()) == (3, 3, 1)
    """)
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"LD_PRELOAD": f"./{library.name}"},  # a list, in which a space ends a name
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_failures_of_a_disturbed_command_are_seen() -> None:
    script = textwrap.dedent("""
        from campaign.child import Ended
        from campaign.outcomes import said
        def end(code, err, hung=False):
            return said(Ended(code, "", err, 0.0, 0, hung, True, 1))
        assert end(1, "Error: the disk is full") == []
        assert end(-9, "") == []
        assert end(1, "") != []
        assert end(70, "Error: fault") != []
        assert end(1, "Traceback (most recent call last)") != []
        assert end(0, "", hung=True) != []
    """)
    in_campaign(script)


def test_the_suite_always_draws_the_same_examples_and_the_campaign_new_ones() -> None:
    suite, explored = (settings.get_profile(name) for name in ("suite", "campaign"))
    assert (suite.derandomize, suite.database, suite.deadline) == (True, None, None)
    assert (explored.derandomize, explored.database, explored.deadline) == (False, None, None)
    assert len(providers._get_local_constants()) == 0, "examples depend on the modules imported so far"
    in_campaign("""
        from campaign.properties import property_files
        files = property_files()
        assert files[0].startswith("tests/property/") and len(files) >= 20, files
    """)


def in_campaign(script: str) -> None:
    """Run statements in a process that sees the campaign."""
    assert importlib.util.find_spec("censafe") is not None
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}:{ROOT / 'tests'}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_every_mutant_can_be_planted_once_and_names_tests_that_exist() -> None:
    listed = tomllib.loads((ROOT / "campaign" / "mutants.toml").read_text(encoding="utf-8"))["mutant"]
    assert len({one["name"] for one in listed}) == len(listed) >= 30
    for one in listed:
        text = (ROOT / "src" / "censafe" / one["file"]).read_text(encoding="utf-8")
        assert (one["name"], text.count(one["old"])) == (one["name"], 1)
        assert one["old"] != one["new"]
        assert one["tests"]
        for test in one["tests"]:
            path, _, function = test.partition("::")
            assert f"def {function}(" in (ROOT / path).read_text(encoding="utf-8"), test
            assert not path.endswith("test_proofs.py"), "a defect must be seen by what it does"


def test_only_a_test_that_fails_by_what_a_defect_does_kills_it() -> None:
    in_campaign("""
        from campaign.mutants import Mutant, judged
        mutant = Mutant("half the noise", "file.py", "1", "2", ("tests/unit/test_campaign.py::test_noise",))
        def failed(error):
            return judged(mutant, 1, f"E   {error}\\nFAILED tests/unit/test_campaign.py::test_noise - {error}\\n")
        killed = failed("AssertionError: 1 != 2")
        assert list(killed.failures) == [], killed.failures
        assert killed.facts["by"] == "tests/unit/test_campaign.py::test_noise", killed.facts
        assert list(failed("NameError: name 'nois' is not defined").failures) != []
        assert list(judged(mutant, 0, "1 passed").failures) != []
        assert list(judged(mutant, 4, "no such test").failures) != []
    """)


def test_wrong_answers_of_a_reader_and_broken_claims_are_seen(tmp_path: Path) -> None:
    script = textwrap.dedent(f"""
        import json, random
        from pathlib import Path
        from campaign.corruptions import CANARY
        from campaign.fuzz.__main__ import _Trial
        from campaign.fuzz.mutations import of_bytes, of_json, of_ledger, of_parquet, of_text, of_toml
        from campaign.fuzz.records import Reader
        from censafe.errors import DataError
        def read(folder):
            text = (folder / "a").read_text()
            if text == "crash":
                return {{}}["nothing"]
            if text == "canary":
                raise DataError(CANARY)
            if text == "refused":
                raise DataError("no such column")
            return "read"
        def prepare(folder):
            (folder / "a").write_text("valid")
        box = Path({str(tmp_path)!r}) / "box"
        trial = _Trial(Reader("toy", prepare, "a", read, of_bytes), box)
        for text in ("valid", "refused", "crash", "canary", "crash"):
            trial.read(text.encode())
        trial.note()
        lines = [json.loads(line) for line in (box / "wrong.jsonl").read_text().splitlines()]
        assert [line["kind"].split()[0] for line in lines] == ["KeyError", "canary:"], lines
        figures = json.loads((box / "figures.json").read_text())
        assert [figures[name] for name in ("readings", "accepted", "refused", "wrong")] == [5, 1, 2, 3], figures
        valid = b'{{"a": [1, "x"], "b": null}}'
        for change in (of_bytes, of_json, of_ledger, of_parquet, of_text("|"), of_text(""), of_toml):
            changed = {{change(valid, random.Random(seed)) for seed in range(40)}}
            assert len(changed) > 20, change
            assert {{change(valid, random.Random(seed)) for seed in range(40)}} == changed
        import math
        import numpy as np
        from campaign.audits.part import TARGET, tell_apart
        def statistic(sigma):
            def draw(second, seed):
                mean = 1.0 if second else -1.0
                return np.random.default_rng(seed).normal(mean, sigma)
            return draw
        right = tell_apart(statistic(math.sqrt(2)), 0.0, TARGET, 1)
        wrong = tell_apart(statistic(math.sqrt(2) / 2), 0.0, TARGET, 1)
        assert not right.breached and wrong.breached, (right, wrong)
        from campaign.ledgers import TAMPERINGS
        assert len({{one.name for one in TAMPERINGS}}) == len(TAMPERINGS) >= 20
    """)
    in_campaign(script)
