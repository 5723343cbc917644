"""The page of an evaluation, as its reader and its folder have it."""

from pathlib import Path

from support.commands import CommandLine


def page_from_files(censafe: CommandLine, folder: Path) -> str:
    """The page of a folder, after checking that it is confidential, self-contained, and comes again from the files alone.

    Args:
        censafe: the command line.
        folder: of a confidential evaluation.
    """
    names = ["report.html", *(f"figures/{path.name}" for path in (folder / "figures").iterdir())]
    before = {name: (folder / name).read_bytes() for name in names}
    assert all(b"CONFIDENTIAL" in drawn for drawn in before.values())
    for name in names:
        (folder / name).unlink()
    done = censafe("evaluate", "report", folder)
    assert done.code == 0, done.err
    assert before == {name: (folder / name).read_bytes() for name in names}
    page = before["report.html"].decode("utf-8")
    assert "<title>CONFIDENTIAL: " in page
    assert "<script" not in page
    for link in ('src="', "url(http", "@import", 'href="http'):
        assert link not in page
    return page
