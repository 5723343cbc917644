"""Public arithmetic on measurements: totals, areas with the same blocks, marks.

What enters are measurements, which are public. Everything here is a deterministic function of them and of public
geography, costs no privacy budget and can be done again with other options.
"""

from censafe.estimation.detailed.coterminous import coterminous
from censafe.estimation.detailed.same_blocks import AreaClasses, read_block_list, same_blocks
from censafe.estimation.detailed.suppression import mark_x
from censafe.estimation.detailed.totals import nonnegative, totals

__all__ = [
    "AreaClasses",
    "coterminous",
    "mark_x",
    "nonnegative",
    "read_block_list",
    "same_blocks",
    "totals",
]
