"""The frame of every page that stands alone: its head, the style that all pages share, and figures that follow the reader's light or dark setting."""

from __future__ import annotations

import re
from html import escape
from importlib import resources
from typing import Final

_COLOR: Final = re.compile(r"\b(fill|stroke|stop-color): ?(#[0-9a-fA-F]{6})\b")
_PAPER: Final = "#171e26"  # --paper and --ink of the dark page in page.css
_INK: Final = "#e8edf2"
_LINEAR: Final = 0.04045
_COLORFUL: Final = 0.2
_SEEN: Final = 3.0


def document_html(title: str, body: str, footer: str, *, language: str = "en") -> str:
    """A page of HTML; nothing on it is loaded from elsewhere and nothing is a script."""
    style = resources.files("censafe.publication.pages").joinpath("page.css").read_text(encoding="utf-8")
    return (
        f'<!DOCTYPE html>\n<html lang="{escape(language)}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}{_figure_colors(body)}</style>\n</head>\n<body>\n<main>\n{body}\n"
        f"<footer>{escape(footer)}</footer>\n</main>\n</body>\n</html>\n"
    )


def drawing(svg: str, words: str, least: float, most: float) -> str:
    """A drawing that becomes narrower with the page until its text is hard to read, and scrolls from there on."""
    colored = _COLOR.sub(lambda match: f"{match[1]}: var(--drawn-{match[2][1:].lower()})", svg)
    named = colored.replace(
        "<svg ",
        f'<svg role="img" aria-label="{escape(words)}" style="min-width: {least:.0f}px; max-width: {most:.0f}px" ',
        1,
    )
    return f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(words)}">{named}</div>'


def dark_color(color: str) -> str:
    """The color that has on the dark page the contrast which a color has on white; at least 3 where it is not a shade of grey.

    Example:
        >>> dark_color("#ffffff"), dark_color("#0b5c7a"), dark_color("#000000")
        ('#171e26', '#21b9f1', '#e8edf2')
    """
    channels = _channels(color)
    own, paper, ink = (_luminance(one) for one in (channels, _channels(_PAPER), _channels(_INK)))
    ratio = 1.05 / (own + 0.05)
    if max(channels) - min(channels) > _COLORFUL:
        ratio = max(ratio, _SEEN)
    aim = ratio * (paper + 0.05) - 0.05
    if own >= 1:
        return _PAPER
    if aim >= ink:
        return _INK
    scale = min(aim / own, 1 / max(channels))
    scaled = [channel * scale for channel in channels]
    bright = _luminance(scaled)
    white = (aim - bright) / (1 - bright)
    return "#" + "".join(f"{_coded(channel + white * (1 - channel)):02x}" for channel in scaled)


def _figure_colors(body: str) -> str:
    """The values of the variables that the drawings on a page use, for light and dark."""
    colors = sorted(set(re.findall(r"var\(--drawn-([0-9a-f]{6})\)", body)))
    if not colors:
        return ""
    light = " ".join(f"--drawn-{one}: #{one};" for one in colors)
    dark = " ".join(f"--drawn-{one}: {dark_color(f'#{one}')};" for one in colors)
    return f":root {{ {light} }}\n@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"


def _channels(color: str) -> list[float]:
    """Linear red, green and blue, from 0 to 1."""
    coded = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    return [one / 12.92 if one <= _LINEAR else ((one + 0.055) / 1.055) ** 2.4 for one in coded]


def _coded(linear: float) -> int:
    value = linear * 12.92 if linear <= _LINEAR / 12.92 else 1.055 * linear ** (1 / 2.4) - 0.055
    return round(255 * value)


def _luminance(channels: list[float]) -> float:
    red, green, blue = channels
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
