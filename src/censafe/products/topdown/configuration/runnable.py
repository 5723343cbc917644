"""What of a configuration only a run can do: neither an evaluation nor an estimate from public files."""

from __future__ import annotations

from censafe.errors import UsageError
from censafe.products.topdown.configuration.config import TopdownConfig


def require_free(config: TopdownConfig, what: str) -> None:
    """Refuse a configuration whose histograms are held to other results, before any file is opened."""
    found = []
    for histogram in config.histograms:
        if histogram.constraints:
            names = ", ".join(one.name for one in histogram.constraints)
            found.append(f"the constraints {names} of {histogram.name}")
    found += [f"the joint estimation of {stack.name}" for stack in config.stacks if len(stack.histograms) > 1]
    if found:
        raise UsageError(
            f"{config.origin}: {what} cannot take this configuration yet, because of {'; '.join(found)}. Nothing was read, and nothing "
            "was spent. 'censafe run' can, 'censafe plan' shows costs and noise, and 'censafe replicate' estimates the error of a finished run."
        )
