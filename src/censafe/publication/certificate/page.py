"""The certificate: what was protected and how, as one self-contained page made from its JSON values alone."""

from __future__ import annotations

import calendar
import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Final

from censafe.publication.atomic import atomic_text
from censafe.publication.certificate.statement import (
    CertificateContents,
    CertificateInput,
    certificate_document,
    odds_part,
)
from censafe.publication.certificate.tables import SYMBOLS, Document
from censafe.publication.pages import (
    HtmlCell,
    breakable,
    details,
    document_html,
    fixed,
    integer,
    listing,
    number,
    paragraphs,
    section,
    table,
)
from censafe.publication.stamps import DEMONSTRATION, STAMP, Stamp

_USELESS = 99.0  # percent of power from which the bound says nothing
_BANNERS: Final[Mapping[str, tuple[str, str]]] = {
    STAMP: (
        "NOT PRIVATE — made with a test key",
        "Anyone who has the test key can subtract the noise and obtain the true counts. The privacy guarantee on this page "
        "applies to a run without a test key. Do not publish these files.",
    ),
    DEMONSTRATION: (
        "DEMONSTRATION ON PUBLISHED DATA",
        "The input counts had already been published, so this release protects no one: it demonstrates the software. The privacy "
        "guarantee on this page applies to the records as they were read. If these were imputed from published tables, one person "
        "may correspond to several of them, and the guarantee does not cover that person.",
    ),
}
_RELATIONS = {"add_remove": "added or removed", "replace": "replaced"}


def certificate_page(document: Document, contents: CertificateContents) -> str:
    """Render a certificate; nothing on the page is loaded from elsewhere and nothing is a script."""
    mark = banner = ""
    if stamp := document["stamp"]:
        mark, (heading, words) = f"{stamp}: ", _BANNERS[stamp]
        banner = f'<div class="banner" role="alert"><strong>{heading}</strong><p>{words}</p></div>'
    title = f"{mark}Certificate of disclosure protection, {document['title']}"
    body = "\n".join(
        (
            banner,
            _head(document, contents),
            _words(document),
            _loss(document),
            contents.sections(document),
            section(
                "limits",
                "What the guarantee does not cover",
                listing([(entry["what"], entry["words"]) for entry in document["not_promised"]]),
            ),
            _checks(document),
            _evidence(document),
        )
    )
    return document_html(
        title, body, "A machine-readable version of this certificate is in certificate.json."
    )


def _head(document: Document, contents: CertificateContents) -> str:
    loss = document["loss"]
    symbol = SYMBOLS[loss["kind"]]
    facts = [
        (
            "Protected",
            _capital(" and ".join(f"{name}s" for name in document["promise"]["records"])),
            "each single record in the input",
        ),
        (f"Total privacy loss {symbol}", number(loss["decimal"]), f"exactly {_fraction(loss['exact'])}"),
    ]
    if "epsilon" in loss:
        facts.append(
            ("The same as ε", fixed(_tight_epsilon(loss), 3), f"at delta {_delta(loss)}, tight bound")
        )
    facts.append(("Published", *contents.published(document)))
    cards = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}<small>{escape(words)}</small></dd></div>"
        for name, value, words in facts
    )
    return (
        f'<header><p class="kicker">Certificate of disclosure protection</p><h1>{escape(document["title"])}</h1>'
        f'<p class="meta">{escape(document["inputs"]["dataset"])} · {_time(document["created"])}</p>'
        f'<dl class="facts">{cards}</dl></header>'
    )


def _time(text: str) -> str:
    moment = datetime.fromisoformat(text).astimezone(UTC)
    words = f"{moment.day} {calendar.month_name[moment.month]} {moment:%Y, %H:%M} UTC"
    return f'<time datetime="{escape(text)}">{escape(words)}</time>'


def _words(document: Document) -> str:
    promise, attacker = document["promise"], document["attacker"]
    alarm, power = 100 * attacker["false_alarm"], 100 * attacker["power"]
    exact = (
        f"Exactly: {promise['neighbors_exact']}."
        if promise["neighbors_exact"] != promise["neighbors_words"]
        else ""
    )
    meaning = (
        "Suppose an attacker knows all other records and uses all published tables together to decide which of two inputs that "
        f"differ in this way was used. A test that wrongly rejects the first input in {number(alarm)} of 100 cases detects the "
        f"second one in at most {integer(math.ceil(power))} of 100 cases. "  # an upper bound is rounded up
        f"Without the tables, it would detect it in {number(alarm)} of 100. "
        + (
            "A privacy loss this large puts no useful limit on such a test; a smaller budget would."
            if power >= _USELESS
            else "This limit holds for every possible test; a single table reveals less."
        )
    )
    return section(
        "words",
        "In plain words",
        listing(
            [
                ("What was protected", f"{_capital(promise['unit_words'])} in the input."),
                (
                    "What the guarantee means",
                    "There is a proven limit on how much the distribution of the published files can differ between two inputs "
                    f"that differ in this way: {promise['neighbors_words']}. {exact}",
                ),
                ("How", " ".join(document["noise_words"])),
                ("What can still be learned", meaning),
                ("Several people", promise["group_words"]),
            ]
        ),
    )


def _loss(document: Document) -> str:
    loss = document["loss"]
    symbol = SYMBOLS[loss["kind"]]
    relations = [{"neighbors": document["promise"]["neighbors"], **document["promise"], **loss}]
    relations += document["other_losses"]
    rows = [
        (
            HtmlCell(f"{_RELATIONS[entry['neighbors']]}<small>{escape(entry['neighbors_exact'])}</small>"),
            HtmlCell(f'<span class="exact">{breakable(_fraction(entry["exact"]))}</span>'),
            number(entry["decimal"]),
            *([fixed(_tight_epsilon(entry), 4)] if "epsilon" in entry else []),
        )
        for entry in relations
    ]
    headers = ["One record is …", f"{symbol}, exact", symbol]
    reading = ""
    if "epsilon" in loss:
        headers.append("ε, tight bound")
        reading = (
            f"ε is a conversion of {symbol}. It comes with delta, a small probability that the limit by ε does not "
            f"hold; here delta is {_delta(loss)}."
        )
    parts = [
        paragraphs(
            "The smaller the privacy loss, the less the published files can reveal about one record. Losses add up over all "
            "tables and depend on the definition of a protected change. They are stated for "
            f"{'two kinds of change' if len(relations) > 1 else 'one kind of change'}.",
            reading,
        ),
        table("Privacy loss of the whole release", headers, rows, numbers=len(headers) - 1),
    ]
    if "epsilon" in loss:
        conversions = [
            (
                HtmlCell(f"{escape(entry['name'])}<small>{escape(entry['words'])}</small>"),
                fixed(entry["value"], 4),
            )
            for entry in loss["epsilon"]
        ]
        caption = f"What {SYMBOLS['rho']} = {number(loss['decimal'])} means as ε, at delta {_delta(loss)}"
        parts.append(table(caption, ("Conversion", "ε"), conversions, numbers=1))
    parts.append(odds_part(document["odds"], pure="epsilon" not in loss))
    calibration = document["calibration"]
    if calibration["words"]:
        parts += [
            f"<h3>How the noise was scaled: {escape(calibration['name'])}</h3>",
            paragraphs(calibration["words"]),
        ]
    return section("loss", "Privacy loss", *parts)


def _checks(document: Document) -> str:
    rows = [
        (
            group["name"],
            "stops the run; this release passed all of them"
            if group["stops"]
            else "is reported to the operator",
            integer(group["rules"]),
        )
        for group in document["checks"]
    ]
    checked = note = output = ""
    if rows:
        checked = table("Rules applied to the input", ("Rules", "A violation …", "Number"), rows, numbers=1)
        note = paragraphs(
            "The number of records that violate a rule is an exact fact about confidential records. It is reported to the "
            "operator only and is not stated here.",
            kind="note",
        )
    if document["rows_checked"]:
        output = (
            f"{integer(document['rows_checked'])} published rows were read back and compared with the plan: tables, regions, "
            "cells, order and variances."
        )
    return section("checks", "Checks", checked, paragraphs(output), note)


def _evidence(document: Document) -> str:
    ledger, configuration = document["ledger"], document["configuration"]
    overrides = [f"{name} = {value}" for name, value in configuration["overrides"].items()]
    parts = [
        paragraphs(
            "A file commitment is a keyed fingerprint of one record file; the input commitment covers all of them. The holder of "
            "the ledger key can prove that these files were used; without the key, no one can test guesses about their contents."
            if ledger
            else "The commitments are fingerprints of the record files, keyed with the test key.",
            HtmlCell(
                "The ledger head is a fingerprint of the whole ledger at the time of this certificate: <code>censafe ledger "
                "verify LEDGER --head HASH</code> must find it."
            )
            if ledger
            else "",
        ),
        listing(
            [
                ("Input commitment", _code(document["inputs"]["keyed_commitment"])),
                *(("File commitment", _code(one)) for one in document["inputs"]["file_commitments"]),
                ("Ledger head", _code(ledger["head"]) if ledger else "none; a test key spends no budget"),
                ("Plan digest", _code(document["plan_digest"])),
                (
                    "Configuration",
                    ": ".join(configuration[key] for key in ("name", "title") if key in configuration),
                ),
                ("Changed settings", "; ".join(overrides) or "none"),
            ]
        ),
        _folded(
            "Measurement files (SHA-256)",
            {name: _code(value) for name, value in document["measurement_files"].items()},
        ),
        _folded("Settings of the plan", configuration["settings"]),
        _folded("Software", document["versions"]),
    ]
    return section("evidence", "Evidence", *parts)


def _folded(title: str, values: Mapping[str, str]) -> str:
    return details(title, listing(list(values.items()))) if values else ""


def _tight_epsilon(loss: Document) -> float:
    return next(float(entry["value"]) for entry in loss["epsilon"] if entry["conversion"] == "tight")


def _fraction(exact: str) -> str:
    return exact.removesuffix("/1")


def _delta(loss: Document) -> str:
    """A power of ten as people write it, anything else as a decimal number."""
    top, bottom = loss["delta"].split("/")
    if top == "1" and bottom.rstrip("0") == "1":
        raised = "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(len(bottom) - 1))
        return f"10⁻{raised}"
    return number(loss["delta_decimal"])


def _code(text: str) -> HtmlCell:
    return HtmlCell(f"<code>{escape(text)}</code>")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def write_certificate(
    folder: Path, source: CertificateInput, *, stamp: Stamp | None = None
) -> tuple[Path, Path]:
    """Write ``certificate.html`` and ``certificate.json`` into the run folder."""
    document = certificate_document(source, stamp=stamp)
    page, values = folder / "certificate.html", folder / "certificate.json"
    atomic_text(page, certificate_page(document, source.contents))
    text = json.dumps(document, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)
    atomic_text(values, text + "\n")
    return page, values
