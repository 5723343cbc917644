"""What a release guarantees about singling out, linkability and inference, in the words of a data protection officer and in any language."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from html import escape
from importlib import resources
from pathlib import Path
from string import Formatter
from typing import Any, Final

from censafe.errors import ConfigError, StorageError
from censafe.model import Definition
from censafe.model.bounds import factor_text
from censafe.model.entries import nearest
from censafe.privacy.loss.attack import best_guess
from censafe.privacy.loss.conversions import odds_bound
from censafe.publication.pages import document_html, paragraphs, section, table
from censafe.publication.stamps import DEMONSTRATION, STAMP

ODDS_DELTA: Final = Fraction(1, 1000)
_USELESS: Final = Fraction(99, 100)

_STAMPS: Final = {STAMP: "test_key", DEMONSTRATION: "published_data"}

Sentences = Mapping[str, Any]


def anonymity_values(
    loss: Fraction,
    definition: Definition,
    readings: Sequence[Mapping[str, Any]],
    levels: Sequence[str],
    exact: Sequence[Mapping[str, Any]],
    *,
    listed: bool = False,
    revealed: Sequence[str] = (),
) -> dict[str, Any]:
    """The numbers of the section, as JSON values of the certificate.

    Args:
        loss: of one person, rho or epsilon.
        readings: of the certificate: losses of single questions.
        levels: names of the published levels, the widest first.
        exact: what each histogram publishes exactly: `histogram`, `levels` at which its totals are exact, whether numbers of `units` by kind are exact in the lowest
            areas, and `answers` that are exact, each a query with the lowest level at which they are.
        listed: whether it is published exactly which of the lowest areas have records.
        revealed: answers of a person that exact figures show to whom all other records are known.
    """

    def limits(own: Fraction) -> dict[str, float]:
        return {
            "best_guess": best_guess(own, definition),
            "odds_epsilon": odds_bound(own, definition, ODDS_DELTA),
        }

    def of(kind: str) -> Iterator[Mapping[str, Any]]:
        rows = [one for one in readings if one["kind"] == kind]
        joint = [one for one in rows if one["histogram"] == "all"]
        yield from joint or rows

    lowest = levels[-1]
    places = {one["name"]: Fraction(one["exact"]) for one in of(f"{lowest} within")}
    return {
        "levels": list(levels),
        "exact": list(exact),
        "listed": listed,
        "always": definition is Definition.PURE,
        "singling_out": limits(loss),
        "linkability": [
            {"name": name, **(limits(places[name]) if name in places else {})} for name in levels[:-1]
        ],
        "inference": [
            *({"name": one["name"], **limits(Fraction(one["exact"]))} for one in of("answer")),
            *({"name": name} for name in revealed),
        ],
    }


def read_sentences(path: Path | None = None) -> Sentences:
    """Sentences of a language: English, or a translation that has the same keys and fields.

    Raises:
        StorageError: the file cannot be read.
        ConfigError: keys or fields that are missing or unknown, all of them at once.
    """
    english = tomllib.loads(shipped_sentences())
    if path is None:
        return english
    try:
        own = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StorageError(f"{path}: the file cannot be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not a TOML file in UTF-8: {error}") from error
    allowed, translated = dict(_flat(english)), dict(_flat(own))
    breaches = [f"{key}: missing" for key in allowed if key not in translated]
    for key, text in translated.items():
        if key not in allowed:
            breaches.append(f"{key}: there is no such sentence.{nearest(key, list(allowed))}")
        elif not isinstance(text, str) or not text.strip():
            breaches.append(f"{key}: a sentence is text in quotes")
        elif (fields := _fields(text)) != _fields(allowed[key]):
            names = ", ".join(sorted(_fields(allowed[key]))) or "none"
            breaches.append(
                f"{key}: the fields in braces are {', '.join(sorted(fields)) or 'none'}; allowed: {names}"
            )
    if breaches:
        raise ConfigError(
            f"{path}: {'; '.join(breaches)}; fix: translate the output of `censafe certificate --sentences-template`"
        )
    return own


def shipped_sentences() -> str:
    """The English sentences as they ship, TOML."""
    place = resources.files("censafe.publication.certificate").joinpath("sentences/en.toml")
    return place.read_text(encoding="utf-8")


def _flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield before + key, value


def _fields(text: str) -> frozenset[str]:
    try:
        return frozenset(name for _, name, _, _ in Formatter().parse(text) if name is not None)
    except ValueError:
        return frozenset(["{"])


def anonymity_section(values: Mapping[str, Any], records: Sequence[str], sentences: Sentences) -> str:
    """The section of a page, HTML.

    Args:
        values: of :func:`anonymity_values`.
        records: what is counted, such as persons.
    """
    lowest = values["levels"][-1]
    scope = sentences["scope"].format(records=", ".join(records), levels=", ".join(values["levels"]))
    singling, linking, inference = (sentences[one] for one in ("singling_out", "linkability", "inference"))
    rows = _rows(values["linkability"], linking["unlimited"], sentences)
    answers = _rows(values["inference"], inference["unlimited"], sentences)
    return section(
        "anonymity",
        sentences["heading"],
        paragraphs(scope, sentences["terms"]),
        f"<h3>{escape(singling['title'])}</h3>",
        paragraphs(singling["words"], *_words(values["singling_out"], sentences, always=values["always"])),
        f"<h3>{escape(linking['title'])}</h3>",
        paragraphs(linking["words"].format(lowest=lowest)),
        table(
            linking["caption"].format(lowest=lowest),
            (linking["area"], *_headers(sentences)),
            rows,
            numbers=_numbers(rows),
        )
        if rows
        else paragraphs(linking["none"]),
        f"<h3>{escape(inference['title'])}</h3>",
        paragraphs(inference["words"]),
        table(
            inference["caption"],
            (inference["attribute"], *_headers(sentences)),
            answers,
            numbers=_numbers(answers),
        ),
        f"<h3>{escape(sentences['not_covered']['title'])}</h3>",
        _not_covered(values, sentences),
    )


def _not_covered(values: Mapping[str, Any], sentences: Sentences) -> str:
    words, figures = sentences["not_covered"], []
    for figure in values["exact"]:
        if figure["levels"]:
            figures.append(
                words["totals"].format(histogram=figure["histogram"], levels=", ".join(figure["levels"]))
            )
        for query, level in figure.get("answers", ()):
            figures.append(words["answers"].format(histogram=figure["histogram"], query=query, level=level))
        if figure["units"]:
            figures.append(words["units"].format(histogram=figure["histogram"], lowest=values["levels"][-1]))
    if values["listed"]:
        figures.append(words["areas"].format(lowest=values["levels"][-1]))
    exact = words["exact"].format(figures="; ".join(figures)) if figures else ""
    return paragraphs(exact, words["groups"], words["others"], words["agency"])


def _words(limits: Mapping[str, float], sentences: Sentences, *, always: bool) -> tuple[str, ...]:
    guess = sentences["guess"].format(guess=_percent(limits["best_guess"]))
    key = "odds_always" if always else "odds"
    fields = {} if always else {"certainty": f"{float(1 - ODDS_DELTA):g}"}
    odds = sentences[key].format(factor=factor_text(limits["odds_epsilon"]), **fields)
    return guess, odds, sentences["useless"] if limits["best_guess"] >= _USELESS else ""


def _headers(sentences: Sentences) -> tuple[str, str]:
    return sentences["columns"]["guess"], sentences["columns"]["factor"]


def _rows(
    values: Sequence[Mapping[str, Any]], unlimited: str, sentences: Sentences
) -> list[tuple[str, str, str]]:
    """Limits by area or answer, and words where there are none."""
    return [
        _limits(row, sentences) if "best_guess" in row else (row["name"], unlimited, "") for row in values
    ]


def _numbers(rows: Sequence[tuple[str, str, str]]) -> int:
    """Columns of numbers: none where one of the rows has words."""
    return 2 if all(factor for _, _, factor in rows) else 0


def _limits(row: Mapping[str, Any], sentences: Sentences) -> tuple[str, str, str]:
    return row["name"], _percent(row["best_guess"]), factor_text(row["odds_epsilon"])


def _percent(share: float) -> str:
    """A bound that was rounded up to a ten-thousandth before."""
    return f"{round(10_000 * share) / 100:.2f}"


def anonymity_page(document: Mapping[str, Any], sentences: Sentences) -> str:
    """A page that stands alone, for print, from the JSON values of a certificate alone."""
    title, stamp = document["title"], document["stamp"]
    warning = "" if stamp is None else sentences["stamps"][_STAMPS[stamp]]
    banner = f'<div class="banner" role="alert"><p>{escape(warning)}</p></div>' if warning else ""
    head = f'<header><p class="kicker">{escape(sentences["kicker"])}</p><h1>{escape(title)}</h1></header>'
    records = list(document["estimated"]["records"])
    body = banner + head + anonymity_section(document["anonymity"], records, sentences)
    mark = f"{stamp}: " if stamp else ""
    return document_html(mark + title, body, sentences["footer"], language=sentences["language"])
