import ast
import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from censafe.model import compiled as compiling
from censafe.model.compiled import compiled, kernel_files
from support.sources import modules as all_modules


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package whose one kernel calls that of another file, beside a third."""
    place = tmp_path / "censafe"
    place.mkdir()
    (place / "inner.py").write_text("from numba import njit\nSIZE = 1\n")
    (place / "outer.py").write_text("from numba import njit\nfrom censafe.inner import SIZE\n")
    (place / "apart.py").write_text("from numba import njit\n")
    (place / "words.py").write_text("WORDS = 1\n")
    monkeypatch.setattr(compiling, "_PACKAGE", place)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    forget()
    yield place
    forget()


def forget():
    for found in (compiling._folder, compiling._imports, compiling.kernel_files):
        found.cache_clear()


def cache_of_a_kernel():
    forget()

    def twice(x):
        return 2 * x

    kernel = compiled()(twice)
    assert kernel(4) == 8
    return Path(kernel._cache.cache_path)


def test_machine_code_of_other_sources_is_not_found_again(package):
    cache = cache_of_a_kernel()
    assert cache.is_relative_to(package / "__pycache__")
    assert list(cache.rglob("*.nbc"))
    outer = str(package / "outer.py")
    before = compiling._folder(outer)
    (package / "words.py").write_text("WORDS = 2\n")
    (package / "apart.py").write_text("from numba import njit\nSIZE = 3\n")
    forget()
    assert compiling._folder(outer) == before
    (package / "inner.toml").write_text("size = 1\n")
    forget()
    with_data = compiling._folder(outer)
    assert with_data != before
    (package / "inner.py").write_text("from numba import njit\nSIZE = 2\n")
    forget()
    assert compiling._folder(outer) not in (before, with_data)


def test_a_folder_that_the_user_names_is_used(package, tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "named"))
    assert cache_of_a_kernel().is_relative_to(tmp_path / "named")
    assert str(tmp_path / "named") == numba.config.CACHE_DIR


def test_where_the_package_is_not_writable_the_compiler_chooses(package, monkeypatch):
    monkeypatch.setattr(compiling.os, "access", lambda *_: False)
    assert not cache_of_a_kernel().is_relative_to(package)


def test_a_kernel_takes_constants_from_files_with_kernels_alone():
    """The contents of these files name the cache; a number from elsewhere would be frozen into stale code."""
    root = Path(compiling.__file__).parents[1]
    files = kernel_files()
    modules = {".".join(("censafe", *path.relative_to(root).with_suffix("").parts)) for path in files}
    assert "censafe.estimation.topdown.rounding.network" in modules
    frozen, trees = [], dict(all_modules())
    for path in files:
        tree = trees[path.relative_to(root).as_posix()]
        taken = {
            name.asname or name.name: node.module
            for node in tree.body
            if isinstance(node, ast.ImportFrom)
            for name in node.names
            if (node.module or "").startswith("censafe") and (name.asname or name.name).isupper()
        }
        for node in ast.walk(tree):
            marks = " ".join(map(ast.unparse, getattr(node, "decorator_list", ())))
            if any(mark in marks for mark in ("compiled", "njit", "_kernel")):
                used = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)} & set(taken)
                frozen += [f"{path.name}: {name}" for name in used if taken[name] not in modules]
    assert frozen == []


_APART = """
from numba import float64, int64, types
from censafe.model.compiled import compiled

@compiled(types.Tuple((float64[::1], float64))(float64[::1], int64), apart=True)
def inner(x, n):
    return x * 2.0, float(10 // n)

@compiled(float64(float64[::1], int64))
def middle(x, n):
    y, z = inner(x, n)
    return y.sum() + z

@compiled(float64(float64[::1], int64))
def outer(x, n):
    return middle(x, n)
"""
_CALLS = """
import numpy, apart_kernels
print(apart_kernels.outer(numpy.arange(4.0), 3))
try:
    apart_kernels.outer(numpy.arange(4.0), 0)
except ZeroDivisionError:
    print("raised")
print(sum(apart_kernels.outer.stats.cache_hits.values()))
"""


def test_code_that_is_called_where_it_is_can_be_read_from_a_cache_and_raises(tmp_path):
    """The second process reads all three kernels; errors of the inner one reach the caller."""
    (tmp_path / "apart_kernels.py").write_text(_APART)
    given = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
    }
    said = [
        subprocess.run(
            [sys.executable, "-c", _CALLS], env=given, capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert said == [["15.0", "raised", "0"], ["15.0", "raised", "1"]]
