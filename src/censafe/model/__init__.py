"""Value types that travel between rooms.

Every room may import this package; it imports only ``errors``. Nothing here opens data,
draws noise or spends budget.
"""

from censafe.model.counts import ExactCounts
from censafe.model.domain import Axis, KeyDomain
from censafe.model.groups import GroupBlock, GroupLevel, GroupMeasurements, GroupSource, TableVariant
from censafe.model.laws import NoiseLaw
from censafe.model.measurements import Measurements
from censafe.model.plan import PartPlan, QueryPlan, ReleasePlan
from censafe.model.published import PublishedQuery
from censafe.model.schema import Attribute, CellQuery, Recode, Schema, make_query
from censafe.model.sparse import ExactHistograms, SparseLevel
from censafe.model.terms import Definition, Neighbours, ProtectedUnit

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
