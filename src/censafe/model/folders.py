"""Files of a folder by their names, in small letters or capitals."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path


def matching_files(folder: Path, *patterns: str) -> tuple[Path, ...]:
    """Paths of a folder whose names match a pattern, whatever the case of their letters, in the order of their names."""
    if not folder.is_dir():
        return ()
    chosen = [pattern.casefold() for pattern in patterns]
    return tuple(
        sorted(
            path for path in folder.iterdir() if any(fnmatchcase(path.name.casefold(), one) for one in chosen)
        )
    )


def packed_words(folder: Path) -> str:
    """The end of a message about files that are missing where the folder holds archives, in which they may be."""
    names = [path.name for path in matching_files(folder, "*.zip", "*.tar", "*.tar.gz", "*.tgz", "*.7z")]
    return f"; the folder holds {', '.join(names[:3])}: unpack it there" if names else ""
