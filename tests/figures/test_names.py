"""Names of data sets, attributes, units and files may be any text: figures show it as it is."""

import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from matplotlib.backends.backend_agg import RendererAgg

from budgetreg.figures import plot
from budgetreg.figures.specification import Drawing
from budgetreg.runs.series import read_series
from budgetreg.study.state import StudyBill
from tests.written_runs import write_run

NAME = "_US$,A$ \\$a\\frac^_%{ é עברית 漢字 😀 \x1b[2J\u202e\udce9"
SHOWN = r"_US$,A$ \$a\frac^_%{ é עברית 漢字 😀 \x1b[2J\u202e\udce9"


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that collects what is drawn, none of it as a formula."""
    texts: list[str] = []
    draw = RendererAgg.draw_text

    def draw_text(
        self: Any, gc: Any, x: Any, y: Any, s: str, prop: Any, angle: Any, ismath: Any = False, **more: Any
    ) -> None:
        assert not ismath
        texts.append(s)
        draw(self, gc, x, y, s, prop, angle, ismath, **more)

    monkeypatch.setattr(RendererAgg, "draw_text", draw_text)
    return texts


def study(attribute: str, unit: str, name: str, target: Path) -> None:
    counts = {"beforehand": 1, "paid": [2, 5, 3], "on_order": 1, "unavailable": 0}
    attributes = pd.DataFrame({"attribute": [attribute, "b", "c"], **counts})
    bill = StudyBill(unit, 3.0, 1.0, attributes, pd.DataFrame())
    state = SimpleNamespace(examples=range(9))
    bought = SimpleNamespace(path=target / name, state=lambda: state, bill=lambda: bill, history=list)
    plot(bought, target, name, Drawing(kind="study"))


@pytest.mark.slow
@pytest.mark.usefixtures("laid_out")
def test_titles_labels_legends_and_ticks_show_names_as_they_are(tmp_path: Path, drawn: list[str]) -> None:
    (series,) = read_series([write_run(tmp_path / "run")])
    named = replace(series, dataset=NAME, label=NAME, runs=series.runs.assign(cells_tuning=0, rows_full=0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plot([named], tmp_path, "curves")
        assert f"{SHOWN}, k = 4" in drawn
        assert SHOWN in drawn
        drawn.clear()
        plot([named], tmp_path, "bills", Drawing(kind="bills"))
        assert SHOWN in drawn
        drawn.clear()
        study(NAME.encode(errors="backslashreplace").decode(), NAME, "study", tmp_path)  # tables are UTF-8
    assert {SHOWN[:24], f"spent ({SHOWN})", f"on order: 1 {SHOWN}"} <= set(drawn)
    assert [text for text in drawn if text in ("b", "c", SHOWN[:24])] == ["b", "c", SHOWN[:24]]  # by what is known


@pytest.mark.usefixtures("laid_out")
@pytest.mark.slow
def test_long_names_leave_space_for_the_axes(tmp_path: Path, drawn: list[str]) -> None:
    (series,) = read_series([write_run(tmp_path / "run")])
    name = "x$" * 120
    named = replace(series, dataset=name, label=name, runs=series.runs.assign(cells_tuning=0, rows_full=0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plot([named], tmp_path, "curves")
        plot([named], tmp_path, "bills", Drawing(kind="bills"))
        study(name, name, name[:150], tmp_path)
    assert name[:70] in drawn
