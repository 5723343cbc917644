"""Put the change notes of this folder into the part "Unreleased" of CHANGELOG.md."""

from __future__ import annotations

import re
import sys
from pathlib import Path

KINDS = ("security", "added", "changed", "fixed", "removed")
BEGIN, END = "## Unreleased\n", "<!-- end of unreleased -->\n"
_NOTE = re.compile(rf"({'|'.join(KINDS)}): (\S.*)", re.DOTALL)


def notes(folder: Path) -> list[tuple[str, str]]:
    """Kind and text of every note, in the order in which they are shown.

    Raises:
        ValueError: a note that does not begin with a kind and a colon.
    """
    found = []
    for path in sorted(folder.glob("*.md")):
        match = _NOTE.fullmatch(path.read_text(encoding="utf-8").strip())
        if match is None:
            raise ValueError(f"{path.name} must begin with one of: {', '.join(KINDS)}, a colon and a space")
        found.append((match[1], " ".join(match[2].split())))
    return sorted(found, key=lambda note: KINDS.index(note[0]))


def assemble(changelog: str, found: list[tuple[str, str]]) -> str:
    """The changelog with its unreleased part made anew from the notes."""
    before, rest = changelog.split(BEGIN)
    after = rest.split(END)[1]
    parts = []
    for kind in KINDS:
        texts = [text for of_kind, text in found if of_kind == kind]
        if texts:
            parts.append(
                f"### {kind.capitalize()}\n\n"
                + "\n".join(f"- {text[:1].upper()}{text[1:]}" for text in texts)
                + "\n"
            )
    return before + BEGIN + "\n" + "\n".join(parts) + "\n" + END + after


if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    target = here.parent / "CHANGELOG.md"
    try:
        text = assemble(target.read_text(encoding="utf-8"), notes(here))
    except ValueError as error:
        sys.exit(str(error))
    target.write_text(text, encoding="utf-8")
