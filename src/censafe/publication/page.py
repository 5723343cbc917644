"""The certificate as one self-contained page, made from its JSON values alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any

from censafe.publication.markup import (
    Cell,
    count_of,
    details,
    fixed,
    grouped_table,
    integer,
    listing,
    number,
    paragraphs,
    section,
    table,
)

__all__ = ["certificate_page"]

Document = Mapping[str, Any]
_SYMBOLS = {"rho": "\N{GREEK SMALL LETTER RHO}", "epsilon": "\N{GREEK SMALL LETTER EPSILON}"}
_RELATIONS = {"add_remove": "added or removed", "replace": "replaced"}


def certificate_page(document: Document) -> str:
    """Render a certificate; nothing on the page is loaded from elsewhere and nothing is a script.

    Args:
        document: from :func:`censafe.publication.statement.certificate_document`.

    Returns:
        HTML, light or dark as the reader's system is set, fit for print.
    """
    style = resources.files("censafe.publication").joinpath("certificate.css").read_text(encoding="utf-8")
    title = f"{'NOT PRIVATE: ' if document['stamp'] else ''}Certificate of disclosure protection, {document['title']}"
    body = "\n".join(
        (
            _banner(document),
            _head(document),
            _words(document),
            _loss(document),
            _shares(document),
            _accuracy(document),
            _limits(document),
            _checks(document),
            _evidence(document),
        )
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n{body}\n"
        "<footer>The same statements for machines stand in certificate.json beside this page.</footer>\n"
        "</main>\n</body>\n</html>\n"
    )


def _banner(document: Document) -> str:
    if not document["stamp"]:
        return ""
    return (
        '<div class="banner" role="alert"><strong>NOT PRIVATE — made with a test key</strong>'
        "<p>Anybody who has the test key can subtract the noise and read the true counts. What this page says "
        "about privacy holds for a run without a test key. Do not publish these files.</p></div>"
    )


def _head(document: Document) -> str:
    loss, tables = document["loss"], document["tables"]
    symbol = _SYMBOLS[loss["kind"]]
    rows = sum(entry["rows"] for entry in tables)
    facts = [
        ("Protected", _capital(document["promise"]["unit"]) + "s", "each single record in the input"),
        (f"Total privacy loss {symbol}", number(loss["decimal"]), f"exactly {_fraction(loss['exact'])}"),
    ]
    if "epsilon" in loss:
        tight = next(entry for entry in loss["epsilon"] if entry["conversion"] == "tight")
        small = f"at delta {_delta(loss)}, tight bound"
        facts.append(("The same as ε", fixed(tight["value"], 3), small))
    facts.append(("Published", f"{integer(rows)} counts", f"in {len(tables)} tables, all with noise"))
    cards = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}<small>{escape(words)}</small></dd></div>"
        for name, value, words in facts
    )
    return (
        f'<header><p class="kicker">Certificate of disclosure protection</p><h1>{escape(document["title"])}</h1>'
        f'<p class="meta">{escape(document["inputs"]["dataset"])} · {escape(document["created"])}</p>'
        f'<dl class="facts">{cards}</dl></header>'
    )


def _words(document: Document) -> str:
    promise, attacker = document["promise"], document["attacker"]
    alarm, power = 100 * attacker["false_alarm"], 100 * attacker["power"]
    exact = (
        f"Exactly: {promise['neighbours_exact']}."
        if promise["neighbours_exact"] != promise["neighbours_words"]
        else ""
    )
    meaning = (
        f"Suppose somebody knows everything about everybody else and looks at all published tables together, to "
        f"find out which of two inputs that differ in this way was used. A test that is wrong about the first input "
        f"in {number(alarm)} of 100 cases recognises the second one in at most {_percent_up(power)} of 100 cases. "
        f"Without the tables it would be {number(alarm)} of 100. This is a limit for every possible test; one "
        "table alone tells less."
    )
    return section(
        "words",
        "In plain words",
        listing(
            [
                ("What was protected", f"{_capital(promise['unit_words'])} in the input."),
                (
                    "What that means",
                    "There is a proven limit to how differently the published files can turn out for two inputs that "
                    f"differ in this way: {promise['neighbours_words']}. {exact}",
                ),
                ("How", " ".join(document["noise_words"])),
                ("What is left to learn", meaning),
                ("Several people", promise["group_words"]),
            ]
        ),
    )


def _loss(document: Document) -> str:
    loss = document["loss"]
    symbol = _SYMBOLS[loss["kind"]]
    relations = [{"neighbours": document["promise"]["neighbours"], **document["promise"], **loss}]
    relations += document["other_losses"]
    rows = [
        (
            Cell(f"{_RELATIONS[entry['neighbours']]}<small>{escape(entry['neighbours_exact'])}</small>"),
            _fraction(entry["exact"]),
            number(entry["decimal"]),
            *([_tight(entry)] if "epsilon" in entry else []),
        )
        for entry in relations
    ]
    headers = (
        "One record is …",
        f"{symbol}, exact",
        symbol,
        *(["ε, tight bound"] if "epsilon" in loss else []),
    )
    reading = (
        f"ε is another reading of {symbol}. It comes with delta, a small chance that the limit by ε is not met; here delta "
        f"is {_delta(loss)}."
        if "epsilon" in loss
        else ""
    )
    parts = [
        paragraphs(
            "The smaller the loss, the less the published files can tell about one record. It adds up over all tables, and "
            "it depends on what counts as one protected change. Here it is for two kinds of change.",
            reading,
        ),
        table("Privacy loss of the whole release", headers, rows, numbers=len(headers) - 1),
    ]
    if "epsilon" in loss:
        parts.append(_conversions(loss))
    calibration = document["calibration"]
    if calibration["words"]:
        parts += [
            f"<h3>How the noise was scaled: {escape(calibration['name'])}</h3>",
            paragraphs(calibration["words"]),
        ]
    return section("loss", "Privacy loss", *parts)


def _conversions(loss: Document) -> str:
    rows = [
        (Cell(f"{escape(entry['name'])}<small>{escape(entry['words'])}</small>"), fixed(entry["value"], 4))
        for entry in loss["epsilon"]
    ]
    caption = f"What {_SYMBOLS['rho']} = {number(loss['decimal'])} means as ε, at delta {_delta(loss)}"
    return table(caption, ("Conversion", "ε"), rows, numbers=1)


def _shares(document: Document) -> str:
    symbol = _SYMBOLS[document["loss"]["kind"]]
    rows = [_share_row(entry) for entry in document["tables"]]
    total = document["loss"]["decimal"]
    rows.append(
        ("All tables", "", integer(sum(e["rows"] for e in document["tables"])), _budget(total), "100.0%")
    )
    return section(
        "shares",
        "What each table used",
        table(
            "Share of the privacy loss, by table",
            ("Table", "Share", "Counts", symbol, "Percent"),
            rows,
            numbers=3,
            total=True,
        ),
        paragraphs(
            "Tables marked as derived are computed from the noisy counts of other tables. They use nothing.",
            kind="note",
        )
        if any(entry["derived"] for entry in document["tables"])
        else "",
    )


def _share_row(entry: Document) -> tuple[str, ...]:
    percent = 100 * entry["share"]
    bar = f'<div class="bar" aria-hidden="true"><span style="width:{percent:.2f}%"></span></div>'
    name = f"{escape(entry['table'])}<small>{escape(entry['title'])}</small>"
    if entry["derived"]:
        return (Cell(name), "derived", integer(entry["rows"]), "0", "0.0%")
    return (
        Cell(name),
        Cell(bar),
        integer(entry["rows"]),
        _budget(entry["budget_decimal"]),
        f"{percent:.1f}%" if percent >= 0.05 else "under 0.1%",
    )


def _accuracy(document: Document) -> str:
    percent = number(100 * document["confidence"])
    symbol = _SYMBOLS[document["loss"]["kind"]]
    headers = ("Table and level", "Counts", symbol, "Variance", "Margin of error", "Exact margin")
    laws = sorted({level["law"] for entry in document["tables"] for level in entry["levels"]})
    groups = [
        (_table_name(entry), [_level_row(entry, level) for level in entry["levels"]])
        for entry in document["tables"]
    ]
    return section(
        "accuracy",
        "How accurate the counts are",
        paragraphs(
            f"In {percent} of 100 cases the noise moved a count by no more than the margin of error, up or down. The "
            "first margin is computed as in the Census Bureau's papers; the exact margin is the smallest whole number "
            f"that the noise stays within in at least {percent} of 100 cases. Noise is not the only error: households "
            "with more persons than the limit of a table are counted up to the limit, and the census itself has errors."
        ),
        grouped_table(
            f"Noise of one count, by table and level. Law: {', '.join(laws)}.", headers, groups, numbers=5
        ),
    )


def _table_name(entry: Document) -> Cell:
    words = ". ".join(dict.fromkeys(text for text in (entry["title"], entry["universe"]) if text))
    return Cell(f"{escape(entry['table'])} <span>{escape(words)}</span>")


def _level_row(entry: Document, level: Document) -> tuple[str, ...]:
    name = escape(level["words"])
    if level["cells"]:
        cells = f"cell{'' if len(level['cells']) == 1 else 's'} {', '.join(level['cells'])}"
        name += f", {escape(cells)}"
    draws = f" · {level['noise_draws']} draws added" if level["noise_draws"] > 1 else ""
    small = f"{escape(level['level'])} · {count_of(level['regions'], 'region')}{draws}"
    return (
        Cell(f"{name}<small>{small}</small>"),
        integer(level["rows"]),
        "derived" if entry["derived"] else _budget(level["budget_decimal"]),
        fixed(level["variance"], 2),
        fixed(level["margin_of_error"], 1),
        integer(level["margin_of_error_exact"]),
    )


def _limits(document: Document) -> str:
    return section(
        "limits",
        "What is not promised",
        listing([(entry["what"], entry["words"]) for entry in document["not_promised"]]),
    )


def _checks(document: Document) -> str:
    rows = [
        (
            group["name"],
            "stops the run, so this release met them" if group["stops"] else "is told to the operator",
            integer(group["rules"]),
        )
        for group in document["checks"]
    ]
    checked = (
        table("Rules applied to the input", ("Rules", "A breach …", "Number"), rows, numbers=1)
        if rows
        else ""
    )
    output = (
        f"{integer(document['rows_checked'])} published rows were read back and compared with the plan: tables, regions, "
        "cells, order and variances."
        if document["rows_checked"]
        else ""
    )
    return section(
        "checks",
        "Checks",
        checked,
        paragraphs(output),
        paragraphs(
            "How many records broke a rule is an exact fact about confidential records. It stays with the operator and "
            "is not stated here.",
            kind="note",
        )
        if rows
        else "",
    )


def _evidence(document: Document) -> str:
    ledger, configuration = document["ledger"], document["configuration"]
    overrides = [f"{name} = {value}" for name, value in configuration["overrides"].items()]
    parts = [
        paragraphs(
            "The input commitment is a keyed fingerprint of the input files. Whoever holds the ledger's key can show that "
            "these files were used; without it nobody can try out guesses."
            if ledger
            else "The input commitment is a fingerprint of the input files, keyed with the test key.",
            Cell(
                "The ledger head fixes everything the ledger said when this page was made: "
                "<code>censafe ledger verify LEDGER --head HASH</code> must find it there."
            )
            if ledger
            else "",
        ),
        listing(
            [
                ("Input commitment", _code(document["inputs"]["keyed_commitment"])),
                ("Ledger head", _code(ledger["head"]) if ledger else "none; a test key spends no budget"),
                ("Plan digest", _code(document["plan_digest"])),
                ("Configuration", configuration["name"]),
                ("Changed settings", "; ".join(overrides) or "none"),
            ]
        ),
        _hashes("Measurement files (SHA-256)", document["measurement_files"]),
        _plain("Settings of the plan", configuration["settings"]),
        _plain("Software", document["versions"]),
    ]
    return section("evidence", "Evidence", *parts)


def _hashes(title: str, values: Mapping[str, str]) -> str:
    if not values:
        return ""
    return details(title, listing([(name, _code(value)) for name, value in values.items()]))


def _plain(title: str, values: Mapping[str, str]) -> str:
    return details(title, listing(list(values.items()))) if values else ""


def _tight(loss: Document) -> str:
    entries: Sequence[Document] = loss["epsilon"]
    return next(fixed(entry["value"], 4) for entry in entries if entry["conversion"] == "tight")


def _fraction(exact: str) -> str:
    return exact.removesuffix("/1")


def _budget(value: float) -> str:
    """Six places as in the published budgets, or the number in full where that would read as zero."""
    return fixed(value, 6) if value == 0 or value >= 1e-5 else number(value)


def _delta(loss: Document) -> str:
    """A power of ten as people write it, anything else as a decimal number."""
    top, bottom = loss["delta"].split("/")
    if top == "1" and bottom.rstrip("0") == "1":
        raised = "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(len(bottom) - 1))
        return f"10⁻{raised}"
    return number(loss["delta_decimal"])


def _percent_up(percent: float) -> str:
    """Whole percent, rounded up; the figure is an upper bound."""
    whole = int(percent)
    return integer(whole if whole == percent else whole + 1)


def _code(text: str) -> Cell:
    return Cell(f"<code>{escape(text)}</code>")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
