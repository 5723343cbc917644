"""THE DOOR. Budgets, noise laws, samplers, mechanisms, ledger, accounting.

Only exact counts, plans and keys enter; only noisy measurements, and statements about their noise and its cost, leave.
The room imports ``model`` and ``errors`` and nothing else of the package. No noise is drawn before its cost is in the
ledger, and no float stands between a budget's text and its fraction.
"""

from censafe.privacy.keys.keys import ReleaseKey, TestKey, derive_part_key, keyed_commitment
from censafe.privacy.ledger.book import (
    Ledger,
    LedgerReport,
    Reservation,
    RunRecord,
    Settlement,
    read_entries,
    verify,
)
from censafe.privacy.loss.accountant import compose, derive_totals
from censafe.privacy.loss.budget import (
    NotFinite,
    load_json_exact,
    load_toml_exact,
    parse_budget,
    parse_fraction,
)
from censafe.privacy.loss.conversions import Epsilons, epsilons
from censafe.privacy.loss.margins import (
    MarginRule,
    bureau_report_margin,
    exact_coverage,
    exact_margin,
    margin_for_rho,
    one_sided_threshold,
    paper_margin,
    pure_margin,
    rho_for_margin,
)
from censafe.privacy.loss.promises import group_loss, implied_rho
from censafe.privacy.measure.mechanisms import measure, require_release
from censafe.privacy.noise.variance import exact_variance, reference_variance

__all__ = [
    "Epsilons",
    "Ledger",
    "LedgerReport",
    "MarginRule",
    "NotFinite",
    "ReleaseKey",
    "Reservation",
    "RunRecord",
    "Settlement",
    "TestKey",
    "bureau_report_margin",
    "compose",
    "derive_part_key",
    "derive_totals",
    "epsilons",
    "exact_coverage",
    "exact_margin",
    "exact_variance",
    "group_loss",
    "implied_rho",
    "keyed_commitment",
    "load_json_exact",
    "load_toml_exact",
    "margin_for_rho",
    "measure",
    "one_sided_threshold",
    "paper_margin",
    "parse_budget",
    "parse_fraction",
    "pure_margin",
    "read_entries",
    "reference_variance",
    "require_release",
    "rho_for_margin",
    "verify",
]
