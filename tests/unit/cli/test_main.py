"""What the command line does before anything else."""

import os
import subprocess
import sys

_CODE = """
import os, sys
from censafe.cli import main
assert "numpy" not in sys.modules
sys.argv = ["censafe", "--version"]
try:
    main()
except SystemExit:
    print(os.environ["OPENBLAS_NUM_THREADS"])
"""


def test_linear_algebra_has_one_thread_unless_the_environment_says_otherwise() -> None:
    """It must be set before numpy is imported; twenty seconds of a processor of a small run went into waiting threads."""
    for given, expected in (({}, "1"), ({"OPENBLAS_NUM_THREADS": "3"}, "3")):
        environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
        environment |= {"PYTHONPATH": os.pathsep.join(sys.path)} | given
        done = subprocess.run(
            [sys.executable, "-c", _CODE], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.split()[-1] == expected
