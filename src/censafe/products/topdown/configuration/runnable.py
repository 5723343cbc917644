"""What of a configuration only a run can do: neither an evaluation nor an estimate from public files."""

from __future__ import annotations

from censafe.errors import UsageError
from censafe.products.topdown.configuration.config import TopdownConfig


def require_free(config: TopdownConfig, what: str) -> None:
    """Refuse a configuration whose histograms are held to other results, before any file is opened."""
    causes = []
    for histogram in config.histograms:
        if histogram.constraints:
            names = ", ".join(one.name for one in histogram.constraints)
            causes.append(f"the constraints {names} of {histogram.name}")
    causes += [
        f"the joint estimation of {stack.name}" for stack in config.stacks if len(stack.histograms) > 1
    ]
    if causes:
        raise UsageError(
            f"{config.origin}: {what} cannot take this configuration yet, because of {'; '.join(causes)}. Nothing was read, and nothing "
            "was spent. 'censafe run' can, 'censafe plan' shows costs and noise, and 'censafe replicate' estimates the error of a finished run."
        )
