"""What every table product brings to the flow of evaluations and true tables, by its name on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from censafe.evaluation.tables.flow import TableProduct
from censafe.evaluation.tables.groups.findings import GroupTrials
from censafe.evaluation.tables.groups.truth import GroupTruth
from censafe.evaluation.tables.phsafe.trials import PhsafeTrials
from censafe.evaluation.tables.phsafe.truth import PhsafeTruth
from censafe.products.detailed.keys import Product


def _groups(product: Product) -> TableProduct:
    return TableProduct(product, product, partial(GroupTrials.of, product), partial(GroupTruth.of, product))


TABLE_PRODUCTS: Final[Mapping[str, TableProduct]] = {
    "phsafe": TableProduct("phsafe", "PHSafe", PhsafeTrials.of, PhsafeTruth.of),
    "safetab-p": _groups("safetab-p"),
    "safetab-h": _groups("safetab-h"),
}
