"""Notebooks as pages: run from the first cell to the last, their text, code, output and pictures as Markdown."""

from __future__ import annotations

import re
import resource
from pathlib import Path
from typing import Any

import nbformat
from mkdocs.plugins import get_plugin_logger
from nbclient import NotebookClient
from nbconvert import MarkdownExporter

_MOST_SECONDS = 900
"""Limit of one cell by the clock, for a busy machine; a notebook on its own takes under two minutes."""
_PICTURE = re.compile(r"!\[\w*\]\(([^()]*_(\d+)_\d+\.\w+)\)")
"""A figure in the Markdown of a notebook; its file is named after the cell, whose metadata hold its alternative text."""
_LOG = get_plugin_logger("notebooks")
_STYLE = re.compile(r"<style.*?</style>\s*", re.DOTALL)


def notebook_page(path: Path, *, run: bool = True) -> tuple[str, dict[str, bytes]]:
    """Markdown of a notebook, which is stored without output, and its pictures by file name."""
    notebook: Any = nbformat.read(path, as_version=4)
    if run:
        before = _seconds_of_children()
        NotebookClient(notebook, timeout=_MOST_SECONDS, kernel_name="python3").execute()
        _LOG.info("%s: %.0f CPU seconds", path.name, _seconds_of_children() - before)
    exporter = MarkdownExporter()
    text, resources = exporter.from_notebook_node(
        notebook, {"unique_key": path.stem, "output_files_dir": f"{path.stem}_files"}
    )

    def described(match: re.Match[str]) -> str:
        return f"![{notebook.cells[int(match[2])].metadata.get('alt', '')}]({match[1]})"

    text = _PICTURE.sub(described, _STYLE.sub("", text))
    return text, dict(resources.get("outputs", {}))


def _seconds_of_children() -> float:
    """Processor time of all processes that this one has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
