"""Value types that travel between rooms.

Every room may import this package; it imports only ``errors``. Nothing here opens data,
draws noise or spends budget.
"""

from censafe.model.counts import Axis, ExactCounts, KeyDomain
from censafe.model.groups.levels import GroupBlock, GroupLevel, GroupMeasurements, GroupSource, TableVariant
from censafe.model.laws import NoiseLaw
from censafe.model.measurements import Measurements, PublishedQuery
from censafe.model.plan import Definition, Neighbours, PartPlan, ProtectedUnit, QueryPlan, ReleasePlan
from censafe.model.schema import Attribute, CellQuery, Recode, Schema, make_query
from censafe.model.sparse import ExactHistograms, SparseLevel

__all__ = [
    "Attribute",
    "Axis",
    "CellQuery",
    "Definition",
    "ExactCounts",
    "ExactHistograms",
    "GroupBlock",
    "GroupLevel",
    "GroupMeasurements",
    "GroupSource",
    "KeyDomain",
    "Measurements",
    "Neighbours",
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
