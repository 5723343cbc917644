"""The parts of the campaign."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from campaign import child
from campaign.audits.part import Audits
from campaign.child import Shim
from campaign.conditions import Conditions
from campaign.corruptions import BadInput
from campaign.faults import Faults
from campaign.fuzz.part import Fuzz
from campaign.kills import Kills
from campaign.ledgers import Ledgers
from campaign.mutants import Mutants
from campaign.outcomes import Baselines
from campaign.properties import Properties
from campaign.soak import Soak
from campaign.trials import Part
from campaign.worlds import World

ALONE = {"mutants", "fuzz", "audits", "ledgers", "properties"}
"""Parts that compare with no undisturbed command."""

RUNS = {"conditions", "soak"}
"""Parts that compare with releases only."""


def parts_of(
    world: World, folder: Path, names: Sequence[str], *, quick: bool, minutes: float = 60
) -> list[Part]:
    """Those of some names, all where there is none; trials work below the folder of the campaign, and all readers together are fuzzed for some minutes."""
    alone, few = (bool(names) and set(names) <= one for one in (ALONE, ALONE | RUNS))
    needed = None if alone else "run " if few else ""
    baselines = Baselines(world, folder / "baseline", quick=quick or few, needed=needed)
    child.settle()
    parts: list[Part] = [Kills(baselines)]
    library = os.environ.get("CAMPAIGN_SHIM")
    shim = Shim(Path(library)) if library else None
    if shim is not None:
        parts.append(Faults(baselines, shim, folder))
    parts += [Conditions(baselines, shim), Ledgers(baselines, folder, quick=quick)]
    parts += [
        BadInput(baselines, folder),
        Soak(baselines, releases=20 if quick else 200),
        Mutants(quick=quick),
    ]
    parts += [Audits(quick=quick), Properties()]
    parts.append(Fuzz(world.folder, folder, minutes=minutes, quick=quick))
    unknown = set(names) - {part.name for part in parts}
    if unknown:
        raise SystemExit(
            f"no such part: {', '.join(sorted(unknown))}; parts: {', '.join(part.name for part in parts)}"
        )
    return [part for part in parts if not names or part.name in names]
