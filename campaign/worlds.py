"""Small inputs of all products, and the commands that are tried on them."""

from __future__ import annotations

import importlib.util
import json
import shutil
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from campaign import child
from censafe import configuration
from censafe import plan as price
from support.commands import bureau_config, write_config
from support.phsafe_inputs import write_folder
from support.safetab_folders import write_folders
from support.topdown_inputs import write_1940

TEST = ("--test-key", "1")
ROOT = ("--set", "root=State")
_PARAMETERS = {"safetab-p": "parameters_p", "safetab-h": "parameters_h"}


@dataclass(frozen=True)
class Scenario:
    """One command that is tried."""

    name: str  # of the trial
    words: tuple[str, ...]  # of the command; OUT stands for its output, RUN for a copy of a finished run
    run: Path | None = None  # the finished run that it works on
    cost: Fraction | None = None  # of the plan, where it can be charged to a ledger
    slow: bool = False  # whether the short form leaves it out
    long: bool = False  # whether it takes seconds, so that it is drawn less often
    apart: bool = False  # whether it starts threads that no child may inherit, so that the warm process itself never runs it

    def command(self, box: Path, key: tuple[str, ...] = ()) -> list[str]:
        """The words for one trial."""
        places = {"OUT": str(box / "out"), "RUN": str(box / "out")}
        return [*(places.get(word, word) for word in self.words), *key]

    def prepare(self, box: Path) -> None:
        """Make the folder of a trial."""
        box.mkdir(parents=True)
        if self.run is not None:
            shutil.copytree(self.run, box / "out")


@dataclass
class World:
    """All inputs below one folder, which no command may change."""

    folder: Path  # holds them
    scenarios: dict[str, Scenario] = field(default_factory=dict)  # by name

    def add(self, name: str, words: tuple[str, ...], **about: Any) -> None:
        """One more command."""
        self.scenarios[name] = Scenario(name, words, **about)

    def inputs(self) -> dict[str, str]:
        """Contents of everything, to see that nothing was changed or left."""
        return child.digests(self.folder)


def build(folder: Path, *, quick: bool) -> World:
    """Write the inputs, unless an earlier start did, and finish the runs that other commands need; `quick` makes only what the short form needs."""
    world = World(folder)
    config = folder / "config.json"
    data = {name: folder / name / "data" for name in ("phsafe", "e2e", "dhc")}
    marks = folder / "complete.json"
    if not marks.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        write_folder(data["phsafe"])
        write_config(config, bureau_config())
        write_folders(folder / "safetab")
        write_1940(data["e2e"])
        words = ("--persons", 300, "--states", "44", "--layout", "dhc", "--seed", 1, "--quiet")
        _require(child.call("synth", data["dhc"], *words), "synth")
    p, h, tab = (
        folder / "safetab" / name for name in (_PARAMETERS["safetab-p"], _PARAMETERS["safetab-h"], "records")
    )
    runs = {
        "phsafe": ("phsafe", str(config), str(data["phsafe"]), ()),
        "safetab-p": ("safetab-p", str(p), str(tab), ()),
        "safetab-h": ("safetab-h", str(h), str(tab), ()),
        "e2e-1940": ("topdown", "e2e-1940", str(data["e2e"]), ()),
        "dhc": ("topdown", "dhc-us", str(data["dhc"]), ROOT),
    }
    for name, (product, chosen, source, options) in runs.items():
        words = ("run", product, chosen, source, "OUT", *options, "--quiet")
        settings = dict(option.split("=") for option in options[1::2])
        cost = price(configuration(product, chosen, settings)).total
        if name == "dhc":  # which makes the redistricting data first
            cost += price(configuration(product, "pl94-us", settings)).total
        world.add(f"run {name}", words, cost=cost, slow=name == "dhc", long=name == "dhc")
        finished = folder / "finished" / name
        if not marks.exists() and not (quick and name == "dhc"):
            _require(child.call(*words[:4], finished, *words[5:], *TEST), name)
    _others(world, config, data)
    _engines(world, runs)
    marks.write_text(json.dumps(sorted(world.scenarios)), encoding="utf-8")
    return world


def _engines(world: World, runs: dict[str, tuple[str, str, str, tuple[str, ...]]]) -> None:
    """Runs on Sail, where it is installed."""
    if importlib.util.find_spec("pysail") is None:
        return
    for name in ("phsafe", "safetab-p"):
        product, chosen, source, _ = runs[name]
        words = ("run", product, chosen, source, "OUT", "--engine", "sail", "--quiet")
        cost = world.scenarios[f"run {name}"].cost
        world.add(f"run {name} on sail", words, cost=cost, slow=True, apart=True)


def _others(world: World, config: Path, data: dict[str, Path]) -> None:
    finished = world.folder / "finished"
    for name in ("phsafe", "safetab-p", "safetab-h", "e2e-1940"):
        place = ("--config", str(world.folder / "safetab" / _PARAMETERS[name])) if name in _PARAMETERS else ()
        words = ("estimate", "RUN", *place, "--quiet")
        world.add(f"estimate {name}", words, run=finished / name, long=name == "phsafe")
    state = str(world.folder / "e2e")
    more = (
        ("evaluate phsafe", ("evaluate", "phsafe", str(config), str(data["phsafe"]), "OUT", "--trials", "1", "--quiet")),
        ("evaluate topdown", ("evaluate", "topdown", "e2e-1940", f"{state}/data", "OUT", "--runs", "1", "--workers", "1", "--quiet")),
        ("truth", ("truth", "phsafe", str(config), str(data["phsafe"]), "OUT", "--confidential", "--quiet")),
        ("synth", ("synth", "OUT", "--persons", "200", "--states", "44", "--layout", "all", "--quiet")),
        ("tables", ("tables", str(finished / "dhc"), "--geography", "county", "--out", "OUT")),
        ("attack", ("attack", "reconstruct", str(data["dhc"]), "OUT", "--workers", "1", "--quiet", "--no-variability")),
    )  # fmt: skip
    for name, words in more:
        long = name == "tables" or name.startswith("evaluate")
        world.add(name, words, slow=name == "tables", long=long)


def _require(code: int, name: str) -> None:
    if code:
        raise RuntimeError(f"the world could not be made: {name} ended with {code}")
