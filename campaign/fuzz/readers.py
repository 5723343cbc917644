"""Every reader of the program: a valid input, the file that is spoiled, and the call that reads it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from campaign.fuzz.mutations import of_bytes, of_json, of_ledger, of_parquet, of_text, of_toml
from campaign.fuzz.reader import Reader, copied
from campaign.fuzz.records import readers_of_records
from censafe import configuration, plan
from censafe.attack.reading import read_people
from censafe.evaluation.files.microdata import read_district_microdata, read_microdata
from censafe.model.topdown.histograms import HistogramSchema
from censafe.privacy.keys.commitments import load_key
from censafe.privacy.keys.run_keys import ReleaseKey
from censafe.privacy.ledger.book import Ledger
from censafe.privacy.ledger.report import verify
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.plan import workloads
from censafe.products.topdown.public.files import open_files
from censafe.publication.manifest import read_manifest
from censafe.publication.measurements.final_levels import read_finished_level
from censafe.publication.measurements.geography import read_exact_totals, read_geography
from censafe.publication.measurements.groups import read_group_measurements
from censafe.publication.measurements.vectors import read_measurements
from censafe.publication.microdata.histograms import histogram_schema
from censafe.publication.tables.noisy import read_noisy_table
from support.ledgers import make_plan, spend


def readers(world: Path) -> tuple[Reader, ...]:
    """All of them.

    Args:
        world: inputs and finished runs of the campaign.
    """
    return (
        *readers_of_records(world),
        *_measurements(world),
        *_published(world),
        *_books(world),
        *_configurations(world),
    )


def _measurements(world: Path) -> Iterable[Reader]:
    run = world / "finished"
    yield Reader(
        "measurements of PHSafe",
        copied(run / "phsafe" / "measurements"),
        "PH4.parquet",
        _vectors,
        of_parquet,
        False,
    )
    yield Reader(
        "measurements of SafeTab",
        copied(run / "safetab-p" / "measurements"),
        "usa_2.parquet",
        _groups,
        of_parquet,
        False,
    )
    files = copied(run / "e2e-1940" / "measurements")
    county = "US_Person_1940_E2E/County.parquet"
    for kind in ("DPQuery", "Constraint"):
        yield Reader(
            f"noisy measurement files, {kind}",
            files,
            f"{county}/{kind}/State=01/part-00000.parquet",
            _noisy,
            of_parquet,
            False,
        )
    yield Reader(
        "noisy measurement files, geography", files, "geography.parquet", _geography, of_parquet, False
    )
    yield Reader("noisy measurement files, totals", files, "exact_totals.csv", _totals, of_text(","), False)
    if (run / "dhc").exists():
        yield Reader(
            "final histograms of the DHC",
            copied(run / "dhc" / "measurements"),
            "persons_County.parquet",
            _level,
            of_parquet,
            False,
        )


def _vectors(folder: Path) -> None:
    read_measurements(folder / "PH4.parquet")


def _groups(folder: Path) -> None:
    read_group_measurements(folder / "usa_2.parquet")


def _level(folder: Path) -> None:
    read_finished_level(folder / "persons_County.parquet")


def _geography(folder: Path) -> None:
    read_geography(folder / "geography.parquet")


def _totals(folder: Path) -> None:
    read_exact_totals(folder / "exact_totals.csv")


def _noisy(folder: Path) -> None:
    config = load_config("e2e-1940")
    files = open_files(config, folder, read_exact_totals(folder / "exact_totals.csv"))
    for load in workloads(config):
        files.read(load)


def _published(world: Path) -> Iterable[Reader]:
    run, pipe = world / "finished", of_text("|")
    schema = load_config("e2e-1940").histograms[0].schema
    for name in ("persons", "units"):
        read = partial(_districts, schema)
        yield Reader(
            f"microdata of 1940, {name}",
            copied(run / "e2e-1940" / "microdata"),
            f"{name}.txt",
            read,
            pipe,
            False,
        )
    redistricting = run / "dhc-redistricting"
    if redistricting.exists():
        schema = load_config("pl94-us").histograms[0].schema
        yield Reader(
            "microdata of the redistricting data",
            copied(redistricting / "microdata"),
            "persons.txt",
            partial(_blocks, schema),
            pipe,
            False,
        )
        yield Reader(
            "microdata of the DHC", copied(run / "dhc" / "microdata"), "persons.txt", _people, pipe, False
        )
    yield Reader(
        "records of the DHC for an attack",
        copied(world / "dhc" / "data"),
        "persons.parquet",
        read_people,
        of_parquet,
    )
    yield Reader("tables of PHSafe", copied(run / "phsafe" / "tables"), "PH4/PH4.csv", _table, pipe, False)
    yield Reader(
        "histograms",
        copied(run / "e2e-1940" / "histograms"),
        "persons_County.parquet",
        _schema_of,
        of_parquet,
        False,
    )


def _districts(schema: HistogramSchema, folder: Path) -> None:
    read_district_microdata(folder / "persons.txt", schema)


def _blocks(schema: HistogramSchema, folder: Path) -> None:
    read_microdata(folder / "persons.txt", schema)


def _people(folder: Path) -> None:
    read_people(folder / "persons.txt")


def _table(folder: Path) -> None:
    read_noisy_table("PH4", [folder / "PH4" / "PH4.csv"])


def _schema_of(folder: Path) -> None:
    histogram_schema(folder / "persons_County.parquet")


def _books(world: Path) -> Iterable[Reader]:
    yield Reader("ledger", _ledger, "ledger.jsonl", _read_ledger, of_ledger, False)
    yield Reader("ledger key", _ledger, "ledger.key", _read_ledger_key, of_bytes, False)
    yield Reader("run key", _run_key, "run.key", _read_run_key, of_bytes, False)
    for product in ("phsafe", "e2e-1940"):
        yield Reader(
            f"manifest {product}",
            copied(world / "finished" / product),
            "manifest.json",
            _manifest,
            of_json,
            False,
        )


def _ledger(folder: Path) -> None:
    spend(folder / "ledger.jsonl", make_plan())
    spend(folder / "ledger.jsonl", make_plan(), commit=False, spend_more=True)


def _read_ledger(folder: Path) -> None:
    verify(folder / "ledger.jsonl")
    with Ledger.open(folder / "ledger.jsonl", label="toy") as ledger:
        ledger.spent(ledger.accounts(["a" * 64]))
    for torn in folder.glob("*.torn*"):
        torn.unlink()


def _read_ledger_key(folder: Path) -> None:
    (folder / "ledger.key").chmod(0o600)
    load_key(folder / "ledger.key")


def _run_key(folder: Path) -> None:
    with ReleaseKey.from_system() as key:
        key.store(folder / "run.key")


def _read_run_key(folder: Path) -> None:
    ReleaseKey.load(folder / "run.key").close()


def _manifest(folder: Path) -> None:
    manifest = read_manifest(folder / "manifest.json")
    manifest.document()


def _configurations(world: Path) -> Iterable[Reader]:
    yield Reader(
        "JSON of PHSafe",
        _one(world / "config.json"),
        "config.json",
        partial(_priced, "phsafe", "config.json"),
        of_json,
        False,
    )
    for product in ("p", "h"):
        source = world / "safetab" / f"parameters_{product}"
        yield Reader(
            f"JSON of SafeTab-{product.upper()}",
            copied(source),
            "config.json",
            partial(_priced, f"safetab-{product}", "."),
            of_json,
            False,
        )
    import censafe.products as products

    place = Path(products.__path__[0])
    for product, name in (
        ("phsafe", "sdhc-us"),
        ("topdown", "e2e-1940"),
        ("topdown", "pl94-us"),
        ("topdown", "dhc-us"),
        ("topdown", "blocks-16"),
    ):
        source = place / product / "configs" / f"{name}.toml"
        yield Reader(
            f"TOML {name}",
            _one(source),
            f"{name}.toml",
            partial(_priced, product, f"{name}.toml"),
            of_toml,
            False,
        )


def _one(file: Path) -> Callable[[Path], None]:
    return lambda folder: shutil.copyfile(file, folder / file.name) and None


def _priced(product: str, name: str, folder: Path) -> str:
    return repr(plan(configuration(product, folder / name)).total)  # type: ignore[arg-type]
