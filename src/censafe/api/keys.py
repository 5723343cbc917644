"""The keys of configurations as a table, for the command line, the documentation and notebooks."""

from __future__ import annotations

from dataclasses import asdict

from censafe.api.frames import Frame
from censafe.errors import UsageError

__all__ = ["configuration_keys"]


def configuration_keys(product: str) -> Frame:
    """Every key that a configuration of a product may have, one row each.

    Args:
        product: ``phsafe``, ``safetab-p``, ``safetab-h`` or ``topdown``.

    Returns:
        Text columns ``key`` (with dots; capitals stand for any name), ``bureau`` (the Bureau's key, where it differs), ``kind``,
        ``allowed``, ``default``, ``unit``, ``meaning``, ``example``, and ``settable``: whether ``--set`` changes it.

    Raises:
        UsageError: there is no such product.

    Source: the types that read configurations; the Bureau's keys are those of its released code.

    Example:
        >>> keys = configuration_keys("phsafe").arrow.to_pylist()
        >>> [(row["key"], row["default"]) for row in keys if row["kind"] == "word"]
        [('privacy_definition', ''), ('reader', ''), ('sensitivity', 'bureau')]
    """
    import pyarrow as pa

    from censafe.products.configuration.described import described_keys
    from censafe.products.registry import PLANNERS, fields_of

    if product not in PLANNERS:
        raise UsageError(f"there is no product {product!r}; products are {', '.join(PLANNERS)}")
    return Frame(pa.Table.from_pylist([asdict(one) for one in described_keys(product, fields_of(product))]))
