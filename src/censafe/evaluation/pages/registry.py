"""Write the page of an evaluation, of whatever kind, from the files in its folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from censafe.errors import UsageError
from censafe.evaluation.outputs import read_evaluation, write_page
from censafe.evaluation.pages.groups import safetab_page
from censafe.evaluation.pages.noise import noise_page
from censafe.evaluation.pages.page import Page
from censafe.evaluation.pages.pair import pair_page
from censafe.evaluation.pages.phsafe import phsafe_page
from censafe.evaluation.pages.semantics import semantics_page
from censafe.evaluation.pages.sweep import sweep_page
from censafe.evaluation.pages.topdown import topdown_page
from censafe.evaluation.pages.uncertainty import uncertainty_page

PAGES: Final[Mapping[str, Callable[[Path], Page]]] = {
    "topdown": topdown_page,
    "sweep": sweep_page,
    "uncertainty": uncertainty_page,
    "pair": pair_page,
    "semantics": semantics_page,
    "noise": noise_page,
    "phsafe": phsafe_page,
    "safetab-p": safetab_page,
    "safetab-h": safetab_page,
}


def write_report(folder: Path) -> tuple[str, ...]:
    """Draw the figures and write the page; the frames stay as they are."""
    kind = str(read_evaluation(folder).get("kind"))
    if kind not in PAGES:
        raise UsageError(f"{folder} holds no evaluation that has a page; allowed: {', '.join(PAGES)}.")
    return write_page(folder, PAGES[kind](folder))
