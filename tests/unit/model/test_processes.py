"""Further processes do not run the script that starts them, and one that ends early is named."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from censafe.errors import StorageError
from censafe.model.processes import process_pool
from support.sources import modules

SCRIPT = """
from math import factorial
from censafe.model.processes import process_pool

print("started")
with process_pool(2) as pool:
    print(list(pool.map(factorial, [3, 4])))
"""


def test_a_script_without_a_guard_runs_once(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert (done.stdout.split("\n"), done.stderr) == (["started", "[6, 24]", ""], "")


def test_a_process_that_ends_early_is_an_error_with_its_remedy() -> None:
    with pytest.raises(StorageError, match="a process of 1 ended before its work was done"), process_pool(1) as pool:  # fmt: skip
        pool.submit(os._exit, 3).result()


def test_there_is_one_way_to_start_processes() -> None:
    found = [name for name, tree in modules() if "ProcessPoolExecutor(" in ast.unparse(tree)]
    assert [Path(name).name for name in found] == ["processes.py"]
