"""The mark of a synthetic population is written before the folder has its name: there is no population without it."""

import errno
from pathlib import Path

import pytest

import censafe
from censafe.errors import StorageError
from censafe.population.synthetic import writing
from censafe.population.synthetic.mark import MARK


@pytest.mark.parametrize("layout", ["phsafe", "pl94", "dhc", "cef"])
def test_a_population_whose_mark_cannot_be_written_is_not_there(
    layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    with monkeypatch.context() as patch:

        def full(folder: Path) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        patch.setattr(writing, "write_mark", full)
        with pytest.raises(StorageError, match="nothing was left under this name"):
            censafe.synthesize(out, persons=300, states=["44"], layout=layout)
        assert list(tmp_path.iterdir()) == []
    censafe.synthesize(out, persons=300, states=["44"], layout=layout)
    assert (out / MARK).is_file()
