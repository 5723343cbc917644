"""The parts of the campaign."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from campaign import child
from campaign.child import Shim
from campaign.corruptions import BadInput
from campaign.faults import Faults
from campaign.fuzz.part import Fuzz
from campaign.kills import Kills
from campaign.mutants import Mutants
from campaign.outcomes import Baselines
from campaign.soak import Soak
from campaign.trials import Part
from campaign.worlds import World


def parts_of(
    world: World, folder: Path, names: Sequence[str], *, quick: bool, minutes: float = 60
) -> list[Part]:
    """Those of the given names; all, where none is given.

    Args:
        world: inputs and commands.
        folder: of the campaign; trials work below it.
        names: of parts.
        quick: whether for the short form.
        minutes: of fuzzing, all readers together.
    """
    baselines = Baselines(world, folder / "baseline", quick=quick)
    child.settle()
    parts: list[Part] = [Kills(baselines)]
    if library := os.environ.get("CAMPAIGN_SHIM"):
        parts.append(Faults(baselines, Shim(Path(library)), folder))
    parts += [
        BadInput(baselines, folder),
        Soak(baselines, releases=20 if quick else 200),
        Mutants(quick=quick),
    ]
    parts.append(Fuzz(world.folder, folder, minutes=minutes, quick=quick))
    unknown = set(names) - {part.name for part in parts}
    if unknown:
        raise SystemExit(
            f"no such part: {', '.join(sorted(unknown))}; parts: {', '.join(part.name for part in parts)}"
        )
    return [part for part in parts if not names or part.name in names]
