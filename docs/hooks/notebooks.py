"""Notebooks as pages: run from the first cell to the last, their text, code, output and pictures as Markdown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbconvert import MarkdownExporter

__all__ = ["notebook_page"]

_MOST_SECONDS = 240
_STYLE = re.compile(r"<style.*?</style>\s*", re.DOTALL)


def notebook_page(path: Path, *, run: bool = True) -> tuple[str, dict[str, bytes]]:
    """Markdown of a notebook and its pictures by file name.

    Args:
        path: of the notebook, stored without output.
        run: whether its cells are run first.
    """
    notebook: Any = nbformat.read(path, as_version=4)
    if run:
        NotebookClient(notebook, timeout=_MOST_SECONDS, kernel_name="python3").execute()
    exporter = MarkdownExporter()
    text, resources = exporter.from_notebook_node(
        notebook, {"unique_key": path.stem, "output_files_dir": f"{path.stem}_files"}
    )
    return _STYLE.sub("", text), dict(resources.get("outputs", {}))
