"""Hooks of MkDocs: generated parts of pages, pages kept elsewhere in the repository, links between them, and formulas as MathML."""

from __future__ import annotations

import html
import os
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs"))

from measured import shown_stamps  # noqa: E402

from hooks.generated import PARTS  # noqa: E402
from hooks.notebooks import notebook_page  # noqa: E402

ELSEWHERE = {
    "PRIVACY.md": "PRIVACY.md",
    "SECURITY.md": "SECURITY.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "benchmarks.md": "benchmarks/README.md",
}
"""Pages that are kept outside docs/: path in the site -> path in the repository."""
_PLACE = re.compile(r"^<!-- from the program: ([a-z ]+) -->$", re.MULTILINE)
_LINK = re.compile(r"(\]\()([^)#:\s]+)((?:#[^)\s]*)?\))")
_CELL = re.compile(r"<td>((?:(?!</td>).)*)</td>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_SENTENCE = 30
"""Characters from which a cell of a table is text, not a name or number."""
_PICTURE = re.compile(r'<img\b[^>]*\bsrc="([^"]+)"[^>]*>')
_SEARCH = "https://unpkg.com/iframe-worker/shim"
_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add pages that are not files of docs/."""
    for path, kept in ELSEWHERE.items():
        files.append(File.generated(config, path, content=(ROOT / kept).read_text(encoding="utf-8")))
    for notebook in [one for one in files if one.src_uri.endswith(".ipynb")]:
        files.remove(notebook)
        page, pictures = notebook_page(
            Path(str(notebook.abs_src_path)), run="CENSAFE_DOCS_FAST" not in os.environ
        )
        base = notebook.src_uri.removesuffix(".ipynb")
        files.append(File.generated(config, f"{base}.md", content=page))
        for name, content in pictures.items():
            files.append(
                File.generated(config, posixpath.join(posixpath.dirname(base), name), content=content)
            )
    return files


def on_page_markdown(markdown: str, page: Page, **_others: Any) -> str:
    """Links are written as the repository has them; here they lead to pages of the site. Parts are generated, and measured tables say when they were measured."""
    markdown = shown_stamps(_PLACE.sub(lambda place: PARTS[place[1]](), markdown))
    own = page.file.src_uri
    folder = posixpath.dirname(ELSEWHERE.get(own, f"docs/{own}"))
    pages = {kept: path for path, kept in ELSEWHERE.items()}

    def moved(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, match[2]))
        place = pages.get(target) or (target.removeprefix("docs/") if target.startswith("docs/") else None)
        if place is None:
            return match[0]
        if place.endswith(".ipynb"):
            place = f"{place.removesuffix('.ipynb')}.md"
        return f"{match[1]}{posixpath.relpath(place, posixpath.dirname(own) or '.')}{match[3]}"

    return _LINK.sub(moved, markdown)


def on_page_content(content: str, **_others: Any) -> str:
    """Formulas are MathML, which browsers draw themselves; cells with sentences are marked; pictures open alone by a click."""

    def drawn(match: re.Match[str]) -> str:
        return convert(html.unescape(match[3]).strip(), display="block" if match[2] == "[" else "inline")

    def cell(match: re.Match[str]) -> str:
        words = html.unescape(_TAG.sub("", match[1])).strip()
        return f'<td class="text">{match[1]}</td>' if len(words) >= _SENTENCE else match[0]

    content = _CELL.sub(cell, _FORMULA.sub(drawn, content))
    return _PICTURE.sub(r'<a class="picture" href="\1">\g<0></a>', content)


def on_post_page(output: str, page: Page, **_others: Any) -> str:
    """The theme's only script from elsewhere, which lets search work in files, is replaced by one of ours."""
    own = posixpath.relpath("assets/worker.js", posixpath.dirname(page.url) or ".")
    return output.replace(_SEARCH, own)


def on_post_template(output: str, **_others: Any) -> str:
    """The same on the page of what is not found."""
    return output.replace(_SEARCH, "assets/worker.js")
