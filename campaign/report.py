"""One page and one line a figure of what a campaign found."""

from __future__ import annotations

import html
import json
from collections import Counter
from pathlib import Path
from typing import Any

from censafe.version import __version__

STYLE = "body{font:15px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}table{border-collapse:collapse}td,th{border:1px solid #999;padding:.2em .6em;text-align:left;vertical-align:top}td.n{text-align:right}"


def lines(record: Path) -> list[dict[str, object]]:
    """What earlier starts wrote, a half-written last line left out."""
    if not record.exists():
        return []
    text = record.read_text(encoding="utf-8")
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def write_report(folder: Path, seed: int) -> list[dict[str, Any]]:
    """Write report.html and figures.jsonl from trials.jsonl, and return the figures."""
    trials: list[dict[str, Any]] = list(lines(folder / "trials.jsonl"))
    figures = [
        figure for part in sorted({line["part"] for line in trials}) for figure in _figures(part, trials)
    ]
    stamped = [{"seed": seed, "version": __version__, **figure} for figure in figures]
    text = "".join(json.dumps(figure) + "\n" for figure in stamped)
    (folder / "figures.jsonl").write_text(text, encoding="utf-8")
    (folder / "report.html").write_text(_page(seed, stamped, trials), encoding="utf-8")
    return stamped


def _figures(part: str, trials: list[dict[str, Any]]) -> list[dict[str, Any]]:
    own = [line for line in trials if line["part"] == part]
    failed = sum(bool(line["failures"]) for line in own)
    found: list[dict[str, Any]] = [
        {"figure": f"{part}.tried", "value": len(own)},
        {"figure": f"{part}.survived", "value": len(own) - failed},
        {"figure": f"{part}.failed", "value": failed},
        {"figure": f"{part}.seconds", "value": round(sum(line["seconds"] for line in own), 1)},
    ]
    facts = Counter(
        (name, str(value))
        for line in own
        for name, value in line["facts"].items()
        if isinstance(value, str | bool)
    )
    found += [
        {"figure": f"{part}.{name}", "value": value}
        for line in own
        for name, value in line["facts"].items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    return found + [
        {"figure": f"{part}.{name}.{value}", "value": count} for (name, value), count in sorted(facts.items())
    ]


def _page(seed: int, figures: list[dict[str, Any]], trials: list[dict[str, Any]]) -> str:
    rows = "".join(
        f"<tr><td>{html.escape(one['figure'])}</td><td class=n>{one['value']}</td></tr>" for one in figures
    )
    failed = "".join(
        f"<tr><td>{line['part']}:{line['number']}</td><td>{html.escape(line['name'])}</td><td>{html.escape(' | '.join(line['failures']))}</td></tr>"
        for line in trials
        if line["failures"]
    )
    bad = (
        f"<table><tr><th>trial</th><th>what was tried</th><th>what failed</th></tr>{failed}</table>"
        if failed
        else "<p>None.</p>"
    )
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>Campaign {seed}</title><style>{STYLE}</style>"
        f"<h1>Campaign, seed {seed}</h1><p>censafe {__version__}. {len(trials)} trials.</p>"
        f"<h2>Failures</h2>{bad}<h2>Figures</h2><table><tr><th>figure</th><th>value</th></tr>{rows}</table></html>\n"
    )
