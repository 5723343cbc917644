"""Records of a small country in files of its own: configurations, and counts that a plain loop over the rows gives."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from censafe.population.records.layout import RecordLayout
from censafe.population.records.reader import RecordData, read_records
from censafe.products.topdown.configuration.config import load_config

HEADER = ("Région", "grid", "born", "sex", "note")
ROWS = (
    ("Île", "N1:E 1", "1950-01-31", "F", "a"),
    ("Île", "N1:E 1", "1990-12-31", "M", ""),
    ("Île", "N1:E 2", "2011-01-01", "F", "b"),
    ("Nord", "N1:E 1", "2010-12-31", "M", ""),
    ("Nord", "N2:E 1", "1960-12-31", "F", ""),
    ("Nord", "N2:E 1", "1961-01-01", "F", ""),
)
CELLS = {
    ("Île", "N1:E 1"): {4: 1, 3: 1},
    ("Île", "N1:E 2"): {0: 1},
    ("Nord", "N1:E 1"): {3: 1},
    ("Nord", "N2:E 1"): {4: 1, 2: 1},
}
"""Records by area and cell (age times two, plus sex), on the last day of 2025."""
SCHEMA = """
[schemas.residents]
attributes = [
    { name = "age", levels = 3, labels = ["0-14", "15-64", "65+"] },
    { name = "sex", levels = 2, labels = ["female", "male"] },
]
"""
READ = """
[read]
persons = "persons.csv"
geography = ["Région", "grid"]
areas = "records"
[read.attributes.age]
column = "born"
as = "age_on:2025-12-31"
bands = [0, 15, 65]
[read.attributes.sex]
values = { F = "female", M = "male" }
"""
LEVELS = '[{ name = "Country", prefix = 0, code = "X" }, { name = "Region" }, { name = "Grid" }]'


def own_config(
    read: str = READ,
    *,
    schema: str = SCHEMA,
    levels: str = LEVELS,
    histograms: Sequence[str] = ("residents",),
    rho: str = "1",
    more: str = "",
) -> str:
    """A configuration that measures the cells of every histogram at every level."""
    names = [part.split('"')[1] for part in levels.split("name =")[1:]]
    parts = [
        'title = "A small country"',
        f"levels = {levels}",
        "[rho]",
        *(f'{name} = "{rho}"' for name in histograms),
        schema,
    ]
    for name in histograms:
        parts += [f"[histograms.{name}]", f'schema = "{name}"', f"[level_shares.{name}]"]
        parts += [f'{level} = "1/{len(names)}"' for level in names]
        parts += [f"[query_shares.{name}]", *(f'{level} = {{ detailed = "1" }}' for level in names)]
    return "\n".join([*parts, more, read, ""])


def text_of(
    rows: Sequence[Sequence[str]], *, mark: str = ";", end: str = "\n", header: Sequence[str] = HEADER
) -> str:
    """Rows below a header as text."""
    return "".join(mark.join(row) + end for row in (header, *rows))


def write_country(folder: Path, config: Path) -> None:
    """Two hundred persons of a country, and the configuration that reads them."""
    folder.mkdir()
    rows = [
        (
            "Nord" if place % 5 else "Île",
            f"N{place % 5}:E {place % 3}",
            f"{1930 + place % 95}-07-{1 + place % 28:02d}",
            "FM"[place // 7 % 2],
            "",
        )
        for place in range(200)
    ]
    (folder / "persons.csv").write_text(text_of(rows), encoding="utf-8")
    config.write_text(own_config(), encoding="utf-8")


def layout_of(folder: Path, text: str) -> RecordLayout:
    """The layout of a configuration, which is written beside the data."""
    path = folder / "own.toml"
    path.write_text(text, encoding="utf-8")
    layout = load_config(path).read
    assert layout is not None
    return layout


def read_own(
    folder: Path, text: str | None = None, files: Mapping[str, str | bytes] | None = None
) -> RecordData:
    """Write files, and read them."""
    data = folder / "data"
    data.mkdir(exist_ok=True)
    for name, content in (files or {}).items():
        (data / name).write_bytes(content.encode() if isinstance(content, str) else content)
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    return read_records(layout_of(folder, text or own_config()), data, scratch)


def cells_of(data: RecordData, histogram: str = "residents") -> dict[tuple[str, ...], dict[int, int]]:
    """Counts by the codes of the lowest areas, empty areas included."""
    assert data.blocks is not None and data.codes is not None
    counts = data.blocks.others[histogram]
    found = {}
    for place, codes in enumerate(data.codes.levels[-1].codes):
        own = slice(counts.node_ptr[place], counts.node_ptr[place + 1])
        found[codes] = dict(zip(counts.cell[own].tolist(), counts.count[own].tolist(), strict=True))
    return found


def rules_of(data: RecordData) -> Counter[str]:
    """Rows by rule of the findings."""
    found: Counter[str] = Counter()
    for one in data.findings:
        found[one.rule] += max(one.rows, 1)
    return found
