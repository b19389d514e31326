"""What results owe to the processor: rounding, whose size is stated, and nothing else."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

RUNS = """
import sys
import budgetreg

for learner in ("pca", "zero_filled_pca", "popca", "popca_importance", "mbeg", "mbeg_plus"):
    budgetreg.run({
        "algo": learner, "dataset": "digits_3v5", "k": 4, "algo.n_components": 3, "tuning": "theory", "repetitions": 2,
        "checkpoints": [2, 3, 20, 100], "out": f"{sys.argv[1]}/{learner}",
    })
"""
NUMBERS = ["excess_loss", "relative_error", "principal_angle"]


@pytest.mark.skipif("openblas" not in str(np.show_config(mode="dicts")), reason="chooses among the kernels of OpenBLAS")
def test_subspaces_of_other_kernels_are_equal_but_for_rounding(tmp_path):
    tables = []
    for kernels in ("Haswell", "Prescott"):
        environment = {**os.environ, "OPENBLAS_CORETYPE": kernels}
        subprocess.run([sys.executable, "-c", RUNS, tmp_path / kernels], env=environment, check=True, timeout=300)
        tables.append(pd.concat([pd.read_csv(path) for path in sorted((tmp_path / kernels).glob("*/curves.csv"))]))
    here, there = tables
    assert len(here) == 6 * 2 * 4
    np.testing.assert_allclose(there[NUMBERS], here[NUMBERS], rtol=1e-9, atol=1e-9)
