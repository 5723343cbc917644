"""Value types that travel between packages.

Every package may import this one; it imports only ``errors``. Nothing here opens data,
draws noise or spends budget. A name is loaded from its module when it is first used, so that a product loads the types
of its own data alone.
"""

from typing import TYPE_CHECKING

from censafe.lazy import lazy_names

if TYPE_CHECKING:
    from censafe.model.groups import (
        GroupBlock,
        GroupLevel,
        GroupMeasurements,
        GroupSource,
        TableVariant,
    )
    from censafe.model.measurements import Axis, ExactCounts, KeyDomain, Measurements, PublishedQuery
    from censafe.model.plan import (
        Definition,
        Neighbors,
        NoiseLaw,
        PartPlan,
        ProtectedUnit,
        QueryPlan,
        ReleasePlan,
    )
    from censafe.model.schema import Attribute, CellQuery, Factor, Recode, Schema, make_query
    from censafe.model.sparse import ExactHistograms, SparseLevel

_NAMES = {
    "groups": ("GroupBlock", "GroupLevel", "GroupMeasurements", "GroupSource", "TableVariant"),
    "measurements": ("Axis", "ExactCounts", "KeyDomain", "Measurements", "PublishedQuery"),
    "plan": ("Definition", "Neighbors", "NoiseLaw", "PartPlan", "ProtectedUnit", "QueryPlan", "ReleasePlan"),
    "schema": ("Attribute", "CellQuery", "Factor", "Recode", "Schema", "make_query"),
    "sparse": ("ExactHistograms", "SparseLevel"),
}

__all__ = [
    "Attribute",
    "Axis",
    "CellQuery",
    "Definition",
    "ExactCounts",
    "ExactHistograms",
    "Factor",
    "GroupBlock",
    "GroupLevel",
    "GroupMeasurements",
    "GroupSource",
    "KeyDomain",
    "Measurements",
    "Neighbors",
    "NoiseLaw",
    "PartPlan",
    "ProtectedUnit",
    "PublishedQuery",
    "QueryPlan",
    "Recode",
    "ReleasePlan",
    "Schema",
    "SparseLevel",
    "TableVariant",
    "make_query",
]

__getattr__ = lazy_names(__name__, _NAMES)
