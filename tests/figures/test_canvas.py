"""What all figures share: places of labels, ticks, panels without empty slots, and files that replace nobody else's."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from budgetreg.common.errors import UserError
from budgetreg.figures.canvas import (
    End,
    Figure,
    LogTicks,
    compact,
    label_ends,
    own_settings,
    set_ticks,
    sheet,
    spread,
    write_figure,
)
from tests.tiers import slow_but


def drawn(folder: Path, width: float = 1.0) -> dict[str, bytes]:
    with own_settings():
        paths = write_figure(Figure((width, 1.0)), "caption", folder, "trial")
    assert [path.name for path in paths] == ["trial.png", "trial.pdf", "trial.txt"]
    return contents(folder)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("ending", ["png", "pdf", "txt"])
@pytest.mark.parametrize("content", [b"theirs", b"", b"%PDF-1.4 << /Producer (theirs) >>"])
def test_files_of_somebody_else_are_kept(tmp_path: Path, ending: str, content: bytes) -> None:
    theirs = tmp_path / f"trial.{ending}"
    theirs.write_bytes(content)
    with pytest.raises(UserError, match=rf"trial.{ending} is there already, and would be replaced"):
        drawn(tmp_path)
    assert contents(tmp_path) == {theirs.name: content}


def test_our_own_files_are_replaced_even_after_a_kill(tmp_path: Path) -> None:
    first = drawn(tmp_path)
    (tmp_path / "trial.txt").unlink()  # it is written last
    second = drawn(tmp_path, width=2.0)
    assert second["trial.png"] != first["trial.png"]
    (tmp_path / "trial.txt").unlink()
    (tmp_path / "trial.txt").mkdir()
    with pytest.raises(UserError, match="it is a folder"):
        drawn(tmp_path)
    assert contents(tmp_path)["trial.png"] == second["trial.png"]


@given(some.lists(some.floats(0, 1), min_size=1, max_size=20))
def test_spread_labels_keep_their_order_and_distance(places: list[float]) -> None:
    moved = spread(places, 0.05)
    order = np.argsort(places, kind="stable")
    assert (np.diff(moved[order]) >= 0.05 - 1e-9).all()
    assert moved.min() >= -1e-9
    assert moved.max() <= 1 + 1e-9


def test_labels_with_enough_distance_stay() -> None:
    assert spread([0.1, 0.9, 0.5], 0.2).tolist() == pytest.approx([0.1, 0.9, 0.5])


@pytest.mark.usefixtures("laid_out")
@pytest.mark.parametrize(
    ("x", "y"), slow_but([(0.0, np.nan)], [(0.0, np.nan), (10.0, 0.5), (np.inf, 3.0), (1e9, -np.inf)])
)
def test_points_outside_the_axes_have_labels_beside_the_axes(x: float, y: float) -> None:
    with own_settings():
        drawn = sheet(1)
        ax = drawn.places[0].ax
        ax.set_xscale("log")
        ax.set(xlim=(1, 100), ylim=(0, 1))
        label_ends(drawn.figure, {ax: [End("outside", x, y, "black"), End("inside", 50, 0.2, "black")]})
        drawn.figure.draw_without_rendering()
    assert all(np.isfinite(text.get_position()).all() for text in ax.texts)


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (200, 3500, ["200", "300", "500", "1k", "2k", "3k"]),
        (130, 60_000, ["300", "1k", "3k", "10k", "30k"]),
        (600, 1.6e6, ["1k", "3k", "10k", "30k", "100k", "300k", "1M"]),
        (0.9e-6, 1.1, ["10⁻⁶", "10⁻⁵", "10⁻⁴", "0.001", "0.01", "0.1", "1"]),
    ],
)
def test_ticks_of_logarithmic_axes_are_round_numbers(low: float, high: float, texts: list[str]) -> None:
    assert [compact(tick) for tick in LogTicks().tick_values(low, high)] == texts


@pytest.mark.parametrize(("low", "high"), [(1.01, 1.02), (0.7, 1.4), (1e-12, 1e12), (3.0, 3.1e3)])
def test_a_logarithmic_axis_has_some_ticks_but_not_many(low: float, high: float) -> None:
    assert 2 <= len(LogTicks().tick_values(low, high)) <= 7


@pytest.mark.parametrize("inches", [2.0, 3.3, 6.6])
@pytest.mark.parametrize(("low", "high"), [(97_000, 712_000), (7_000, 400_000), (8, 340)])
def test_the_texts_of_ticks_do_not_touch(inches: float, low: float, high: float) -> None:
    with own_settings():
        figure = Figure(figsize=(inches, 2), dpi=150)
        ax = figure.subplots()
        ax.set(xscale="log", xlim=(low, high))
        set_ticks(ax)
        figure.draw_without_rendering()
        boxes = [text.get_window_extent() for text in ax.get_xticklabels()]
    assert len(boxes) >= 2
    assert all(after.x0 - before.x1 > 6 for before, after in itertools.pairwise(boxes))


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_panels_are_equally_wide_two_in_a_row(count: int) -> None:
    places = sheet(count).places
    spans = [place.ax.get_subplotspec() for place in places]
    assert [(span.rowspan.start, span.colspan.start) for span in spans] == [
        divmod(at, min(2, count)) for at in range(count)
    ]
    assert {len(span.colspan) for span in spans} == {1}
    assert sum(place.first for place in places) == (count + 1) // 2
    assert [place.lowest for place in places] == [at + min(2, count) >= count for at in range(count)]
