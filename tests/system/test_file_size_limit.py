"""Where the system lets no file grow (``ulimit -f``), every verb says so, and what to do."""

import json
from pathlib import Path

import pytest

from censafe import synthesize
from support.apart import run_apart
from support.phsafe_inputs import write_folder

SCRIPT = """
import contextlib, io, json, resource, sys
sys.dont_write_bytecode = True  # Python would store half a module
from censafe.cli import main
commands = json.loads(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
found = []
for command in commands:
    sys.argv = ["censafe", *command]
    words = io.StringIO()
    with contextlib.redirect_stderr(words), contextlib.redirect_stdout(words):
        try:
            main()
        except SystemExit as end:
            found.append((end.code, words.getvalue()))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(json.dumps(found))
"""
VERBS = {
    "synth {}/new --persons 2000 --states 44": 1,
    "plan phsafe sdhc-us --xlsx {}/plan.xlsx": 1,
    "explore --out {}/page.html": 1,
    "validate phsafe {}/config.json {}/data": 1,
    "run phsafe {}/config.json {}/data {}/ph --ledger {}/ph.jsonl": 1,
    "run topdown pl94-us {}/blocks {}/pl --set root=State --test-key 1": 1,
    "truth phsafe {}/config.json {}/data {}/truth --confidential": 1,
    "evaluate phsafe {}/config.json {}/data {}/tables --trials 1": 1,
    "evaluate topdown pl94-us {}/blocks {}/topdown --runs 1 --set root=State": 1,
    "evaluate semantics phsafe sdhc-us {}/meaning": 1,
    "attack reconstruct {}/dhc {}/attack": 1,
    "attack rank {}/dhc {}/rank --steps 2 --generators 1": 1,
    "demo {}/demo --persons 1000": 1,
    "doctor": 0,
}


def test_every_verb_names_the_limit(tmp_path: Path, config: Path) -> None:
    write_folder(tmp_path / "data")
    for layout, folder in (("pl94", "blocks"), ("dhc", "dhc")):
        synthesize(tmp_path / folder, persons=300, states=("44",), layout=layout)
    before = sorted(tmp_path.iterdir())
    commands = [[word.replace("{}", str(tmp_path)) for word in words.split()] for words in VERBS]
    done = run_apart(SCRIPT, json.dumps(commands))
    assert done.code == 0, done.err
    for (words, code), (ended, printed) in zip(VERBS.items(), json.loads(done.out), strict=True):
        assert ended == code, (words, printed)
        assert ("ulimit -f" in printed) == bool(code), (words, printed)
    assert [
        path for path in sorted(tmp_path.iterdir()) if path not in before and "scratch" in path.name
    ] == []


@pytest.mark.parametrize(
    "text", ["IO Error: Could not write: No space left on device", "[errno 27] File too large"]
)
def test_reasons_in_the_text_of_a_library_are_told(text: str) -> None:
    from censafe.model.closing import DISK_FULL, TOO_LARGE, write_refusal

    assert write_refusal(RuntimeError(text)) in (DISK_FULL, TOO_LARGE)
    assert write_refusal(OSError(2, "No such file or directory")) == ""
