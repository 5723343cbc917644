"""Names of areas that an operator gives to a run, and that it stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from censafe.geography.area_names import NAMES, names_text, read_area_names
from censafe.publication.atomic import atomic_text
from censafe.publication.manifest import Manifest, verify_outputs

__all__ = ["stored_names", "write_names"]


def stored_names(
    given: Path | None, out: Path, manifest: Manifest, *, census: bool = True
) -> Mapping[str, str]:
    """Names for published files that are rewritten: those of a new file, else those that the run stored.

    Args:
        given: a file of names; None for none.
        out: the run folder.
        manifest: of the run.
        census: whether codes are those of census geography.

    Raises:
        DataError: the given file breaks a rule.
        CheckError: the stored names were changed.
        StorageError: a file cannot be read.
    """
    if given is not None:
        return read_area_names(given, census=census)
    if NAMES not in manifest.outputs:
        return {}
    verify_outputs(out, replace(manifest, parts=(), outputs={NAMES: manifest.outputs[NAMES]}))
    return read_area_names(out / NAMES, census=census)


def write_names(staging: Path, names: Mapping[str, str], *, census: bool = True) -> tuple[Path, ...]:
    """Keep names beside what is published, where there are any; the files written.

    Raises:
        StorageError: the disk is full or the folder not writable.
    """
    if not names:
        return ()
    atomic_text(staging / NAMES, names_text(names, census=census))
    return (staging / NAMES,)
