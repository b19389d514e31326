"""The range of a panel's y axis."""

from dataclasses import replace

import numpy as np
import pandas as pd

from budgetreg.figures.curves import HIGH, LOW, y_range
from budgetreg.figures.specification import RELATIVE


def mean_frame(*values: float, half_band: float = np.nan) -> pd.DataFrame:
    means = np.array(values)
    return pd.DataFrame({"test_relative": means, LOW: means - half_band, HIGH: means + half_band})


def test_large_early_values_are_clipped_and_counted() -> None:
    curves = [mean_frame(50, 3, 0.9, 0.8), mean_frame(0.99, 0.9, 0.8, 0.7)]
    shown = y_range(curves)
    assert (shown.high, shown.log, *shown.above(curves, RELATIVE)) == (2, False, 2, 50)
    assert shown.above(curves[1:], RELATIVE)[0] == 0
    for values, hidden in (((np.inf, 1, 0.9, 0.8), 1), ((np.nan, np.nan), 0)):
        curves = [mean_frame(*values)]
        assert y_range(curves).above(curves, RELATIVE)[0] == hidden


def test_late_values_and_the_zero_predictor_are_always_shown() -> None:
    curves = [mean_frame(0.4, 0.3, 7, 9)]
    shown = y_range(curves)
    assert shown.above(curves, RELATIVE)[0] == 0
    assert shown.low < 0.3 < 9 < shown.high
    assert y_range([mean_frame(0.4, 0.3)]).high > 1


def test_published_values_are_shown_up_to_the_limit() -> None:
    shown = y_range([mean_frame(0.9, 0.8)], published=[0.3, 1.4])
    assert shown.low < 0.3 < 1.4 < shown.high
    assert y_range([mean_frame(0.9, 0.8)], published=[50]).high < 2


def test_a_logarithmic_axis_shows_published_values_and_the_zero_predictor() -> None:
    curves = [mean_frame(0.2, 0.01, 0)]
    shown = y_range(curves, replace(RELATIVE, log=True), published=[0.003, 0.3])
    assert shown.low < 0.003 < 1 < shown.high < 2
    assert y_range(curves, replace(RELATIVE, log=True), bottom=0.1).low == 0.1


def test_bands_are_shown_up_to_the_limit() -> None:
    shown = y_range([mean_frame(0.9, 0.8, 0.7, half_band=0.5)])
    assert shown.low < 0.2 < 1.4 < shown.high
    assert y_range([mean_frame(0.9, 0.8, half_band=50)]).high < 3


def test_a_recipe_can_end_the_axis() -> None:
    assert y_range([mean_frame(50, 3, 0.9, 0.8)], top=1.1).high == 1.1
    assert y_range([mean_frame(0.9, 0.8, half_band=5)], top=1.1).high == 1.1


def test_the_axis_is_logarithmic_only_beyond_a_decade_and_a_half() -> None:
    assert not y_range([mean_frame(1, 0.1, 0.04)]).log
    assert y_range([mean_frame(1, 0.1, 0.03)]).log
    assert not y_range([mean_frame(1, 0.1, 0)]).log  # zero has no place on a log axis
    assert y_range([mean_frame(1, 0.1, 0)], bottom=0.01).log  # but it may be drawn at the end of one
    assert not y_range([mean_frame(1, 0.9, 0.8)], bottom=0.01).log
    assert y_range([mean_frame(1, 0.9, 0.8)], bottom=0.01).low > 0.5
