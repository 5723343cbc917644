"""Build what is released: wheel, sdist, list of parts (CycloneDX), licenses, release notes, and their hashes.

    python packaging/release.py [OUT] [--twice]

The version is the tag `vX.Y.Z` on the commit; without one it is that of version.py with the number of commits and the commit, which no index
takes for a release. It is written into a copy of the committed files, so the sdist builds without git. All times are the commit's, and
`--twice` builds a second time and compares the bytes. Nothing is uploaded and nothing signed here: .github/workflows/release.yml does both
with the identity that the forge gives it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tempfile
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
UV = Path(sys.executable).with_name("uv")
VERSION = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?")
STATED = re.compile(r'^(?:__version__ = |version = )"([^"]+)"', re.MULTILINE)
NO_NAME = 90  # characters; a longer license field is the license's text


def git(*words: str) -> str:
    """What git says of the project."""
    return subprocess.run(  # noqa: S603
        ["git", *words],  # noqa: S607
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


def version_of(tags: list[str], stated: str, commits: int, commit: str) -> str:
    """The version that a commit has.

    Raises:
        ValueError: more than one tag of a version, a tag that is none, or one that says another version than the program.
    """
    tagged = [tag.removeprefix("v") for tag in tags if tag.startswith("v")]
    if not tagged:
        return f"{stated}.dev{commits}+g{commit[:12]}"
    if len(tagged) > 1 or not VERSION.fullmatch(tagged[0]):
        raise ValueError(
            f"tags {', '.join(tags)}: allowed is one tag such as v1.2.3 or v1.2.3rc1 on a commit"
        )
    if _numbers(tagged[0]) < _numbers(stated):
        raise ValueError(
            f"tag v{tagged[0]} is older than version.py, which says {stated}; move the tag, or correct version.py"
        )
    return tagged[0]


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)[:3]]


def staged(folder: Path, version: str) -> Path:
    """The committed files, with the version in them."""
    archive = folder / "source.tar"
    git("archive", "--format=tar", f"--output={archive}", "HEAD")
    source = folder / "source"
    with tarfile.open(archive) as files:
        files.extractall(source, filter="data")
    for name in ("pyproject.toml", "src/censafe/version.py"):
        path = source / name
        text = path.read_text(encoding="utf-8")
        old = STATED.search(text)
        if old is None:
            raise ValueError(f"{name} states no version")
        path.write_text(text.replace(old[0], old[0].replace(old[1], version), 1), encoding="utf-8")
    return source


def build(version: str, moment: str) -> dict[str, bytes]:
    """Wheel and sdist by name."""
    with tempfile.TemporaryDirectory() as place:
        source, out = staged(Path(place), version), Path(place) / "dist"
        environment = os.environ | {"SOURCE_DATE_EPOCH": moment}
        subprocess.run([UV, "build", "--quiet", "--out-dir", out, source], check=True, env=environment)  # noqa: S603
        return {
            path.name: path.read_bytes() for path in sorted(out.iterdir()) if path.suffix in {".whl", ".gz"}
        }


def parts_list() -> str:
    """The locked dependencies of a user as CycloneDX 1.5; without the serial number and time that differ at every call."""
    words = ("export", "--quiet", "--frozen", "--no-dev", "--format", "cyclonedx1.5")
    text = subprocess.run([UV, *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout  # noqa: S603
    document = json.loads(text)
    document.pop("serialNumber", None)
    document.get("metadata", {}).pop("timestamp", None)
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def licenses(parts: str) -> str:
    """One line for each locked dependency that is installed here: name, version, license as its own metadata state it."""
    rows = ["name\tversion\tlicense"]
    for part in json.loads(parts)["components"]:
        try:
            stated = metadata.metadata(part["name"])
        except metadata.PackageNotFoundError:
            rows.append(f"{part['name']}\t{part.get('version', '')}\tnot installed here")
            continue
        rows.append(f"{part['name']}\t{stated['Version']}\t{_license(stated)}")
    return "\n".join(rows) + "\n"


def _license(stated_metadata: metadata.PackageMetadata) -> str:
    expression = "".join(stated_metadata.get_all("License-Expression") or ())
    classes = [
        text.rsplit(" :: ", 1)[-1]
        for text in stated_metadata.get_all("Classifier") or ()
        if text.startswith("License")
    ]
    stated = "".join(stated_metadata.get_all("License") or ()).strip()
    short = stated if len(stated) <= NO_NAME and "\n" not in stated else ""
    return expression or "; ".join(classes) or short or "not stated"


def notes() -> str:
    """The changelog with the notes of this release."""
    assemble = runpy.run_path(str(ROOT / "changelog.d" / "assemble.py"))
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    changelog: str = assemble["assemble"](text, assemble["notes"](ROOT / "changelog.d"))
    return changelog


def main() -> None:
    """Build everything into a folder."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", nargs="?", type=Path, default=ROOT / "dist")
    parser.add_argument("--twice", action="store_true")
    chosen = parser.parse_args()
    stated = STATED.search((ROOT / "src/censafe/version.py").read_text(encoding="utf-8"))
    if stated is None:
        sys.exit("src/censafe/version.py states no version")
    try:
        version = version_of(
            git("tag", "--points-at", "HEAD").split(),
            stated[1],
            int(git("rev-list", "--count", "HEAD")),
            git("rev-parse", "HEAD"),
        )
    except ValueError as error:
        sys.exit(str(error))
    moment = git("log", "-1", "--format=%ct")
    files = build(version, moment)
    if chosen.twice and files != build(version, moment):
        sys.exit("two builds of one commit differ; do not release before they agree")
    parts = parts_list()
    files |= {
        "sbom.cdx.json": parts.encode(),
        "licenses.tsv": licenses(parts).encode(),
        "CHANGELOG.md": notes().encode(),
    }
    sums = "".join(
        f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(files.items())
    )
    shutil.rmtree(chosen.out, ignore_errors=True)
    chosen.out.mkdir(parents=True)
    for name, content in {**files, "SHA256SUMS": sums.encode()}.items():
        (chosen.out / name).write_bytes(content)
    sys.stdout.write(
        f"censafe {version} in {chosen.out}{', twice the same bytes' if chosen.twice else ''}\n{sums}"
    )


if __name__ == "__main__":
    main()
