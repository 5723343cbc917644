"""A program in a process of its own, which a test may kill: forked from one that has imported the package, since imports take longer than most runs."""

import multiprocessing
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from support.commands import Outcome

IMPORTED = (
    "censafe.cli.run", "censafe.cli.estimate", "censafe.products.phsafe.recipe", "censafe.products.detailed.recipe",
    "censafe.products.topdown.recipe", "censafe.tabulation.engine.embedded",
)  # fmt: skip


def run_apart(program: str, *words: object) -> Outcome:
    """How a program with these arguments ended; a negative code is the signal that killed it."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(IMPORTED))
    with TemporaryDirectory() as place:
        files = [Path(place) / name for name in ("out", "err")]
        process = context.Process(target=_run, args=(program, [str(word) for word in words], files))
        process.start()
        process.join(240)
        process.kill()
        process.join()
        code = process.exitcode
        out, err = (path.read_text(encoding="utf-8") for path in files)
    return Outcome(1 if code is None else code, out, err)


def _run(program: str, words: list[str], files: list[Path]) -> None:
    for descriptor, path in enumerate(files, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), descriptor)
    sys.argv = ["censafe", *words]
    exec(program, {"__name__": "__main__"})  # noqa: S102 the test's own program
