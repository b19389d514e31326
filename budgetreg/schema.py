"""The files a run leaves, and what every column of them means."""

SCHEMA_VERSION = 1

CURVES = "curves.csv"
RUNS = "runs.csv"
MANIFEST = "manifest.json"
JOURNAL = "journal.jsonl"
LOCK = ".lock"

IDENTIFIERS: dict[str, str] = {
    "experiment": "name of the experiment the run belongs to; empty if none",
    "algo": "learner",
    "dataset": "data set",
    "k": "attribute budget per training example",
    "repetition": "number of the random split, from 0",
}

CURVE_COLUMNS: dict[str, str] = {
    **IDENTIFIERS,
    "examples": "training examples seen by this checkpoint",
    "attributes": "attributes charged to the final run by this checkpoint (counted, tuning not included)",
    "test_mse": "mean squared error on the test part, without a factor 1/2, in squared units of the target",
    "test_relative": "test_mse divided by that of the zero predictor",
    "test_error_rate": "share of test examples with the wrong sign; empty unless labels are two-valued",
    "test_svr_loss": "mean of max(|residual| - delta, 0) on the test part, for learners of this loss; empty for others",
}

CHOSEN = "p_*"
RUN_COLUMNS: dict[str, str] = {
    **IDENTIFIERS,
    CHOSEN: "chosen value of the parameter named after p_: p_B radius of the ball, p_eta step size, "
    "p_lambda regularisation",
    "edge": "chosen values at an end of their grid, e.g. 'B:low eta:high'; empty if none",
    "attributes_total": "attributes charged to the final run",
    "attributes_mean": "attributes charged per training example, mean",
    "attributes_max": "attributes charged per training example, largest",
    "attributes_tuning": "attributes charged to the choice of parameters, all candidates and folds together",
    "seconds": "time the repetition took, in seconds",
    "status": "finished or failed",
}

COLUMNS: dict[str, dict[str, str]] = {CURVES: CURVE_COLUMNS, RUNS: RUN_COLUMNS}
