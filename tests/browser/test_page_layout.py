"""Every kind of page in a browser, narrow and wide, light and dark: nothing overflows, is cut off, lies on something else, or cannot be seen."""

import ast
from pathlib import Path

import pytest
from playwright.sync_api import Page

import censafe
from censafe.evaluation.pages.registry import PAGES as EVALUATIONS
from support.page_kinds import KINDS, PageKinds
from support.page_layout import layout_faults

SOURCE = Path(censafe.__file__).parent
WRITERS = {
    "publication/certificate/page.py": ["certificate"],
    "publication/certificate/anonymity.py": ["anonymity"],
    "publication/intervals.py": ["intervals"],
    "products/topdown/census_tables/card.py": ["card"],
    "evaluation/pages/page.py": [f"evaluation {kind}" for kind in EVALUATIONS],
    "attack/study.py": ["attack reconstruct", "attack rank", "attack compare"],
    "evaluation/pages/registry.py": ["evaluation"],
}
"""Modules that write pages by the functions that all pages share, and the kinds that show them."""
SHARED = {"document_html", "sheet_html", "write_page"}


@pytest.fixture(scope="session")
def kinds(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, explorer_file: Path
) -> PageKinds:
    return PageKinds(tmp_path_factory, lambda: request.getfixturevalue("dhc"), explorer_file)


@pytest.mark.parametrize(
    "kind",
    [pytest.param(one, marks=pytest.mark.long if one.endswith("topdown dhc") else ()) for one in KINDS],
)
def test_a_page_fits_its_window_and_can_be_read(kind: str, kinds: PageKinds, tab: Page) -> None:
    assert layout_faults(tab, kinds.page(kind)) == []


FAULTY = {
    " wide in 400": '<div style="width: 700px">wide</div>',
    "clipped (overflow hidden)": '<p style="width: 5em; overflow: hidden; white-space: nowrap">words that are cut off</p>',
    "clipped (overflow auto)": '<div style="width: 5em; overflow: auto; white-space: nowrap">words without a region</div>',
    "text on text": '<p>a name</p><p style="margin-top: -2em">a hash</p>',
    "a table of 2 columns does not fit": '<div style="overflow: auto" tabindex="0" role="region" aria-label="t"><table><thead><tr><th>a</th>'
        '<th style="min-width: 900px">b</th></tr></thead></table></div>',
    "contrast 1.": '<p style="color: #f0f0f0; background: #ffffff">pale</p>',
    "a light ground of a figure": '<figure><svg width="90" height="90"><rect width="90" height="90" fill="#fff"/></svg></figure>',
    "text on mark": '<figure><svg width="90" height="90"><g id="axes_1"><g id="text_1"><path d="M9 9h40v12h-40z"/></g>'
        '<g id="line2d_1"><use href="#m" x="20" y="12"/></g></g><defs><path id="m" d="M0 0h9v9h-9z"/></defs></svg></figure>',
    "drawn outside of its figure": '<figure><svg width="90" height="90"><text x="70" y="50" fill="currentColor">a long label</text></svg></figure>',
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTY)
def test_each_fault_is_seen(fault: str, tab: Page, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    dark = ":root { color-scheme: light dark } @media (prefers-color-scheme: dark) { body { background: #111; color: #eee } }"
    page.write_text(
        f"<!DOCTYPE html><style>body {{ background: #fff }} {dark}</style><body>{FAULTY[fault]}</body>",
        encoding="utf-8",
    )
    assert any(fault in found for found in layout_faults(tab, page))


def test_every_module_that_writes_pages_has_its_kinds_here() -> None:
    """By calls of the shared functions; the frame of a document stands in one module, and in the explorer's template."""
    texts = {
        path.relative_to(SOURCE).as_posix(): path.read_text(encoding="utf-8")
        for path in SOURCE.rglob("*")
        if path.suffix in {".py", ".html"}
    }
    calls = {
        name
        for name, text in texts.items()
        if name.endswith(".py") and any(f"{shared}(" in text for shared in SHARED)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in SHARED
    }
    assert calls - {"publication/pages.py"} == set(WRITERS)
    for names in WRITERS.values():
        assert all(any(kind.startswith(name) for kind in KINDS) for name in names), names
    frames = {name for name, text in texts.items() if "<head>" in text.lower()}
    assert frames == {"publication/pages.py", "planning/explorer/page/explorer.html"}
