import pytest


@pytest.fixture
def path(tmp_path):
    """Where a ledger may be begun."""
    return tmp_path / "censafe-ledger.jsonl"
