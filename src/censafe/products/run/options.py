"""What an operator chooses for one run, apart from the configuration: options, and names of areas that the run stores."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, Self

from censafe.model import ReleasePlan
from censafe.model.engine import EngineChoice
from censafe.model.observer import Observer, SilentObserver
from censafe.publication.atomic import atomic_text
from censafe.publication.manifest import Manifest, verify_outputs


def stored_names(
    named: Path | None, out: Path, manifest: Manifest, *, census: bool = True
) -> Mapping[str, str]:
    """Names for published files that are rewritten: those of a new file, else those that the run stored."""
    from censafe.geography.identifiers import NAMES, read_area_names

    if named is not None:
        return read_area_names(named, census=census)
    if NAMES not in manifest.outputs:
        return {}
    verify_outputs(out, replace(manifest, parts=(), outputs={NAMES: manifest.outputs[NAMES]}))
    return read_area_names(out / NAMES, census=census)


def write_names(staging: Path, names: Mapping[str, str], *, census: bool = True) -> tuple[Path, ...]:
    """Keep names beside what is published, where there are any; the files written."""
    from censafe.geography.identifiers import NAMES, names_text

    if not names:
        return ()
    atomic_text(staging / NAMES, names_text(names, census=census))
    return (staging / NAMES,)


Checks = Literal["full", "strict", "off"]
NO_TABLES: Final = ("none",)
"""What stands for no estimated tables, where a product would estimate some."""


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class ReadOptions:
    """How the confidential input is read and checked.

    Args:
        checks: ``full`` warns where records disagree, ``strict`` stops there too, ``off`` (truth
            only) checks nothing.
        examples: a private file for the keys of offending records, which must not be there yet; None for none.
        t1: where SafeTab-H finds the totals of population groups, when not in the data folder; None otherwise.
        water_blocks: a public list of blocks without land, which do not make two areas differ; None for none.
        results: run folders of the published results that TopDown holds to, or folders of their microdata, by the name of the result.
        scratch: where the private folder for files with records is made; None for beside the data.
        memory: limit of the relational engine, for example ``6GB``; None for the engine's default.
    """

    checks: Checks = "full"
    examples: Path | None = None
    threads: int | None = None
    scratch: Path | None = None
    memory: str | None = None
    t1: Path | None = None
    water_blocks: Path | None = None
    results: Mapping[str, Path] = field(default_factory=dict)
    engine: EngineChoice = field(default_factory=EngineChoice)
    observer: Observer = field(default_factory=SilentObserver)

    def connect(self, scratch: Path) -> Any:
        """The engine that counts, with its files in a private folder."""
        from censafe.tabulation.engine import connect

        folder = scratch / "engine"
        return connect(
            folder, threads=self.threads, memory=self.memory, choice=self.engine, observer=self.observer
        )


@dataclass(frozen=True)
class CitedRun:
    """A finished release that a run cites, as far as its cost is concerned.

    Args:
        head: the hash of that ledger which its manifest names; None where none is stated.
    """

    plan: ReleasePlan
    run: str
    files: Mapping[str, tuple[str, str]] = field(repr=False)
    head: str | None
    stated: str

    @classmethod
    def of(cls, manifest: Manifest) -> Self:
        """The run of a manifest; estimates from measurements of others are named by their plan."""
        outputs = sha256(
            "\n".join(f"{path} {value}" for path, value in sorted(manifest.outputs.items())).encode()
        )
        files = {part.name: ("manifest.json", outputs.hexdigest()) for part in manifest.plan.parts}
        files |= {part.name: (part.file, part.sha256) for part in manifest.parts}
        head = manifest.ledger.head if manifest.ledger else None
        return cls(manifest.plan, manifest.run or manifest.plan.digest()[:16], files, head, "its manifest")


@dataclass(frozen=True)
class RunOptions:
    """How a release is paid for and where its noise comes from.

    Args:
        ledger: the ledger file; None for ``$CENSAFE_LEDGER``, else ``censafe-ledger.jsonl`` in the folder that holds the data.
        new_ledger: make the ledger where none was named and there is none yet.
        ledger_of: the ledger that paid for a cited result, by the name of the result; None where its manifest alone is believed. Its cost is
            carried into this run's ledger.
        cited: finished runs that this one cites, by the name of the result; their cost must be in the ledger of this run.
        dataset: name of an account that all files ever charged under it share; None for none.
        cap: most that the files, and all that are linked with them, may ever spend; None for this plan plus what was spent
            before. It binds later runs, too.
        spend_more: continue although some of the files were charged before; or the runs that may have charged them.
        key_dir: folder that keeps the noise key until the run is complete, or None for memory only.
        test_key: seed of a test key; the run then spends nothing and is stamped as not private.
        published_data: whether the input was published before, or made from what was: the run is stamped as a demonstration.
        confidence: level of the margins of error in the tidy output and the certificate.
        workers: threads of the estimation, where a product uses any; results do not depend on them.
        names: file with names of areas, for the published files; None for none.
        tables: census tables that topdown estimates with their standard deviations; None for those of the product.
        areas: list of blocks with a column for each kind of areas that they are estimated for; None for the areas of the product.
    """

    ledger: Path | None = None
    new_ledger: bool = False
    ledger_of: Mapping[str, Path | None] = field(default_factory=dict)
    cited: Mapping[str, CitedRun] = field(default_factory=dict)
    dataset: str | None = None
    cap: Fraction | None = None
    raise_cap: bool = False
    spend_more: bool | frozenset[str] = False
    strict_ledger: bool = False
    key_dir: Path | None = None
    test_key: int | None = None
    published_data: bool = False
    confidence: Fraction = Fraction(9, 10)
    workers: int = field(default_factory=lambda: min(2, cores()))
    names: Path | None = None
    tables: tuple[str, ...] | None = None
    areas: Path | None = None


@dataclass(frozen=True)
class IntervalOptions:
    """Which intervals of estimates and published counts are made beside them.

    Args:
        queries: names of queries or tables; none for those that the product is read by.
        areas: table of the blocks of further areas, such as places or districts; None without.
        simulations: further runs on the published counts; 0 for no intervals of these.
    """

    queries: tuple[str, ...] = ()
    areas: Path | None = None
    confidences: tuple[Fraction, ...] = (Fraction(9, 10), Fraction(19, 20))
    simulations: int = 10
    seed: int = 0


@dataclass(frozen=True)
class EstimateOptions:
    """What changes when published tables are rewritten from stored measurements.

    Args:
        confidence: level of the margins of error in the tidy output and the certificate.
        data: the geography file or its folder, where it is needed; no other file there is opened.
        config: configuration or folder with the parameter files, where they are not the shipped ones.
        workers: threads of the estimation of topdown and phsafe; results do not depend on them.
        names: file with names of areas, for the published files; None for those that the run keeps.
        solver: solves the parents of topdown in the place of ours, as :class:`censafe.ParentSolver` says; None for ours.
        results: folders of published results by name, to which an estimate of topdown from public files holds.
        state: FIPS code of the state whose public files alone topdown reads; None for all.
        tables: census tables that topdown estimates with their standard deviations, and nothing else; None for none.
        areas: list of blocks with a column for each kind of areas that these are estimated for; None for the areas of the product.
    """

    confidence: Fraction
    settings: Mapping[str, str] = field(default_factory=dict)
    data: Path | None = None
    config: str | None = None
    workers: int = field(default_factory=lambda: min(2, cores()))
    observer: Observer = field(default_factory=SilentObserver)
    intervals: IntervalOptions | None = None
    names: Path | None = None
    solver: Callable[[Any], Any] | None = None
    results: Mapping[str, Path] = field(default_factory=dict)
    state: str | None = None
    tables: tuple[str, ...] | None = None
    areas: Path | None = None
