from pathlib import Path

import pytest

from censafe.model.closing import partial_file, partial_folder


def test_a_folder_that_is_put_together_vanishes_or_takes_its_name(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), partial_folder(tmp_path / "out") as partial:
        (partial / "x").write_text("x")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    with partial_folder(tmp_path / "out") as partial:
        partial.replace(tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_a_killed_process_left_is_removed_and_what_another_works_on_is_not(tmp_path: Path) -> None:
    dead = tmp_path / ".out.0a1b2c3d.partial"
    dead.mkdir()
    (dead / "x").write_text("x")
    other = tmp_path / ".other.0a1b2c3d.partial"
    other.mkdir()
    with partial_folder(tmp_path / "out") as first, partial_folder(tmp_path / "out") as second:
        assert not dead.exists()
        assert other.is_dir()
        assert first.is_dir()
        assert second.is_dir()
        assert first != second


def test_a_killed_process_leaves_files_that_the_next_one_removes(tmp_path: Path) -> None:
    dead, alike = tmp_path / ".t[1].csv.0a1b2c3d.partial", tmp_path / ".t[1].csv.notes.partial"
    dead.write_text("x")
    alike.write_text("x")
    with partial_file(tmp_path / "t[1].csv") as first, partial_file(tmp_path / "t[1].csv") as second:
        assert first.read_bytes() == b""
        assert second.is_file()
        second.replace(tmp_path / "t[1].csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == [alike.name, "t[1].csv"]


def test_an_interrupt_when_a_folder_has_just_been_made_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Path.mkdir

    def made(path: Path) -> None:
        original(path)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", made)
        with pytest.raises(KeyboardInterrupt), partial_folder(tmp_path / "out"):
            pass
    assert list(tmp_path.iterdir()) == []
