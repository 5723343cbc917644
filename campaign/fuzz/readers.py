"""Every reader of the program: a valid input, the file that is spoiled, and the call that reads it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from campaign.fuzz.mutations import Change, of_bytes, of_json, of_ledger, of_parquet, of_text, of_toml
from campaign.fuzz.records import Reader, copied, readers_of_records
from censafe import configuration, plan
from censafe.attack.reading import read_people
from censafe.evaluation.counts.pairing import block_rows
from censafe.geography.geocodes import GeocodeForm
from censafe.privacy.keys import ReleaseKey
from censafe.privacy.ledger.book import Ledger
from censafe.privacy.ledger.commitments import load_key
from censafe.privacy.ledger.report import verify
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.plan import workloads
from censafe.products.topdown.public.files import open_files
from censafe.publication.manifest import read_manifest
from censafe.publication.measurements.final_levels import read_finished_level
from censafe.publication.measurements.geography import read_exact_totals, read_geography
from censafe.publication.measurements.tables import read_group_measurements, read_measurements
from censafe.publication.microdata.histograms import histogram_schema
from censafe.publication.tables.sdhc import read_noisy_table
from censafe.results.districts import read_district_microdata
from support.ledgers import make_plan, spend


def readers(world: Path) -> tuple[Reader, ...]:
    """All of them, on the inputs and finished runs of the campaign."""
    return (
        *readers_of_records(world),
        *_measurements(world),
        *_published(world),
        *_books(world),
        *_configurations(world),
    )


def _public(
    name: str, source: Path, file: str, read: Callable[[Path], object], change: Change, *, own: str = ""
) -> Reader:
    """A reader of one public file of a folder; `own` is the file that is read, where another one is spoiled."""

    def read_file(folder: Path) -> None:
        read(folder / (own or file))

    return Reader(name, copied(source), file, read_file, change, False)


def _measurements(world: Path) -> Iterable[Reader]:
    run = world / "finished"
    phsafe, safetab = run / "phsafe" / "measurements", run / "safetab-p" / "measurements"
    yield _public("measurements of PHSafe", phsafe, "PH4.parquet", read_measurements, of_parquet)
    yield _public("measurements of SafeTab", safetab, "usa_2.parquet", read_group_measurements, of_parquet)
    files = run / "e2e-1940" / "measurements"
    for kind in ("DPQuery", "Constraint"):
        file = f"US_Person_1940_E2E/County.parquet/{kind}/State=01/part-00000.parquet"
        yield Reader(f"noisy measurement files, {kind}", copied(files), file, _noisy, of_parquet, False)
    title = "noisy measurement files"
    yield _public(f"{title}, geography", files, "geography.parquet", read_geography, of_parquet)
    yield _public(f"{title}, totals", files, "exact_totals.csv", read_exact_totals, of_text(","))
    if (run / "dhc").exists():
        dhc = run / "dhc" / "measurements"
        file = "persons_County.parquet"
        yield _public("final histograms of the DHC", dhc, file, read_finished_level, of_parquet)


def _noisy(folder: Path) -> None:
    config = load_config("e2e-1940")
    files = open_files(config, folder, read_exact_totals(folder / "exact_totals.csv"))
    for load in workloads(config):
        files.read(load)


def _published(world: Path) -> Iterable[Reader]:
    run, pipe, persons = world / "finished", of_text("|"), "persons.txt"
    districts = partial(read_district_microdata, schema=load_config("e2e-1940").histograms[0].schema)
    for name in ("persons", "units"):
        folder = run / "e2e-1940" / "microdata"
        yield _public(f"microdata of 1940, {name}", folder, f"{name}.txt", districts, pipe, own=persons)
    redistricting = run / "dhc-redistricting" / "microdata"
    if redistricting.parent.exists():
        blocks = partial(block_rows, form=GeocodeForm(16), schema=load_config("pl94-us").histograms[0].schema)
        yield _public("microdata of the redistricting data", redistricting, persons, blocks, pipe)
        yield _public("microdata of the DHC", run / "dhc" / "microdata", persons, read_people, pipe)
    data = copied(world / "dhc" / "data")
    yield Reader("records of the DHC for an attack", data, "persons.parquet", read_people, of_parquet)
    tables = run / "phsafe" / "tables"
    yield _public(
        "tables of PHSafe", tables, "PH4/PH4.csv", lambda path: read_noisy_table("PH4", [path]), pipe
    )
    levels = run / "e2e-1940" / "histograms"
    yield _public("histograms", levels, "persons_County.parquet", histogram_schema, of_parquet)


def _books(world: Path) -> Iterable[Reader]:
    yield Reader("ledger", _ledger, "ledger.jsonl", _read_ledger, of_ledger, False)
    yield Reader("ledger key", _ledger, "ledger.key", _read_ledger_key, of_bytes, False)
    yield Reader("run key", _run_key, "run.key", _read_run_key, of_bytes, False)
    for product in ("phsafe", "e2e-1940"):
        source = world / "finished" / product
        yield _public(
            f"manifest {product}",
            source,
            "manifest.json",
            lambda path: read_manifest(path).document(),
            of_json,
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


def _configurations(world: Path) -> Iterable[Reader]:
    read = partial(_priced, "phsafe", "config.json")
    yield Reader("JSON of PHSafe", _one(world / "config.json"), "config.json", read, of_json, False)
    for product in ("p", "h"):
        source = copied(world / "safetab" / f"parameters_{product}")
        read, name = partial(_priced, f"safetab-{product}", "."), f"JSON of SafeTab-{product.upper()}"
        yield Reader(name, source, "config.json", read, of_json, False)
    import censafe.products as products

    names = {"phsafe": ("sdhc-us",), "topdown": ("e2e-1940", "pl94-us", "dhc-us", "blocks-16")}
    for product, own in names.items():
        for name in own:
            file = Path(products.__path__[0]) / product / "configs" / f"{name}.toml"
            read = partial(_priced, product, file.name)
            yield Reader(f"TOML {name}", _one(file), file.name, read, of_toml, False)


def _one(file: Path) -> Callable[[Path], None]:
    return lambda folder: shutil.copyfile(file, folder / file.name) and None


def _priced(product: str, name: str, folder: Path) -> str:
    return repr(plan(configuration(product, folder / name)).total)  # type: ignore[arg-type]
