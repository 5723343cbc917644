"""The codebook explains every metric that a file can hold."""

from censafe.evaluation.counts.error_metrics import METRICS
from censafe.evaluation.counts.frames import LONG
from censafe.evaluation.outputs import column_meaning
from censafe.evaluation.shipped import CODEBOOK
from censafe.evaluation.summary.filling import COUNT_METRICS, summary_frame
from censafe.evaluation.summary.tables import shipped_book


def test_every_metric_and_column_of_long_and_summary_frames_is_explained() -> None:
    metrics = {column.metric for table in shipped_book().tables for column in table.columns}
    names = {*METRICS, *COUNT_METRICS, *metrics, *LONG.names, *summary_frame([]).column_names, "n_undefined"}
    assert set() == names - set(CODEBOOK)
    assert all(meaning and meaning[0].strip() for meaning in CODEBOOK.values())


def test_numbers_over_runs_are_explained_by_the_number_itself() -> None:
    assert column_meaning("mape_run_mean")[0] == f"mean over runs of: {CODEBOOK['mape'][0]}"
    assert column_meaning("n_below_run_sd")[1] == "areas"
    assert (
        column_meaning("adult1_dp", {"adult1": "18 and over"})[0]
        == "count of 18 and over, as published, protected"
    )
