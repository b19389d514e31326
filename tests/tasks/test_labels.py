"""The area under the ROC curve, and which curves have it."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

import budgetreg
from budgetreg.algorithms.tasks import auc
from budgetreg.runs.series import read_series
from budgetreg.runs.tables import CURVES, MANIFEST

KEYS = {"algo": "ridge", "tuning": "theory", "repetitions": 2, "checkpoints": 2}


@given(st.lists(st.tuples(st.integers(-2, 2), st.booleans()), min_size=2, max_size=12))
def test_the_area_is_that_of_scikit_learn_with_ties(pairs: list[tuple[int, bool]]) -> None:
    predictions = np.array([float(prediction) for prediction, _ in pairs])
    y = np.array([1.0 if label else -1.0 for _, label in pairs])
    if len(np.unique(y)) == 1:
        assert auc(predictions, y) is None
    else:
        assert auc(predictions, y) == pytest.approx(roc_auc_score(y, predictions))


@pytest.mark.parametrize(("dataset", "shown"), [("breast_cancer", True), ("diabetes", False), ("digits_3v5", False)])
def test_curves_of_own_data_with_two_labels_have_a_column(tmp_path: Path, dataset: str, shown: bool) -> None:
    """The curves of the papers' data keep their columns."""
    results = budgetreg.run({**KEYS, "dataset": dataset, "k": 4, "out": str(tmp_path)})
    assert ("test_auc" in results.curves) == shown
    assert ("test_auc" in json.loads((tmp_path / MANIFEST).read_text())["columns"][CURVES]) == shown
    assert ("test_auc" in read_series([tmp_path])[0].mean) == shown
    if shown:
        assert list(results.curves)[-1] == "test_auc"
        assert results.curves["test_auc"].iloc[[1, 3]].between(0.9, 1).all()
