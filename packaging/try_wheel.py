"""Build wheel and sdist, install each into an empty environment, and make a small release from another folder.

    python packaging/try_wheel.py [--python 3.12 ...] [--lowest] [--demo]

`--lowest` installs the lowest versions that pyproject.toml allows of what it names. `--demo` runs `censafe demo` as well.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
UV = Path(sys.executable).with_name("uv")
COMMANDS = (
    "doctor",
    "synth data --persons 2000 --states 44,50 --layout all",
    "validate phsafe sdhc-us data --set reader=csv --set state_filter=44,50",
    "plan phsafe sdhc-us",
    "run phsafe sdhc-us data release --set reader=csv --set state_filter=44,50 --quiet",
    "estimate release --quiet",
    "run safetab-p ddhca data detailed --set reader=csv --set run_pr=false --set state_filter_us=44,50 --test-key 1 --quiet",
    "synth blocks --persons 1000 --states 50 --layout pl94",
    "run topdown pl94-us blocks topdown --set root=State --test-key 1 --quiet",
)
OUTPUTS = ("release/certificate.html", "release/estimates", "detailed/tables/t1/t1.csv", "topdown/microdata")


def call(*words: object, folder: Path) -> None:
    """Run a program; its output is shown where it fails."""
    clean = {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(  # noqa: S603
        [str(word) for word in words], cwd=folder, capture_output=True, text=True, env=clean
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")


def attempt(package: Path, python: str, commands: tuple[str, ...], *, lowest: bool = False) -> None:
    """One package with one interpreter."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        call(UV, "venv", "--quiet", "--python", python, folder / "env", folder=folder)
        binaries = folder / "env" / "bin"
        install = (UV, "pip", "install", "--quiet", "--python", binaries / "python")
        if (
            lowest
        ):  # of what pyproject.toml names; to a package alone the resolver would give the newest of all
            call(*install, "--resolution", "lowest-direct", "-r", ROOT / "pyproject.toml", folder=folder)
        call(*install, *(("--no-deps",) if lowest else ()), package, folder=folder)
        work = folder / "elsewhere"
        work.mkdir()
        for command in commands:
            call(binaries / "censafe", *command.split(), folder=work)
        missing = [path for path in OUTPUTS if len(commands) > 1 and not (work / path).exists()]
        if missing:
            sys.exit(f"{package.name}, Python {python}: not made: {', '.join(missing)}")
    sys.stdout.write(
        f"{package.name}, Python {python}{', lowest versions' if lowest else ''}: {len(commands)} commands done\n"
    )
    sys.stdout.flush()


def main() -> None:
    """Build once, then try."""
    reader = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    reader.add_argument("--python", action="append", default=[])
    reader.add_argument("--lowest", action="store_true")
    reader.add_argument("--demo", action="store_true")
    options = reader.parse_args()
    dist = ROOT / "dist"
    for old in dist.glob("censafe-*"):
        old.unlink()
    call(UV, "build", "--quiet", "--out-dir", dist, folder=ROOT)
    (wheel,), (source,) = dist.glob("censafe-*.whl"), dist.glob("censafe-*.tar.gz")
    commands = (*COMMANDS, *(("demo demo-output --persons 20000",) if options.demo else ()))
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    for python in options.python or [own]:
        attempt(wheel, python, commands, lowest=options.lowest)
    if not options.lowest:
        attempt(source, own, commands[:1])


if __name__ == "__main__":
    main()
