"""The table that compares k=auto with the best fixed k in hindsight."""

import numpy as np
import pandas as pd
import pytest
from designs import comparison


def test_it_takes_the_best_fixed_k_at_each_total_and_holds_curves_that_end() -> None:
    def curve(attributes: list[int], errors: list[float]) -> pd.DataFrame:
        return pd.DataFrame({"attributes": attributes, "test_relative": errors})

    table = comparison(
        {
            "wine": {
                "auto": curve([300, 800, 1500], [0.5, 0.4, 0.3]),
                2: curve([100, 400], [0.6, 0.45]),  # it ends at 400 attributes
                13: curve([300, 800, 1500], [0.8, 0.4, 0.2]),
            }
        }
    )
    assert table["best_k"].tolist()[:3] == [2, 13, 13]
    at_300 = 0.6 + (0.45 - 0.6) * np.log(3) / np.log(4)
    assert table["ratio"].tolist()[:3] == pytest.approx([0.5 / at_300, 1.0, 1.5])
    assert table["ratio"].tolist()[3:] == pytest.approx([(0.5 / at_300 * 1.5) ** (1 / 3), 1.5])
