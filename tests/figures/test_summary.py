"""Tables of finished runs."""

from io import StringIO
from math import nan
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table

from budgetreg.analysis.intervals import Estimate
from budgetreg.cli.console import console
from budgetreg.figures.captions import rounded_texts, with_interval
from budgetreg.figures.tables import comparison_tables, run_table
from budgetreg.runs.series import read_series
from tests import written_runs
from tests.written_runs import edit_table

CORES = {"lasso": {"algo__core": "offline"}, "ridge": {"algo__core": "offline"}}  # they see full rows


def text(table: Table) -> str:
    out = StringIO()
    Console(file=out, width=140).print(table)
    return out.getvalue()


def rows(table: Table) -> list[list[str]]:
    """Return the cells of a table, row by row."""
    return [list(cells) for cells in zip(*(column.cells for column in table.columns), strict=True)]


def write_run(
    folder: Path,
    algo: str = "aelr",
    dataset: str = "mnist_3v5",
    relative: tuple[float, ...] = (0.7, 0.8),
    rate: float | None = 0.25,
    checkpoints: int = 3,
    svr: float | None = None,
) -> Path:
    """Write a run whose repetitions end at the given relative errors."""
    n, at = len(relative), np.arange(1, checkpoints + 1)
    written_runs.write_run(folder, algo, dataset, repetitions=n, examples=100 * at, **CORES.get(algo, {}))
    edit_table(
        folder / "curves.csv",
        attributes=lambda curves: 4 * curves["examples"],
        test_mse=2 * np.repeat(relative, checkpoints),
        test_relative=np.add.outer(relative, (checkpoints - at) / 10).ravel(),
        test_error_rate=rate,
        test_svr_loss=svr,
    )
    edge = ["eta:low"] + [""] * (n - 1)
    edit_table(folder / "runs.csv", p_eta=0.5 * np.arange(1, n + 1), edge=edge, attributes_mean=3.75, attributes_max=4)
    return folder


def test_an_error_that_is_the_same_in_both_units_is_shown_once(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    assert [column.header for column in run_table(folder).columns][2:4] == ["relative error", "test mse"]
    edit_table(folder / "curves.csv", test_mse=lambda curves: curves["test_relative"])
    table = run_table(folder)
    assert [column.header for column in table.columns][2:] == ["relative error", "error rate"]
    assert rows(table)[-1] == ["300", "1,200", "0.750 ± 0.071", "0.25 ± 0"]


def test_run_table_shows_each_checkpoint_with_mean_and_deviation(tmp_path: Path) -> None:
    table = run_table(write_run(tmp_path / "run"))
    assert table.row_count == 3
    assert rows(table)[-1] == ["300", "1,200", "0.750 ± 0.071", "1.50 ± 0.14", "0.25 ± 0"]


def test_the_svr_loss_is_shown_if_there_is_one(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", rate=None, svr=0.125)
    assert rows(run_table(folder))[-1][3:] == ["1.50 ± 0.14", "0.125 ± 0"]
    assert rows(run_table(write_run(tmp_path / "none", rate=None)))[-1][3:] == ["1.50 ± 0.14"]


def test_run_table_names_the_run_the_bill_and_the_parameters(tmp_path: Path) -> None:
    shown = " ".join(text(run_table(write_run(tmp_path / "run"))).split())
    assert "aelr on mnist_3v5, k = 4" in shown
    assert "2 repetitions; attributes per example: 3.75 on average, 4 at most" in shown
    assert "B = 2, eta = 0.5 (0.5 to 1), on the edge of the grid in 1 of 2 repetitions" in shown


def test_long_curves_are_thinned_to_twenty_rows_with_the_last(tmp_path: Path) -> None:
    table = run_table(write_run(tmp_path / "run", checkpoints=53))
    assert table.row_count == 20
    assert [row[0] for row in rows(table)][::19] == ["100", "5,300"]


def test_one_repetition_has_no_deviation_and_regression_no_error_rate(tmp_path: Path) -> None:
    table = run_table(write_run(tmp_path / "run", relative=(0.7,), rate=None))
    assert rows(table)[-1] == ["300", "1,200", "0.7", "1.4"]
    shown = text(table)
    assert "error rate" not in shown
    assert "1 repetition;" in shown


def test_comparison_puts_the_best_first_within_each_data_set(tmp_path: Path) -> None:
    write_run(tmp_path / "1", "aelr", relative=(0.7, 0.8))
    write_run(tmp_path / "2", "aer", relative=(0.4, 0.6))
    write_run(tmp_path / "4", "aer", "power_law", relative=(0.1, 0.2), rate=None)
    images, law = comparison_tables(read_series([tmp_path]))
    assert [str(table.title).partition(",")[0] for table in (images, law)] == ["mnist_3v5", "power_law"]
    assert [row[0] for row in rows(images)] == ["aer", "aelr"]
    assert rows(images)[0][1:] == ["k", "4", "300", "1,200", "0.50 ± 0.14", "0.25 ± 0", "-", "2"]
    assert len(rows(law)[0]) == len(rows(images)[0]) - 1  # no error rate
    assert str(law.caption).endswith("or of the best on full rows")  # two repetitions give no interval


def test_learners_on_full_rows_are_ranked_separately(tmp_path: Path) -> None:
    levels = {"aelr": 0.7, "aer": 0.8, "lasso": 0.1, "ridge": 0.2}
    for algo, level in levels.items():
        write_run(tmp_path / algo, algo, relative=tuple(level + 0.3 * (r % 2) for r in range(6)))
    (table,) = comparison_tables(read_series([tmp_path]))
    cells = rows(table)
    assert [row[:2] for row in cells] == [["aelr", "k"], ["aer", "k"], ["lasso", "all"], ["ridge", "all"]]
    # Repetitions differ far more than learners, but the difference of the learners is the same in each.
    assert str(table.caption).endswith("with its 90 % interval over shared repetitions")
    assert [row[-2] for row in cells] == ["-", "0.100 (0.084 to 0.116)", "-", "0.100 (0.050 to 0.158)"]


def test_runs_without_a_repetition_in_common_are_still_ranked(tmp_path: Path) -> None:
    write_run(tmp_path / "1", "aelr", relative=(0.5,))
    other = write_run(tmp_path / "2", "aer", relative=(0.4,))
    edit_table(other / "curves.csv", repetition=7)
    (table,) = comparison_tables(read_series([tmp_path]))
    assert [(row[0], row[-2]) for row in rows(table)] == [("aer", "-"), ("aelr", "-")]


@pytest.mark.parametrize("width", [80, 200])
def test_no_column_is_cut_and_notes_are_as_wide_as_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """With two labels there are four columns of two lines; eighty columns are what a terminal has at least."""
    for name, level in (("aelr", 0.7), ("online_lasso", 0.8), ("aer", 0.75)):
        write_run(tmp_path / name, name, relative=tuple(level + 0.3 * (r % 2) for r in range(10)))
        edit_table(
            tmp_path / name / "curves.csv",
            test_auc=lambda curves: 0.9 + curves["repetition"] / 997,
            test_error_rate=lambda curves: curves["test_relative"] / 7,
        )
    monkeypatch.setattr("budgetreg.cli.console._WIDE", width)
    console().print(*comparison_tables(read_series([tmp_path])))
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    (head,) = (line for line in lines if line.split()[:1] == ["learner"])
    assert head.endswith("worse by reps" if width == 80 else "worse by  reps")
    assert {line.split()[-1] for line in lines if " 300 " in line} == {"10"}
    assert max(map(len, lines)) <= width
    notes = lines[next(i for i, line in enumerate(lines) if line.startswith("mean ± s.d.")) :]
    assert max(map(len, notes)) > 0.85 * min(width, 100)


def test_the_table_of_a_run_leaves_out_runs_in_folders_below(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    alone = text(run_table(tmp_path / "run"))
    write_run(tmp_path / "run" / "below" / "it", algo="aer", relative=(0.1,))
    assert text(run_table(tmp_path / "run")) == alone
    (compared,) = comparison_tables(read_series([tmp_path]))
    assert "aer " in text(compared)


@pytest.mark.parametrize(
    ("numbers", "shown"),
    [
        ((0.5274, 0.4661, 0.5958), "0.527 (0.466 to 0.596)"),
        ((0.1204, 0.081, 0.154), "0.120 (0.081 to 0.154)"),
        ((146.7, 130.2, 169.3), "147 (130 to 169)"),
        ((9259.3, 1967.4, 13720.2), "9,259 (1,967 to 13,720)"),
        ((-0.14, -0.3, 0.0042), "-0.14 (-0.30 to 0.004)"),  # the sign decides, so no end becomes 0
        ((5.087e-08, 2.741e-08, 1.443e-07), "5.09e-08 (2.74e-08 to 1.44e-07)"),
        ((0.3, nan, nan), "0.3"),
        ((1315.0, 1315.0, nan), "1,315 (1,315 to ?)"),
    ],
)
def test_a_number_has_the_digits_that_its_interval_supports(numbers: tuple[float, ...], shown: str) -> None:
    assert with_interval(Estimate(*numbers)) == shown


def test_text_gets_no_more_digits_than_it_has() -> None:
    assert rounded_texts("0.3983", "0.3979", "0.3986") == ("0.3983", "0.3979", "0.3986")
    assert rounded_texts("1.234e+04", "", "") == ("12,340", "", "")
    assert rounded_texts("-", "", "") == ("-", "", "")
