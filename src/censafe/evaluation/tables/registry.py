"""What every table product brings to the flow of evaluations and true tables, by its name on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from censafe.evaluation.tables.flow import TableProduct
from censafe.evaluation.tables.group_accuracy import group_trials
from censafe.evaluation.tables.groups import group_truth
from censafe.evaluation.tables.phsafe import phsafe_trials, phsafe_truth
from censafe.products.detailed.config import Product

_DETAILED: Final[tuple[Product, ...]] = ("safetab-p", "safetab-h")
TABLE_PRODUCTS: Final[Mapping[str, TableProduct]] = {
    "phsafe": TableProduct("phsafe", "PHSafe", phsafe_trials, phsafe_truth),
    **{
        product: TableProduct(product, product, partial(group_trials, product), partial(group_truth, product))
        for product in _DETAILED
    },
}
