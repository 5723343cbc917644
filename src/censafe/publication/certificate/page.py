"""The certificate: what was protected and how, as one self-contained page made from its JSON values alone."""

from __future__ import annotations

import calendar
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from fractions import Fraction
from html import escape
from pathlib import Path
from typing import Any, Final, Protocol

from censafe.errors import CheckError
from censafe.model import Definition, Neighbors, ReleasePlan
from censafe.model.bounds import factor_text
from censafe.model.parsing import exact_text
from censafe.privacy.loss.attack import largest_power
from censafe.privacy.loss.conversions import ODDS_DELTAS, epsilons, odds_bound
from censafe.publication.atomic import atomic_text
from censafe.publication.certificate.tables import (
    CALIBRATIONS,
    CONVERSIONS,
    NEIGHBORS,
    NOT_PROMISED,
    SYMBOLS,
    UNITS,
    Document,
    group_words,
)
from censafe.publication.manifest import Manifest
from censafe.publication.pages import (
    HtmlCell,
    breakable,
    details,
    document_html,
    drawing,
    fixed,
    integer,
    listing,
    number,
    paragraphs,
    section,
    table,
)
from censafe.publication.stamps import DEMONSTRATION, STAMP, Stamp, Stamped, require_publishable
from censafe.publication.sums import require_confidence

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 560, 300, 62, 20, 16, 48
_LEAST, _MOST = 430, 620


def odds_part(rows: Sequence[Document], *, pure: bool) -> str:
    """Words, curve and table."""
    if pure:
        return "<h3>An attacker's odds</h3>" + paragraphs(
            "Whatever an attacker believed about one record before, the release changes their odds between two values of it by a "
            f"factor of at most {factor_text(rows[0]['epsilon'])}, always."
        )
    cells = [
        (f"{float(Fraction(row['delta'])):.3g}", fixed(row["epsilon"], 3), factor_text(row["epsilon"]))
        for row in rows
    ]
    return (
        "<h3>An attacker's odds</h3>"
        + paragraphs(
            "Suppose an attacker has some prior belief about one record, and therefore odds between two values of it. With "
            "probability at least 1 minus delta over the noise, all published files together change these odds by a factor of at "
            "most e^epsilon, up or down. This holds for every prior belief about the record, and also if the other records are "
            "not known, provided the beliefs about them do not depend on this record. It is a statement about the posterior odds, "
            "and differs from (epsilon, delta)-differential privacy."
        )
        + _curve(rows)
        + table(
            "Largest change of the odds about one record",
            ("delta", "epsilon", HtmlCell("factor e<sup>epsilon</sup>")),
            cells,
            numbers=3,
        )
    )


def _curve(rows: Sequence[Document]) -> str:
    """Epsilon by delta, delta on a logarithmic axis."""
    powers = [math.log10(row["delta_decimal"]) for row in rows]
    top = max(row["epsilon"] for row in rows) * 1.05 or 1.0

    def place(power: float, epsilon: float) -> tuple[float, float]:
        across = (power - powers[-1]) / (powers[0] - powers[-1])
        x = _LEFT + across * (_WIDTH - _LEFT - _RIGHT)
        return x, _HEIGHT - _BOTTOM - epsilon / top * (_HEIGHT - _TOP - _BOTTOM)

    points = [place(power, row["epsilon"]) for power, row in zip(powers, rows, strict=True)]
    path = "".join(f"{'L' if i else 'M'}{x:.1f} {y:.1f}" for i, (x, y) in enumerate(points))
    floor = place(powers[-1], 0.0)[1]
    labels = "".join(
        f'<text x="{place(power, 0)[0]:.1f}" y="{floor + 18:.1f}" text-anchor="middle">1e{power}</text>'
        for power in (-10, -8, -6, -4, -2)
    ) + "".join(
        f'<text x="{_LEFT - 8}" y="{place(0, share * top)[1] + 4:.1f}" text-anchor="end">{share * top:.1f}</text>'
        for share in (0.0, 0.25, 0.5, 0.75, 1.0)
    )
    ends = f"from {fixed(rows[0]['epsilon'], 2)} at delta {rows[0]['delta_decimal']:g} to {fixed(rows[-1]['epsilon'], 2)} at {rows[-1]['delta_decimal']:g}"
    svg = (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" font-size="13">'
        f'<path d="M{_LEFT} {_TOP}V{floor:.1f}H{_WIDTH - _RIGHT}" fill="none" stroke="currentColor" stroke-opacity="0.4"/>'
        f'<path d="{path}" fill="none" stroke="currentColor" stroke-width="3"/>{labels}'
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2}" y="{_HEIGHT - 8}" text-anchor="middle">delta</text></svg>'
    )
    return f"<figure>{drawing(svg, f'Epsilon of the odds by delta: {ends}', _LEAST, _MOST)}</figure>"


_FALSE_ALARM = Fraction(5, 100)


class CertificateContents(Protocol):
    """What a release measured and published: its tables, their noise and budgets, and how a page shows them."""

    @property
    def stamped(self) -> Sequence[Stamped]:
        """Everything whose noise came from a key."""

    def check_costs(self, plan: ReleasePlan) -> None:
        """Compare laws and losses with the plan's; CheckError where they differ."""

    def noise_words(self) -> list[str]:
        """How the noise was drawn, in words."""

    def tables(self, total: Fraction, confidence: Fraction) -> Iterable[Mapping[str, Any]]:
        """One entry for each table, with budget, share of the total loss, and accuracy by level."""

    def more(self) -> Mapping[str, Any]:
        """Further entries of the document."""

    def published(self, document: Mapping[str, Any]) -> tuple[str, str]:
        """What is published, as a figure and a few words."""

    def sections(self, document: Mapping[str, Any]) -> str:
        """The part of the page that shows the tables, HTML."""


@dataclass(frozen=True)
class CheckGroup:
    """Rules that the input was checked against, and what a breach does.

    The certificate says which rules were applied, not what they found: numbers of records that broke a
    rule are exact facts about confidential records, and they are told to the operator only.
    """

    name: str
    rules: int
    stops: bool


@dataclass(frozen=True)
class CertificateInput:
    """What the certificate of a run is made of.

    Args:
        manifest: of the run; its ledger is None for a test key, and folders are not stated.
        ledger_total: what the ledger's entries say this run spent; None for a test key.
    """

    manifest: Manifest
    contents: CertificateContents
    checks: Sequence[CheckGroup]
    title: str
    ledger_total: Fraction | None
    rows_checked: int = 0
    delta: Fraction = Fraction(1, 10**10)
    confidence: Fraction = Fraction(9, 10)

    def __post_init__(self) -> None:
        require_confidence(self.confidence)


def certificate_document(source: CertificateInput, *, stamp: Stamp | None = None) -> dict[str, Any]:
    """Collect everything the certificate states."""
    contents, manifest = source.contents, source.manifest
    plan, ledger, config = manifest.plan, manifest.ledger, manifest.config
    require_publishable(contents.stamped, stamp)
    if stamp != STAMP and (ledger is None or source.ledger_total is None):
        raise CheckError("a release needs its ledger entries for the certificate, and none were given")
    if stamp != STAMP and source.ledger_total != plan.total:
        raise CheckError(
            f"the ledger holds {plan.definition.symbol} = {source.ledger_total} for this run, its plan costs "
            f"{plan.total}; run `censafe ledger verify` and do not publish before they agree"
        )
    contents.check_costs(plan)
    calibration, title = plan.settings.get("sensitivity", ""), str(config.settings.get("title", ""))
    return {
        "format": "censafe certificate 1",
        "title": source.title,
        "product": plan.product,
        "stamp": stamp,
        "private": stamp is None,
        "created": manifest.created,
        "promise": {
            "unit": plan.unit.value,
            "unit_words": " and ".join(f"every single {name}'s record" for name in plan.records)
            if "records" in plan.settings
            else UNITS[plan.unit],
            "records": list(plan.records),
            "definition": plan.definition.value,
            **_relation(plan, plan.neighbors),
            "group_words": group_words(plan.definition),
        },
        "noise_words": contents.noise_words(),
        "loss": _stated_loss(plan.total, source),
        "attacker": {
            "false_alarm": float(_FALSE_ALARM),
            "power": largest_power(plan.total, plan.definition, _FALSE_ALARM),
            "neighbors": plan.neighbors.value,
        },
        "odds": [  # they change by a factor of e^epsilon at most, with probability at least 1 - delta over the release
            {
                "delta": exact_text(delta),
                "delta_decimal": float(delta),
                "epsilon": odds_bound(plan.total, plan.definition, delta),
            }
            for delta in ODDS_DELTAS
        ],
        "other_losses": [
            {**_relation(plan, relation), **_stated_loss(loss, source)}
            for relation, loss in plan.other_losses.items()
        ],
        "calibration": {"name": calibration, "words": CALIBRATIONS.get(calibration, "")},
        "confidence": float(source.confidence),
        "tables": list(contents.tables(plan.total, source.confidence)),
        **contents.more(),
        "not_promised": [{"what": what, "words": words} for what, words in NOT_PROMISED],
        "checks": [asdict(group) for group in source.checks],
        "rows_checked": source.rows_checked,
        "inputs": {
            "dataset": manifest.dataset,
            "keyed_commitment": manifest.input_commitment,
            "file_commitments": list(manifest.file_commitments),
        },
        "ledger": {"file": Path(ledger.file).name, "head": ledger.head} if ledger else None,
        "plan_digest": plan.digest(),
        "measurement_files": {part.file: part.sha256 for part in manifest.parts},
        "configuration": {
            "name": Path(config.origin).name,
            **({"title": title} if title else {}),
            "overrides": dict(config.overrides),
            "settings": dict(plan.settings),
        },
        "versions": dict(manifest.versions),
    }


def _relation(plan: ReleasePlan, relation: Neighbors) -> dict[str, str]:
    """A relation by name, in general words, and in the product's own exact words where the plan has them."""
    general = NEIGHBORS[relation].format(unit="'s and one ".join(plan.records))
    return {
        "neighbors": relation.value,
        "neighbors_words": general,
        "neighbors_exact": plan.settings.get(f"neighbors.{relation.value}", general),
    }


def _stated_loss(loss: Fraction, source: CertificateInput) -> dict[str, Any]:
    definition = source.manifest.plan.definition
    stated: dict[str, Any] = {
        "kind": definition.symbol,
        "exact": exact_text(loss),
        "decimal": float(loss),
    }
    if definition is Definition.ZCDP:
        converted = epsilons(loss, source.delta)
        stated["delta"] = exact_text(source.delta)
        stated["delta_decimal"] = float(source.delta)
        stated["epsilon"] = [
            {"conversion": key, "name": name, "words": words, "value": getattr(converted, key)}
            for key, (name, words) in CONVERSIONS.items()
        ]
    return stated


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
    moment = datetime.fromisoformat(document["created"]).astimezone(UTC)
    time = f"{moment.day} {calendar.month_name[moment.month]} {moment:%Y, %H:%M} UTC"
    return (
        f'<header><p class="kicker">Certificate of disclosure protection</p><h1>{escape(document["title"])}</h1>'
        f'<p class="meta">{escape(document["inputs"]["dataset"])} · '
        f'<time datetime="{escape(document["created"])}">{escape(time)}</time></p>'
        f'<dl class="facts">{cards}</dl></header>'
    )


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
