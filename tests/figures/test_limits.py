"""The range of a panel's y axis."""

import numpy as np
import pandas as pd

from budgetreg.figures.axes import y_range


def mean_frame(*values: float, sd: float = np.nan) -> pd.DataFrame:
    return pd.DataFrame({"test_relative": values, "test_relative_sd": sd})


def test_large_early_values_are_clipped_and_counted() -> None:
    shown = y_range([mean_frame(50, 3, 0.9, 0.8), mean_frame(0.99, 0.9, 0.8, 0.7)])
    assert (shown.high, shown.clipped, shown.largest, shown.log) == (2, 2, 50, False)
    assert y_range([mean_frame(np.inf, 1, 0.9, 0.8)]).clipped == 1
    assert y_range([mean_frame(np.nan, np.nan)]).clipped == 2


def test_late_values_and_the_zero_predictor_are_always_shown() -> None:
    shown = y_range([mean_frame(0.4, 0.3, 7, 9)])
    assert shown.clipped == 0
    assert shown.low < 0.3 < 9 < shown.high
    assert y_range([mean_frame(0.4, 0.3)]).high > 1


def test_published_values_are_shown_up_to_the_limit() -> None:
    shown = y_range([mean_frame(0.9, 0.8)], published=[0.3, 1.4])
    assert shown.low < 0.3 < 1.4 < shown.high
    assert y_range([mean_frame(0.9, 0.8)], published=[50]).high < 2


def test_bands_are_shown_up_to_the_limit() -> None:
    shown = y_range([mean_frame(0.9, 0.8, 0.7, sd=0.5)])
    assert shown.low < 0.2 < 1.4 < shown.high
    assert y_range([mean_frame(0.9, 0.8, sd=50)]).high < 3


def test_the_axis_is_logarithmic_only_beyond_a_decade_and_a_half() -> None:
    assert not y_range([mean_frame(1, 0.1, 0.04)]).log
    assert y_range([mean_frame(1, 0.1, 0.03)]).log
    assert not y_range([mean_frame(1, 0.1, 0)]).log  # zero has no place on a log axis
