"""Compilation in a second process."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from censafe.model import ahead, compiled

_KERNELS = f"""
from numba import float64
from censafe.model.compiled import compiled

@compiled(float64(float64), apart=True)
def inner_{os.getpid()}(x):
    return 2.0 * x

@compiled(float64(float64))
def outer(x):
    return inner_{os.getpid()}(x) + 1.0
"""


def test_what_a_second_process_compiled_is_read(tmp_path, monkeypatch):
    (tmp_path / "kernels_ahead.py").write_text(_KERNELS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    from kernels_ahead import outer

    folder = Path(compiled._folder(outer.py_func.__code__.co_filename))
    try:
        assert not compiled.is_cached(outer)
        assert ahead.compile_ahead("kernels_ahead:outer")
        end = time.monotonic() + 600
        while not compiled.is_cached(outer) and time.monotonic() < end:
            time.sleep(0.05)
        assert outer(2.0) == 5.0
        assert sum(outer.stats.cache_hits.values()) == 1
        assert not ahead.compile_ahead("kernels_ahead:outer")
    finally:
        shutil.rmtree(folder)


def test_the_second_process_ends_with_the_first():
    done = subprocess.run(
        [sys.executable, "-m", "censafe.model.ahead", "1", "censafe.estimation.topdown.levels.families:estimate_families"],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_names_are_those_of_kernels():
    with pytest.raises(TypeError, match="not a compiled function"):
        ahead.compile_ahead("censafe.model.compiled:kernel_files")
