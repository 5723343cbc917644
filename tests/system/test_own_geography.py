"""Areas of one's own: names that are given, and geocodes with letters, through run, estimate and evaluation."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from censafe.errors import DataError
from censafe.evaluation.areas import level_areas
from censafe.evaluation.counts.cells import match
from censafe.evaluation.counts.pairing import pair_files
from censafe.evaluation.pairs.inputs import OpenedPair
from censafe.evaluation.pairs.tables import PairChoices, scope_of, side_frames
from censafe.evaluation.topdown.runs import PublishedSource
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.configuration.layout import level_rules
from censafe.products.topdown.files import area_names
from censafe.publication.manifest import read_manifest, verify_outputs
from support.commands import CommandLine
from support.topdown_joint import write_joint_config, write_joint_data

NAMED = "geocode\tNAME\n44001\tNorth\n44003\tSouth, with islands\n"


@pytest.fixture
def few(tmp_path: Path) -> tuple[Path, Path]:
    """A configuration with levels of its own and a budget that leaves no noise, and records."""
    return write_joint_config(tmp_path / "few.toml", "1000"), write_joint_data(tmp_path / "data", 8)


def names_of(out: Path) -> dict[str, str]:
    """Names of counties beside their geocodes."""
    table = pq.read_table(out / "histograms" / "persons_County.parquet", columns=["geocode", "NAME"])
    return dict(zip(table["geocode"].to_pylist(), table["NAME"].to_pylist(), strict=True))


def test_a_run_keeps_the_names_that_it_was_given(
    censafe: CommandLine, few: tuple[Path, Path], tmp_path: Path
) -> None:
    names, out = tmp_path / "names.txt", tmp_path / "out"
    names.write_text(NAMED, encoding="utf-8")
    censafe("run", "topdown", *few, out, "--test-key", 3, "--quiet", "--names", names, ends=0)
    named = {"44001": "North", "44003": "South, with islands", "44005": ""}
    assert names_of(out) == named
    names.unlink()
    censafe("estimate", out, "--quiet", "--intervals", "--simulations", 0, ends=0)
    assert names_of(out) == named
    assert PublishedSource(out).open(ReadOptions()).names.by_code == {
        "44001": "North",
        "44003": "South, with islands",
    }
    rows = pq.read_table(out / "intervals.parquet").to_pylist()
    assert {row["NAME"] for row in rows if row["geocode"] == "44003"} == {"South, with islands"}
    manifest = read_manifest(out / "manifest.json")
    verify_outputs(out, manifest)
    assert "names.csv" in manifest.outputs


def test_a_bad_file_of_names_stops_before_anything_is_read(
    censafe: CommandLine, few: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "names.csv").write_text("code,label\n44001,North\n", encoding="utf-8")
    done = censafe(
        "run", "topdown", *few, tmp_path / "out", "--test-key", 3, "--names", tmp_path / "names.csv"
    )
    assert done.code != 0
    assert "a file of names has a header with GEOID" in done.err
    assert not (tmp_path / "out").exists()


LETTERS = str.maketrans("0123456789", "0129ACKQXZ")  # in the order of their codes


def lettered(few: tuple[Path, Path], folder: Path) -> tuple[Path, Path]:
    """The same configuration and records under geocodes with letters, in the same order."""
    (folder / "data").mkdir(parents=True)
    config = folder / "few.toml"
    config.write_text('geocodes = "capitals"\n' + few[0].read_text(encoding="utf-8"), encoding="utf-8")
    for source in few[1].iterdir():
        table = pq.read_table(source)
        codes = [code.translate(LETTERS) for code in table["geocode"].to_pylist()]
        place = table.schema.get_field_index("geocode")
        pq.write_table(table.set_column(place, "geocode", pa.array(codes)), folder / "data" / source.name)
    return config, folder / "data"


def counts_of(out: Path) -> dict[str, list[tuple[str, int, int]]]:
    """Published counts by file, geocode and cell, letters put back to digits."""
    back = {letter: digit for digit, letter in LETTERS.items()}
    return {
        path.stem: [
            (row["geocode"].translate(back), row["cell"], row["count"])
            for row in pq.read_table(path).to_pylist()
        ]
        for path in sorted((out / "histograms").glob("*.parquet"))
    }


@pytest.fixture
def both(
    censafe: CommandLine, few: tuple[Path, Path], tmp_path: Path
) -> tuple[Path, tuple[Path, Path], Path]:
    """A run with digits, a configuration and records with letters, and their run."""
    other = lettered(few, tmp_path / "letters")
    for given, out in ((few, tmp_path / "out"), (other, tmp_path / "letters" / "out")):
        censafe("run", "topdown", *given, out, "--test-key", 3, "--quiet", ends=0)
    return tmp_path / "out", other, tmp_path / "letters" / "out"


def test_letters_publish_what_digits_publish(
    censafe: CommandLine, both: tuple[Path, tuple[Path, Path], Path], tmp_path: Path
) -> None:
    digits, other, letters = both
    assert counts_of(letters) == counts_of(digits)
    counties = pq.read_table(letters / "histograms" / "persons_County.parquet")
    assert counties.column_names == ["geocode", "cell", "count"]
    assert counties["geocode"].to_pylist()[0] == "AA001"
    blocks = pq.read_table(letters / "measurements" / "geography.parquet")["geocode"].to_pylist()
    areas = tmp_path / "areas.csv"
    areas.write_text("geocode,ward\n" + "\n".join(f"{code},a" for code in blocks) + "\n", encoding="utf-8")
    more = ("--quiet", "--intervals", "--simulations", 1, "--areas", areas)
    censafe("estimate", letters, *more, ends=0)
    assert counts_of(letters) == counts_of(digits)
    public = tmp_path / "public"
    from_files = ("--measurements", letters / "measurements", "--quiet")
    censafe("estimate", "topdown", other[0], public, *from_files, ends=0)
    assert counts_of(public) == counts_of(digits)


def test_letters_are_compared(both: tuple[Path, tuple[Path, Path], Path], tmp_path: Path) -> None:
    _, (config, data), letters = both
    chosen = load_config(config)
    schema, rules = chosen.histogram("persons").schema, level_rules(chosen)
    files = (data / "histogram.parquet", {"1": letters / "histograms" / "persons_Block.parquet"})
    pair = pair_files(schema, rules, *files, domain=data / "units.parquet")
    opened = OpenedPair(pair, names=area_names(chosen, {"AA001": "North"}))
    side = side_frames(scope_of(opened, PairChoices()))["side_by_side/County"]
    assert side.column_names[:2] == ["geocode", "NAME"]
    assert side["NAME"].to_pylist() == ["North", "", ""]
    for level in ("County", "Block"):
        assert not match(pair, level_areas(pair.spine, level), pair.query("detailed")).residual.any()
    (tmp_path / "list.csv").write_text("geocode\nAA001001\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"the first at level County \(2 of that level are unknown\)"):
        pair_files(schema, rules, *files, domain=tmp_path / "list.csv")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("geocodes=small", "geocodes of another form"),
        ("geocodes=numbers", "geocodes"),
        ("reader=pl94", "reader = pl94 needs the codes of the census"),
        ("spine=aian", "spine = aian needs the codes of the census"),
    ],
)
def test_letters_that_are_not_stated_are_refused(
    censafe: CommandLine, few: tuple[Path, Path], tmp_path: Path, change: str, message: str
) -> None:
    config, data = lettered(few, tmp_path / "letters")
    censafe("validate", "topdown", config, data, "--set", change, ends=1, says=message)


@pytest.mark.parametrize(
    ("word", "prefix", "most"), [("digits", 19, 18), ("capitals", 13, 12), ("letters", 11, 10)]
)
def test_codes_that_are_too_long_are_refused_before_anything_is_read(
    censafe: CommandLine, few: tuple[Path, Path], word: str, prefix: int, most: int
) -> None:
    text = few[0].read_text(encoding="utf-8").replace("prefix = 8", f"prefix = {prefix}")
    few[0].write_text(text, encoding="utf-8")
    done = censafe("plan", "topdown", few[0], "--set", f"geocodes={word}", ends=1)
    assert f"at most {most} are allowed" in done.err
