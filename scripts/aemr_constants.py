"""What each constant of AEMR is worth: its error with another value, divided by its error as it is.

Each of `VARIANTS` replaces a constant by what a simpler method would have, or by another value. The tables are bundled
ones and simulated ones, see `DATA`; splits are the same for all variants. A ratio is the geometric mean over
checkpoints of mean errors over repetitions. Draws differ as soon as one number does, so ratios within about 0.03 of 1
show nothing.

Writes results/aemr/constants.csv, with a row for each variant and table: the ratio; other rows stay. Prints geometric
means over the tables but `WIDE`.

    .venv/bin/python scripts/aemr_constants.py --n-jobs 2
    .venv/bin/python scripts/aemr_constants.py --n-jobs 2 --tables wide --repetitions 5 --variants ...

The second was run for the seven variants that a sparse target may need.
"""

import argparse
import tempfile
from pathlib import Path
from types import ModuleType

import joblib
import numpy as np
import pandas as pd

import budgetreg
from budgetreg.algorithms.aemr import target_regression
from budgetreg.algorithms.factors import covariance, posterior
from budgetreg.revealed import collection, designs
from budgetreg.revealed.designs import regression_weights

RESULTS = Path(__file__).resolve().parents[1] / "results" / "aemr" / "constants.csv"

SIMULATED = {"dataset": "gaussian", "k": 4, "dataset.d": 40, "dataset.n": 1200, "checkpoints": [100, 350, 1200]}
DATA: dict[str, dict[str, object]] = {
    "diabetes": {"dataset": "diabetes", "k": 4},
    "breast cancer": {"dataset": "breast_cancer", "k": 4},
    "wine": {"dataset": "wine", "k": 4},
    "digits": {"dataset": "digits_3v5", "k": 8},
    "independent": SIMULATED,
    "sparse": {**SIMULATED, "dataset.support": 4},
    "heavy tails": {**SIMULATED, "dataset.tails": 3},
}

WIDE = {
    **{"dataset": "gaussian", "k": 20, "dataset.d": 500, "dataset.n": 6000, "dataset.support": 10},
    **{"dataset.noise": 0.1, "checkpoints": [2000, 2800, 4000, 6000]},
}
"""Ten of 500 attributes count: a table on which few variants are tried, as a fit takes a quarter of a minute."""

PLAIN, DRAWS = "as it is", (collection, "regression_weights")

VARIANTS: dict[str, dict[tuple[ModuleType, str], object]] = {
    PLAIN: {},
    "covariance of the chain alone": {(covariance, "_WORK"): 0},
    "1 example per column": {(covariance, "_PRIOR_EXAMPLES"): 1},
    "10 examples per column": {(covariance, "_PRIOR_EXAMPLES"): 10},
    "target's loadings as the others'": {(posterior, "_TAILS"): 0.0},
    "target's noise as the others'": {(posterior, "_RATE_TARGET"): 0.3},
    "target starts like the others": {(posterior, "_TARGET_START"): 0.0, (posterior, "LEAST_NOISE"): 0.5},
    "400 sweeps": {(posterior, "MOST_KEPT"): 400},
    "factor model alone": {(target_regression, "_ERRORS"): np.inf},
    "regression alone": {(target_regression, "_ERRORS"): -np.inf},
    "no standard error": {(target_regression, "_ERRORS"): 0.0},
    "draws: all differences of u": {(target_regression, "_SHARE_FOR_DRAWS"): 1.0},
    "draws: no differences of u": {(target_regression, "_SHARE_FOR_DRAWS"): 0.0},
    "small weights down to a 1,000th": {(target_regression, "_LEAST_SMALL"): 1000},
    "large weights drawn by their values": {(target_regression, "_IN_TURN"): 10**9},
    "30 rounds": {(target_regression, "_ROUNDS"): 30},
    "sweeps of the last round not more": {(target_regression, "_MORE"): 1},
    "correlations always count": {(covariance, "_ERRORS"): np.inf},
    "correlations count if better": {(covariance, "_ERRORS"): 0.0},
    "draws by what varies alone": {DRAWS: lambda s, w, parts: regression_weights(s, 0 * w)},
    "draws by weights alone": {
        DRAWS: lambda s, w, parts: regression_weights(s, w, parts) - regression_weights(s, 0 * w, 0 * parts)
    },
    "draws without second moments": {DRAWS: lambda s, w, parts: regression_weights(s, w)},
    "draws without the factor model's regressor": {DRAWS: lambda s, w, parts: regression_weights(s, 0 * w, parts)},
    "draws in proportion to deviations": {(designs, "_POWER"): 1.0},
}


def errors(variant: str, table: str, repetitions: int) -> pd.Series:
    """Return the mean error by checkpoint."""
    for (module, name), value in VARIANTS[variant].items():
        setattr(module, name, value)
    with tempfile.TemporaryDirectory() as folder:
        keys = {"algo": "aemr", "repetitions": repetitions, "backend": "sequential", "out": f"{folder}/run"}
        curves = budgetreg.run({**(DATA | {"wide": WIDE})[table], **keys}).curves
    return curves.groupby("examples")["test_relative"].mean()


def main() -> None:
    """Write the results, and print what they come to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=list(VARIANTS), metavar="VARIANT")
    parser.add_argument("--tables", nargs="+", choices=[*DATA, "wide"], default=list(DATA), metavar="TABLE")
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    cells = [(variant, table) for variant in dict.fromkeys([PLAIN, *chosen.variants]) for table in chosen.tables]
    # A process for each cell, because a variant changes modules.
    parallel = joblib.Parallel(n_jobs=chosen.n_jobs, backend="multiprocessing", maxtasksperchild=1, batch_size=1)
    found = dict(zip(cells, parallel(joblib.delayed(errors)(*cell, chosen.repetitions) for cell in cells), strict=True))
    ratios = {cell: np.exp(np.log(found[cell] / found[PLAIN, cell[1]]).mean()) for cell in cells}
    if chosen.out.exists():
        before = pd.read_csv(chosen.out).query("data != 'all'").to_dict("records")
        ratios = {(row["variant"], row["data"]): row["ratio"] for row in before} | ratios
    frame = pd.DataFrame([(*cell, ratio) for cell, ratio in ratios.items()], columns=["variant", "data", "ratio"])
    small = frame[frame["data"] != "wide"]
    means = small.groupby("variant", sort=False)["ratio"].apply(lambda x: np.exp(np.log(x).mean()))
    pd.concat([frame, means.reset_index().assign(data="all")]).to_csv(chosen.out, index=False, float_format="%.4f")
    print(means.round(3).to_string())


if __name__ == "__main__":
    main()
