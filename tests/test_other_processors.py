"""Results on another processor differ by rounding alone."""

import numpy as np
import pandas as pd
import pytest

from tests.commands import python

RUNS = """
import sys
import budgetreg

for learner in sys.argv[2].split():
    budgetreg.run({
        "algo": learner, "dataset": "digits_3v5", "k": 4, "algo.n_components": 3, "tuning": "theory", "repetitions": 2,
        "checkpoints": [2, 3, 20, 100], "out": f"{sys.argv[1]}/{learner}",
    })
"""
NUMBERS = ["excess_loss", "relative_error", "principal_angle"]


@pytest.mark.parametrize("learners", ["popca", "pca zero_filled_pca popca_importance mbeg mbeg_plus"])
@pytest.mark.skipif("openblas" not in str(np.show_config(mode="dicts")), reason="needs OpenBLAS to choose kernels")
@pytest.mark.slow
def test_subspaces_differ_between_kernels_by_rounding_alone(tmp_path, learners):
    tables = []
    for kernels in ("Haswell", "Prescott"):
        python("-c", RUNS, tmp_path / kernels, learners, timeout=300, OPENBLAS_CORETYPE=kernels).check_returncode()
        tables.append(pd.concat([pd.read_csv(path) for path in sorted((tmp_path / kernels).glob("*/curves.csv"))]))
    here, there = tables
    assert len(here) == len(learners.split()) * 2 * 4
    np.testing.assert_allclose(there[NUMBERS], here[NUMBERS], rtol=1e-9, atol=1e-9)
