"""Compile every kernel once before tests are traced: those with a signature from both ends of the list, the others by small runs beside them."""

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: all processors have a part to compile

import censafe
from censafe.model.compiled import LazyKernel, kernel_files


def main() -> None:
    if sys.argv[1:]:
        PARTS[sys.argv[1]]()
        return
    others = [subprocess.Popen([sys.executable, __file__, part]) for part in PARTS]
    compile_listed(backwards=False)
    if any(one.wait() for one in others):
        raise SystemExit("kernels could not be compiled")


def compile_listed(*, backwards: bool) -> None:
    """Kernels whose types are known."""
    names = [_module(path) for path in kernel_files()]
    for name in reversed(names) if backwards else names:
        for kernel in vars(importlib.import_module(name)).values():
            if isinstance(kernel, LazyKernel):
                _ = kernel.dispatcher


def run_small() -> None:
    """Kernels that are compiled for the types of their calls: synthesis, records of every kind, microdata."""
    from censafe.api.data import LAYOUTS

    with TemporaryDirectory() as place:
        folder = Path(place)
        for layout in LAYOUTS:
            censafe.synthesize(folder / layout, persons=300, states=["44"], layout=layout)
        records = {"reader": "records", "root": "State"}
        released = folder / "released"
        censafe.release(
            censafe.configuration("topdown", "pl94-us", records), folder / "dhc", released, test_key=1
        )


PARTS: Mapping[str, Callable[[], None]] = {
    "backwards": lambda: compile_listed(backwards=True),
    "runs": run_small,
}


def _module(path: Path) -> str:
    inner = path.relative_to(Path(censafe.__path__[0])).with_suffix("")
    return ".".join(("censafe", *inner.parts))


if __name__ == "__main__":
    main()
