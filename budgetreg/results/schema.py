"""The files a run leaves, and what every column of them means."""

SCHEMA_VERSION = 2

CURVES = "curves.csv"
RUNS = "runs.csv"
MANIFEST = "manifest.json"
JOURNAL = "journal.jsonl"
MODEL = "model.npz"
MODELS = "models.jsonl"
"""Beside the journal, as what was learned is the longer the more attributes there are, and few ask for it."""
LOCK = ".lock"
CLAIMS = "claims.csv"
SAVINGS = "savings.csv"
CELL = "cell"
"""Where runs of a figure are merged, the column that says which of them a row belongs to."""

IDENTIFIERS: dict[str, str] = {
    "experiment": "name of the experiment the run belongs to; empty if none",
    "algo": "learner",
    "dataset": "data set",
    "k": "attribute budget per training example",
    "repetition": "number of the random split, from 0",
}

POINTS: dict[str, str] = {
    **IDENTIFIERS,
    "examples": "training examples seen by this checkpoint",
    "attributes": "attributes charged to the final run by this checkpoint (counted, tuning not included)",
}

CURVE_COLUMNS: dict[str, str] = {
    **POINTS,
    "test_mse": "mean squared error on the test part, without a factor 1/2, in squared units of the target",
    "test_relative": "test_mse divided by that of the zero predictor, or with intercept=mean by that of the mean of "
    "the training targets",
    "test_error_rate": "share of test examples whose sign is not the predicted one (0 has none); empty unless labels "
    "are two-valued",
    "test_svr_loss": "mean of max(|residual| - delta, 0) on the test part, for learners of this loss; empty for others",
}

SUBSPACE_COLUMNS: dict[str, str] = {
    **POINTS,
    "excess_loss": "mean squared distance of examples from the subspace, above that from the best one of as many "
    "dimensions; under the law if its second moment is known, else on the test part; squared units of the attributes",
    "relative_error": "mean squared distance divided by the mean squared length of examples",
    "principal_angle": "largest angle between the subspace and the best one, in degrees",
}

CHOSEN = "p_*"
RUN_COLUMNS: dict[str, str] = {
    **IDENTIFIERS,
    CHOSEN: "value of the parameter named after p_ that was chosen for the last checkpoint: p_B radius of the ball, "
    "p_eta step size, p_eta_two that of the second phase, p_lambda regularisation, p_forgetting of old examples",
    "edge": "those of these values that are at an end of their grid, e.g. 'B:low eta:high'; empty if none",
    "attributes_total": "attributes charged to the final run",
    "attributes_mean": "attributes charged per training example, mean",
    "attributes_max": "attributes charged per training example, largest",
    "attributes_tuning": "attributes charged to the choice of parameters, all candidates and folds together",
    "seconds": "time the repetition took, in seconds",
    "status": "finished or failed",
}

MODEL_ARRAYS: dict[str, str] = {
    "repetitions": "numbers of the R repetitions, in the order of the other arrays",
    "names": "(d,) names of the attributes; missing if they have none",
    "target": "name of the target; missing if it has none",
}

REGRESSOR_ARRAYS: dict[str, str] = {
    **MODEL_ARRAYS,
    "w": "(R, d) weights at the last checkpoint of attributes as they are stored: the prediction is b + <w, x - c>",
    "b": "(R,) predictions at c, in units of the target",
    "c": "(R, d) what attributes count from; 0 where they are not centred",
}

SUBSPACE_ARRAYS: dict[str, str] = {
    **MODEL_ARRAYS,
    "V": "(R, d, n_components) orthonormal columns at the last checkpoint, which span the subspace of (x - c) * scale",
    "c": "(R, d) what attributes count from; 0 where they are not centred",
    "scale": "(R, d) units of attributes as they are stored",
}


def arrays(of_subspaces: bool) -> dict[str, str]:
    """Return the arrays of the model, and what they are, for learners of subspaces or of regressors."""
    return SUBSPACE_ARRAYS if of_subspaces else REGRESSOR_ARRAYS


def columns(of_subspaces: bool) -> dict[str, dict[str, str]]:
    """Return the columns of both files, and what they mean, for learners of subspaces or of regressors."""
    return {CURVES: SUBSPACE_COLUMNS if of_subspaces else CURVE_COLUMNS, RUNS: RUN_COLUMNS}
