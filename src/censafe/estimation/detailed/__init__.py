"""Public arithmetic on measurements: totals, areas with the same blocks, suppression flags.

What enters are measurements, which are public. Everything here is a deterministic function of them and of public
geography, costs no privacy budget and can be repeated with other options.
"""

from censafe.estimation.detailed.area_classes import AreaClasses, area_classes, read_block_list
from censafe.estimation.detailed.coterminous import coterminous
from censafe.estimation.detailed.totals import flag_contradictions, nonnegative, totals

__all__ = [
    "AreaClasses",
    "area_classes",
    "coterminous",
    "flag_contradictions",
    "nonnegative",
    "read_block_list",
    "totals",
]
