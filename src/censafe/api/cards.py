"""Cards of areas: one page each with the main numbers of an area and how sure they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from censafe.api.arguments import public
from censafe.api.options import CardKeywords, confidence_of
from censafe.errors import UsageError
from censafe.model.observer import SilentObserver

if TYPE_CHECKING:
    from censafe.products.topdown.census_tables.source import Geography


@public
def card(
    run: str | Path, out: str | Path, codes: str | Sequence[str] = (), **options: Unpack[CardKeywords]
) -> tuple[Path, ...]:
    """One page for an area: its main tables with intervals, what can be used, the areas beside it, and a map where shapes are given.

    Args:
        run: folder of a run of topdown (dhc-us, dhc-pr, pl94-us, pl94-pr) with linear estimates of tables or with replicates; of a run with schemas of its own, with
            intervals (:func:`censafe.estimate`) or with replicates; or of microdata in the Bureau's layout with replicates. Linear estimates are used where the run has them for all areas shown, unless `replicates` are named.
        out: for one area a file that ends in ``.html``; otherwise a folder, for a page each.
        codes: GEOIDs of 2 (state), 5 (county), 7 (place), 10 (county subdivision), 11 (tract), 12 (block group) or 15 digits (block), of one kind; of a run
            with schemas of its own the codes of its areas, of one level; or with `areas` codes of the list, none for all of it.
        options: see :class:`~censafe.api.options.CardKeywords`.

    Returns:
        The pages.

    Raises:
        UsageError: no area, areas of several kinds, one that is not there, or too few replicates.
        DataError: the file of areas or of shapes breaks a rule.
        StorageError: there is no finished run, or a file cannot be read or written.
        TypeError: a keyword that is none.

    Source: intervals: arXiv 2503.19714.

    Example:
        >>> card("no-run", "card.html", "44007")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        censafe.errors.StorageError: ...
    """
    from censafe.model.safe_text import file_name
    from censafe.products.topdown.census_tables.card import write_card
    from censafe.products.topdown.census_tables.card_values import card_values, interval_sources
    from censafe.products.topdown.census_tables.microdata_source import open_source
    from censafe.products.topdown.census_tables.shapes import listed_areas, read_shapes

    chosen = tuple(dict.fromkeys([codes] if isinstance(codes, str) else codes))
    listed, points = options.pop("areas", None), options.pop("points", None)
    shapes = options.pop("shapes", listed if points is not None else None)
    area_property = options.pop("area_property", None)
    replicates, confidence = options.pop("replicates", None), options.pop("confidence", "0.9")
    linear, observer = options.pop("estimates", None), options.pop("progress", None) or SilentObserver()
    published = open_source(Path(run))
    if published.recognized:
        observer.note(f"{run}: {published.recognized}.")
    sources = interval_sources(
        published,
        Path(run),
        None if replicates is None else Path(replicates),
        None if linear is None else Path(linear),
    )
    source = sources[0]
    if listed is None:
        level, chosen = published.areas_named(chosen)
        places: tuple[Geography, ...] = (source.geography(level, None),)
    else:
        named = area_property if points is not None else None
        places = listed_areas(source, Path(listed), None if points is None else Path(points), None, named)
        for text in places[0].remarks:
            observer.remark(text)
    values = card_values(sources, places, chosen, confidence_of(confidence))
    for text in values.remarks:
        observer.remark(text)
    targets = chosen or values.codes
    outlines = None if shapes is None else read_shapes(Path(shapes), area_property)
    if outlines is not None and (words := outlines.without(f"{shapes}", targets)):
        observer.remark(words)
    paths = _paths(Path(out), [file_name(code) for code in targets])
    for code, path in zip(targets, paths, strict=True):
        write_card(path, values, code, outlines)
    return paths


def _paths(out: Path, names: Sequence[str]) -> tuple[Path, ...]:
    if out.suffix == ".html":
        if len(names) > 1:
            raise UsageError(f"{out}: {len(names)} areas need a folder; give one without an ending")
        return (out,)
    if len(set(names)) < len(names):
        raise UsageError("two areas of the list would have one file name; give their codes one by one")
    return tuple(out / f"{name}.html" for name in names)
