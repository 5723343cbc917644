"""Figures as objects: of plans, of evaluations, and maps of a number by area; readable without color, with words for those who cannot see."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from censafe.api.arguments import public
from censafe.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

    from censafe.products.topdown.census_tables.shapes import AreaShapes


_COLORS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D1F")
"""Okabe and Ito (2008): distinguishable with every common kind of color vision; every color has a mark of its own besides."""
_MARKS: Final = ("o", "s", "^", "D", "v", "P", "X", "*")
_MAP: Final = "cividis"  # rises evenly in lightness for all kinds of color vision
_CLASSES, _UNKNOWN = 5, "#d9d9d9"


@dataclass(frozen=True)
class Figure:
    """A picture with the words that stand for it.

    Args:
        alt: what it shows, for readers who do not see it.
        forms: its bytes by format, ``svg`` and ``png``, as far as there are.

    Source: W3C, "An alt Decision Tree"; Okabe and Ito, "Color Universal Design" (2008).

    Example:
        >>> import censafe
        >>> figure = censafe.plan(censafe.configuration("phsafe", "sdhc-us")).figure()
        >>> figure
        Figure(svg, png: Margins of error at 90% of sdhc-us, 64 rows in 11 tables or queries, from 20 to 707.)
        >>> figure.svg[:4], figure.png[1:4]
        ('<svg', b'PNG')
    """

    alt: str
    forms: Mapping[str, bytes] = field(repr=False)

    @property
    def svg(self) -> str:
        """As SVG, with the words as its title.

        Raises:
            UsageError: it was stored as PNG alone.
        """
        return self._form("svg").decode()

    @property
    def png(self) -> bytes:
        """As PNG.

        Raises:
            UsageError: it was stored as SVG alone.
        """
        return self._form("png")

    def save(self, path: Path | str) -> Path:
        """Write it in the format that the ending names.

        Raises:
            UsageError: an ending other than ``.svg`` and ``.png``, or a form that there is not.
        """
        target = Path(path)
        if target.suffix not in {".svg", ".png"}:
            raise UsageError(f"{target.name}: a figure is saved as .svg or .png")
        target.write_bytes(self._form(target.suffix[1:]))
        return target

    def _form(self, name: str) -> bytes:
        if name not in self.forms:
            raise UsageError(f"this figure was stored as {', '.join(self.forms)}, not as {name}")
        return self.forms[name]

    def _repr_html_(self) -> str:
        """For notebooks: the picture with its words."""
        import base64

        name, kind = ("svg", "svg+xml") if "svg" in self.forms else ("png", "png")
        data = base64.b64encode(self._form(name)).decode()
        return f'<img alt="{escape(self.alt)}" style="max-width:100%" src="data:image/{kind};base64,{data}">'

    def __repr__(self) -> str:
        return f"Figure({', '.join(self.forms)}: {self.alt})"


def _drawn(drawing: Drawing, alt: str) -> Figure:
    """The same bytes for the same picture, in both forms."""
    from matplotlib import rc_context

    forms = {}
    with rc_context({"svg.hashsalt": "censafe"}):
        for name in ("svg", "png"):
            stream = io.BytesIO()
            drawing.savefig(
                stream,
                format=name,
                dpi=150,
                metadata={"Title": alt} | ({"Date": None} if name == "svg" else {}),
            )
            forms[name] = stream.getvalue()
    start = forms["svg"].index(b"<svg")
    end = forms["svg"].index(b">", start)
    words = f' role="img" aria-label="{escape(alt)}">'.encode()
    forms["svg"] = forms["svg"][start:end] + words + forms["svg"][end + 1 :]
    return Figure(alt, forms)


def plan_figure(name: str, rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Margins of error of a plan: a row for each table or query, a mark for each level.

    Args:
        name: of the configuration.
        rows: of the plan's table.
    """
    from matplotlib.figure import Figure as Drawing
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    points: dict[str, list[tuple[str, float]]] = {}
    for row in rows:
        if isinstance(row["moe"], int | float) and row["moe"] > 0 and math.isfinite(row["moe"]):
            table = f"{row['histogram']}: {row['query']}" if "query" in row else str(row["table"])
            points.setdefault(table, []).append((str(row["level"]), float(row["moe"])))
    if not points:
        raise UsageError(
            f"{name}: no row of the plan has a margin of error, so that there is nothing to draw"
        )
    levels = list(dict.fromkeys(level for own in points.values() for level, _ in own))
    drawing = Drawing(figsize=(8, 1.4 + 0.32 * len(points)), layout="constrained")
    axes = drawing.add_subplot()
    for number, level in enumerate(levels):
        places = [(margin, y) for y, own in enumerate(points.values()) for one, margin in own if one == level]
        mark, color = _MARKS[(number + number // len(_MARKS)) % len(_MARKS)], _COLORS[number % len(_COLORS)]
        axes.plot(*zip(*places, strict=True), mark, color=color, markersize=6, label=level)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.4g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_yticks(range(len(points)), list(points))
    axes.invert_yaxis()
    axes.grid(axis="x", color="#dddddd")
    confidence = next(iter(rows))["confidence"]
    axes.set_xlabel(f"margin of error at {float(confidence):.0%} confidence, records (logarithmic)")
    drawing.legend(loc="outside upper center", ncols=6, fontsize=7, frameon=False)
    margins = [margin for own in points.values() for _, margin in own]
    tables = f"{len(margins)} rows in {len(points)} tables or queries"
    return _drawn(
        drawing,
        f"Margins of error at {float(confidence):.0%} of {name}, {tables}, from {min(margins):,.0f} to {max(margins):,.0f}.",
    )


@public
def choropleth(
    values: Mapping[str, float],
    shapes: Path | str,
    *,
    title: str,
    unit: str = "",
    area_property: str | None = None,
) -> Figure:
    """A map of one number by area, such as an error or the width of an interval, in five classes of equally many areas.

    Args:
        values: by code of the area (GEOID); areas of the shapes without one are gray.
        shapes: polygons of the areas: GeoJSON with longitudes and latitudes, or, with the extra ``maps`` (GeoPandas), anything that it
            reads, such as a TIGER/Line file or GeoParquet.
        title: of the map.
        unit: of the numbers.
        area_property: that holds the codes of the areas; the first of GEOID, GEOID20, code or name that every feature has without.

    Raises:
        UsageError: no value has a shape, or GeoPandas is needed and not installed.
        DataError: a file without polygons and codes.
        StorageError: there is no such file.

    Source: Brewer and Pickle, "Evaluation of Methods for Classifying Epidemiological Data on Choropleth Maps" (2002), for quantiles.

    Example:
        >>> import json, tempfile
        >>> square = lambda x: [[[x, 0], [x + 1, 0], [x + 1, 1], [x, 1], [x, 0]]]
        >>> areas = [{"type": "Feature", "properties": {"GEOID": code}, "geometry": {"type": "Polygon", "coordinates": square(x)}}
        ...          for x, code in enumerate(["44001", "44003"])]
        >>> file = Path(tempfile.mkdtemp()) / "counties.geojson"
        >>> _ = file.write_text(json.dumps({"type": "FeatureCollection", "features": areas}))
        >>> choropleth({"44001": 12.0, "44003": 30.5}, file, title="Error of the total", unit="persons").alt
        'Map: Error of the total, persons. 2 of 2 areas have a value, from 12 (44001) to 30.5 (44003); the median is 21.2.'
    """
    from censafe.products.topdown.census_tables.shapes import read_shapes

    outlines = read_shapes(Path(shapes), area_property)
    known = {
        code: float(values[code])
        for code in outlines.polygons
        if code in values and math.isfinite(values[code])
    }
    if not known:
        raise UsageError(
            f"{shapes}: none of its {len(outlines.polygons):,} areas has a value; codes of both must be the same, such as 44007"
        )
    return map_figure(known, outlines, title, unit)


def map_figure(known: Mapping[str, float], outlines: AreaShapes, title: str, unit: str) -> Figure:
    """A map of the areas that have a polygon, one at least of them with a number."""
    import numpy as np

    numbers = np.array(list(known.values()))
    breaks = np.unique(np.quantile(numbers, np.linspace(0, 1, _CLASSES + 1)))
    least, most = min(known, key=known.__getitem__), max(known, key=known.__getitem__)
    words = (
        f"Map: {title}{f', {unit}' if unit else ''}. {len(known)} of {len(outlines.polygons)} areas have a value, from "
        f"{known[least]:,.4g} ({least}) to {known[most]:,.4g} ({most}); the median is {np.median(numbers):,.3g}."
    )
    return _drawn(_map(outlines, known, breaks, f"{title}{f' ({unit})' if unit else ''}"), words)


def _map(outlines: AreaShapes, known: Mapping[str, float], breaks: Any, title: str) -> Drawing:
    """Polygons with the color of their class, and a legend of the classes."""
    import numpy as np
    from matplotlib import colormaps
    from matplotlib.figure import Figure as Drawing
    from matplotlib.patches import Patch, PathPatch
    from matplotlib.path import Path as Outline

    drawing = Drawing(figsize=(7, 6), layout="constrained")
    axes = drawing.add_subplot()
    classes = max(1, len(breaks) - 1)
    colors = [colormaps[_MAP](0.95 - 0.9 * (one + 0.5) / classes) for one in range(classes)]
    for code, polygons in outlines.polygons.items():
        place = np.clip(np.searchsorted(breaks, known.get(code, 0.0), side="left") - 1, 0, classes - 1)
        color = colors[place] if code in known else _UNKNOWN
        for rings in polygons:
            outline = Outline.make_compound_path(*(Outline(ring, closed=True) for ring in rings))
            axes.add_patch(PathPatch(outline, facecolor=color, edgecolor="#333333", linewidth=0.3))
    points = np.concatenate([rings[0] for polygons in outlines.polygons.values() for rings in polygons])
    axes.set_xlim(points[:, 0].min(), points[:, 0].max())
    axes.set_ylim(points[:, 1].min(), points[:, 1].max())
    axes.set_aspect(1 / math.cos(math.radians(float(points[:, 1].mean()))))
    axes.set_axis_off()
    axes.set_title(title, fontsize=10)
    ends = list(pairwise(breaks)) or [(breaks[0], breaks[0])]
    marks = [Patch(facecolor=color, edgecolor="#333333", label=f"{low:,.4g} to {high:,.4g}") for color, (low, high) in zip(colors, ends, strict=True)]  # fmt: skip
    marks += [Patch(facecolor=_UNKNOWN, edgecolor="#333333", label="no value")] * (
        len(known) < len(outlines.polygons)
    )
    drawing.legend(handles=marks, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    return drawing
