"""The manifest of a run folder: what went in, what was done, what came out."""

from __future__ import annotations

import importlib.metadata
import json
import platform
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, TypeAlias

from censafe.errors import CheckError, StorageError, UsageError
from censafe.model import (
    Definition,
    Neighbors,
    NoiseLaw,
    PartPlan,
    ProtectedUnit,
    QueryPlan,
    ReleasePlan,
)
from censafe.model.parsing import parse_fraction, read_stored
from censafe.model.safe_text import stays_inside
from censafe.publication.atomic import IDENTITY, WORK, atomic_text, is_moving, sha256_file, sha256_path
from censafe.publication.measurements.sealed import DAMAGE
from censafe.publication.stamps import STAMP_NOTES, Stamp, stamp_of

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

_FORMAT = "censafe manifest 1"
EVALUATION = "evaluation.json"  # of a folder that compares with the truth, and has a manifest of another kind
FROM_FILES: Final = "public measurements"
"""What stands for the kind of key in the manifest of estimates from the files of others."""
PACKAGES: Final = (
    "censafe",
    "cryptography",
    "duckdb",
    "ibis-framework",
    "numba",
    "numpy",
    "pyarrow",
    "scipy",
)
"""Packages whose versions every manifest names: what reads, draws, solves and writes."""
_TEXTS = ("run", "dataset", "input_commitment", "checks", "created", "finished")
_OF_TEXTS = ("identity", "outputs", "versions")
_FLAGS = ("test_key", "published_data")
_PLAIN = (*_TEXTS, *_FLAGS, *_OF_TEXTS, "stages", "post_processing")
_NOTICE = (
    "The findings of the input checks are reported to the operator only, since numbers of records that violate a rule are exact "
    "facts about confidential records. Stage times depend on confidential records; the privacy guarantee does not cover them."
)


@dataclass(frozen=True)
class ConfigRecord:
    """The configuration of a run: where it came from, what was overridden, what it says in the end."""

    origin: str
    overrides: Mapping[str, str]
    settings: Mapping[str, Json]


@dataclass(frozen=True)
class LedgerRecord:
    """The ledger file and the SHA-256 of its last line when the manifest was written."""

    file: str
    head: str


@dataclass(frozen=True)
class PartRecord:
    """One committed part: its measurement file or folder, relative to the run folder, and the SHA-256 of its content."""

    name: str
    file: str
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """Everything a later reader needs about a run.

    Args:
        file_commitments: keyed commitment to every record file, never a plain hash; the accounts of the run in the ledger.
        test_key: whether the noise came from a test key; then the manifest is stamped.
        published_data: whether the input was published before, or made from what was; then the manifest is stamped, too.
        identity: plan digest, input commitment and kind of key; a second run into the folder must have the same.
        outputs: SHA-256 of every published file, by path relative to the run folder.
        post_processing: what was done after the measurements, with its options and how much it changed.
    """

    plan: ReleasePlan
    config: ConfigRecord
    dataset: str
    input_commitment: str
    ledger: LedgerRecord | None
    test_key: bool
    created: str
    published_data: bool = False
    finished: str = ""
    parts: tuple[PartRecord, ...] = ()
    run: str = ""
    identity: Mapping[str, str] = field(default_factory=dict)
    file_commitments: tuple[str, ...] = ()
    checks: str = "full"
    stages: Mapping[str, float] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    post_processing: Mapping[str, Json] = field(default_factory=dict)

    @property
    def stamp(self) -> Stamp | None:
        """Of a test key, or of published data; None for a release."""
        return stamp_of(test_key=self.test_key, published_data=self.published_data)

    def document(self) -> dict[str, Any]:
        """The manifest as JSON values."""
        document: dict[str, Any] = {
            "format": _FORMAT,
            "notice": _NOTICE,
            "stamp": self.stamp,
            "product": self.plan.product,
            "plan": json.loads(self.plan.canonical()),
            "plan_digest": self.plan.digest(),
            "total": {
                "kind": self.plan.definition.symbol,
                "exact": str(self.plan.total),
                "decimal": float(self.plan.total),
            },
            **{name: getattr(self, name) for name in (*_TEXTS, *_FLAGS)},
            **{name: dict(getattr(self, name)) for name in (*_OF_TEXTS, "stages")},
            "config": asdict(self.config),
            "ledger": asdict(self.ledger) if self.ledger else None,
            "file_commitments": list(self.file_commitments),
            "parts": [asdict(part) for part in self.parts],
        }
        if self.post_processing:
            document["post_processing"] = dict(self.post_processing)
        return document


def write_manifest(path: Path, manifest: Manifest) -> str:
    """Write the manifest as JSON with sorted keys and return the SHA-256 of the file."""
    text = json.dumps(manifest.document(), sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)
    return atomic_text(path, text + "\n")


def read_manifest(path: Path) -> Manifest:
    """Read a manifest back and check that its plan still has the digest beside it."""
    if not path.is_file() and is_moving(path.parent):
        raise StorageError(
            f"{path.parent}: another process is replacing files, or was stopped while doing so. Wait, or give the stopped command again."
        )
    if not path.is_file():
        raise StorageError(
            stopped_words(path.parent) or f"{path} is missing; {path.parent} is not a run folder"
        )
    if (path.parent / EVALUATION).is_file():
        raise UsageError(f"{path.parent} holds an evaluation; name the folder of a finished run")
    try:
        document = {"published_data": False, "post_processing": {}, **read_stored(path)}
        if document["format"] != _FORMAT:
            raise CheckError(f"{path}: format {document['format']!r}, this version reads {_FORMAT!r}")
        _require_kinds(document)
        ledger = document["ledger"]
        manifest = Manifest(
            plan=parse_plan(document["plan"]),
            config=ConfigRecord(**document["config"]),
            file_commitments=tuple(document["file_commitments"]),
            ledger=LedgerRecord(**ledger) if ledger else None,
            parts=tuple(PartRecord(**part) for part in document["parts"]),
            **{name: document[name] for name in _PLAIN},
        )
        named = (*manifest.outputs, *(part.file for part in manifest.parts))
        outside = sum(not stays_inside(name) for name in named)
        if outside:
            raise CheckError(
                f"{path}: {outside} of the files that it names would lie outside of the run folder; the file was changed by hand"
            )
        same = manifest.plan.digest() == document["plan_digest"]
    except DAMAGE as error:
        raise CheckError(
            f"{path} is not a manifest of censafe, or it was changed by hand; restore it from a copy"
        ) from error
    if not same:
        raise CheckError(
            f"{path}: the plan does not match its digest; the file was changed by hand; restore it from a copy"
        )
    return manifest


def stopped_words(folder: Path) -> str:
    """What a folder is in which a run or an estimate was stopped, and the command that continues it; empty for any other folder."""
    try:
        identity = dict(read_stored(folder / WORK / IDENTITY)["identity"])
    except (OSError, KeyError, TypeError, ValueError):
        return ""
    if "kind" in identity:
        command = "the command of this evaluation"
    elif identity.get("key") == FROM_FILES:
        state = f" --state {identity['state']}" if "state" in identity else ""
        command = f"its command, 'censafe estimate topdown CONFIG {folder} --measurements DIR{state}' with the options that it had,"
    else:
        command = f"its command, 'censafe run PRODUCT CONFIG DATA {folder}' with the options that it had,"
    return f"{folder}: what was begun here was stopped before it was complete; fix: give {command} again, which continues it"


def _require_kinds(document: Mapping[str, Any]) -> None:
    """TypeError where a value is of another type than the one that was written."""
    parts, config, ledger = document["parts"], document["config"], document["ledger"] or {}
    texts = [document[name] for name in _TEXTS]
    for name in _OF_TEXTS:
        texts += [*document[name].keys(), *document[name].values()]
    texts += [*document["file_commitments"], *ledger.values(), config["origin"]]
    texts += [value for part in parts for value in part.values()]
    mappings = [
        document["stages"],
        document["post_processing"],
        config["overrides"],
        config["settings"],
    ]
    flags = [document[name] for name in _FLAGS]
    for kind, values in ((str, texts), (dict, mappings), (bool, flags)):
        if not all(isinstance(value, kind) for value in values):
            raise TypeError(f"a value that is no {kind.__name__}")


def parse_plan(document: Mapping[str, Any]) -> ReleasePlan:
    """Rebuild a plan from the JSON values of :meth:`ReleasePlan.canonical`."""
    parts = tuple(
        PartPlan(
            part["name"],
            tuple(
                QueryPlan(
                    query["table"],
                    query["level"],
                    NoiseLaw(query["law"], parse_fraction(query["parameter"])),
                    parse_fraction(query["cost"]),
                )
                for query in part["queries"]
            ),
            tuple(tuple(group) for group in part.get("disjoint", ())),
            Fraction(part.get("factor", "1")),
        )
        for part in document["parts"]
    )
    return ReleasePlan(
        product=document["product"],
        definition=Definition(document["definition"]),
        neighbors=Neighbors(document["neighbors"]),
        unit=ProtectedUnit(document["unit"]),
        other_losses={
            Neighbors(relation): Fraction(loss) for relation, loss in document["other_losses"].items()
        },
        parts=parts,
        settings=document["settings"],
        joint=document.get("joint", False),
    )


def hash_outputs(
    folder: Path, files: Iterable[Path], known: Mapping[Path, str] | None = None, *, workers: int = 1
) -> dict[str, str]:
    """SHA-256 of published files, by path relative to the run folder."""
    ordered, digests = sorted(files), dict(known or {})
    others = [path for path in ordered if path not in digests]
    with ThreadPoolExecutor(workers) as pool:
        digests |= zip(others, pool.map(sha256_file, others), strict=True)
    return {path.relative_to(folder).as_posix(): digests[path] for path in ordered}


def verify_outputs(folder: Path, manifest: Manifest) -> None:
    """Check that measurement files and published files are those that the manifest names."""
    expected = {**manifest.outputs, **{part.file: part.sha256 for part in manifest.parts}}
    problems = {
        name: "changed" if (folder / name).exists() else "missing"
        for name, digest in sorted(expected.items())
        if not (folder / name).exists() or sha256_path(folder / name) != digest
    }
    if problems:
        listed = "\n".join(f"  {name}: {words}" for name, words in problems.items())
        fix = (
            "restore them from a copy; nothing makes measurements again"
            if any(part.file in problems for part in manifest.parts)
            else f"restore them from a copy, or let 'censafe estimate {folder}' make them again"
        )
        raise CheckError(f"files in {folder} are not those of its manifest; {fix}:\n{listed}")


def require_nothing_else(folder: Path, manifest: Manifest) -> None:
    """Check that a finished run folder holds nothing but what its manifest names."""
    parts = {part.file for part in manifest.parts}
    known = {*manifest.outputs, *parts, "manifest.json"}
    note = STAMP_NOTES[manifest.stamp][0] if manifest.stamp else ""
    names = (
        path.relative_to(folder)
        for path in folder.rglob("*")
        if path.is_symlink() or not (path.is_dir() or path.name == note)
    )
    strange = sorted(
        name.as_posix()
        for name in names
        if name.parts[0] != WORK
        and name.as_posix() not in known
        and parts.isdisjoint(parent.as_posix() for parent in name.parents)
    )
    if strange:
        listed = "\n".join(f"  {name}" for name in strange)
        raise CheckError(
            f"{folder} is finished, and holds files that are not of the run. Nobody checked whether they may be published; "
            f"remove them:\n{listed}"
        )


def software_versions(packages: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Versions of Python and of packages, those that are installed."""
    versions = {"python": platform.python_version()}
    for name in packages:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions
