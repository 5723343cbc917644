"""What of a configuration can be planned and not yet run."""

from __future__ import annotations

from censafe.errors import UsageError
from censafe.products.topdown.configuration.config import TopdownConfig

__all__ = ["missing_for_run", "require_runnable"]


def missing_for_run(config: TopdownConfig) -> tuple[str, ...]:
    """What the configuration asks for that no run can do yet, as phrases.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> missing_for_run(load_config("pl94-us"))
        ()
    """
    found = []
    for histogram in config.histograms:
        if histogram.constraints:
            names = ", ".join(one.name for one in histogram.constraints)
            found.append(f"the constraints {names} of {histogram.name}")
    found += [f"the joint estimation of {stack.name}" for stack in config.stacks if len(stack.histograms) > 1]
    return tuple(found)


def require_runnable(config: TopdownConfig) -> None:
    """Refuse a configuration that can be planned only, before any file is opened.

    Raises:
        UsageError: names what is missing.
    """
    missing = missing_for_run(config)
    if missing:
        raise UsageError(
            f"{config.origin}: this version plans the configuration and cannot run it yet. What no run can do: {'; '.join(missing)}. "
            "Nothing was read, and nothing was spent. 'censafe plan' shows costs, noise and order of the estimation; "
            "'censafe configs' lists the configurations that can be run, such as pl94-us."
        )
