"""Every writer of results that know their noise asks whether they may be published."""

import ast
import re

from censafe.model.groups import FlaggedGroups, GroupEstimates, GroupMeasurements
from censafe.model.measurements import Measurements, PublishedQuery, is_run_result
from censafe.model.topdown.level_measurements import LevelMeasurements
from censafe.publication.certificate.levels import LevelFacts
from censafe.publication.measurements.final_levels import FinishedLevel
from support.sources import modules

RESULTS = (
    Measurements, PublishedQuery, GroupMeasurements, GroupEstimates, FlaggedGroups, LevelMeasurements, FinishedLevel, LevelFacts,
)  # fmt: skip


def functions() -> dict[str, dict[str, ast.FunctionDef]]:
    """Functions of every module of the room, by module and name."""
    room = "publication/"
    return {
        name.removeprefix(room): {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        for name, tree in modules()
        if name.startswith(room)
    }


def reached(name: str, own: dict[str, ast.FunctionDef]) -> set[str]:
    """Names that a function or what it calls in its module mentions."""
    found: set[str] = set()
    ahead = [name]
    while ahead:
        node = own[ahead.pop()]
        names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} - found
        found |= names
        ahead += [one for one in names if one in own]
    return found


def takes_results(node: ast.FunctionDef) -> bool:
    given = [*node.args.args, *node.args.kwonlyargs]
    words = {
        word for one in given if one.annotation for word in re.findall(r"\w+", ast.unparse(one.annotation))
    }
    return bool(words & {one.__name__ for one in RESULTS})


def test_writers_of_results_ask_before_they_write() -> None:
    writers = [
        (module, name)
        for module, own in functions().items()
        for name, node in own.items()
        if name.startswith("write") and takes_results(node)
    ]
    assert len(writers) >= 10
    free = [
        (module, name)
        for module, name in writers
        if "require_publishable" not in reached(name, functions()[module])
    ]
    assert free == []


def test_the_statement_of_a_certificate_asks_too() -> None:
    own = functions()["certificate/page.py"]
    assert [name for name in own if "require_publishable" in reached(name, own)]


def test_results_are_of_exactly_these_types() -> None:
    for kind in RESULTS:
        assert is_run_result(kind.__new__(kind))
        own = type("Own", (kind,), {})
        assert not is_run_result(own.__new__(own))
