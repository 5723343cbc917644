"""The checks of the campaign can fail: the library that makes calls fail, and what is held against a command."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

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
        [sys.executable, "-c", script], env={"LD_PRELOAD": str(library)}, capture_output=True, text=True
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
    assert importlib.util.find_spec("censafe") is not None
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}:{ROOT / 'tests'}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
