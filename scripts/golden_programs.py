"""Programs of `golden.yaml` that use budgetreg from Python or prepare files: ``python golden_programs.py NAME ...``.

They read diabetes.csv, a table of `examples/write_tables.py`.
"""

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

CONSTANTS = {"B": 1.0, "eta": 0.05, "eta_two": 0.05, "lambda_": 0.1, "forgetting": 0.9}
SMALL = {"n_components": 2, "n_factors": 2, "pilot": 5, "folds": 2, "random_state": 1}


def show(name: str, **numbers: Any) -> None:
    """Print numbers in full, of long arrays the first ones and a digest."""
    for key, value in numbers.items():
        array = np.ascontiguousarray(value, dtype=float)
        digest = hashlib.sha256(array.tobytes()).hexdigest()[:16]
        print(name, key, array.shape, digest, *map(repr, array.ravel()[:3].tolist()))


def estimators() -> None:
    """Fit each estimator on complete rows, on rows with holes and in pieces; print what it learns, and its bill."""
    from budgetreg.estimators import ESTIMATORS

    values = pd.read_csv("diabetes.csv").to_numpy()[:120]
    X, y = values[:, :-1], values[:, -1]
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.5, np.nan, X)
    holes[::3] = X[::3]
    ways = {"complete": (X, 4), "with holes": (holes, 4), "all that is there": (holes, None)}
    for name, kind in ESTIMATORS.items():
        known = kind().get_params()
        options = {key: value for key, value in {**CONSTANTS, **SMALL}.items() if key in known}
        for way, (table, k) in ways.items():
            try:
                _learned(f"{name}, {way}:", kind(**{**options, "k": k}).fit(table, y), X, holes)
            except ValueError as error:
                print(f"{name}, {way}: {error}")
        model = kind(**options, k=4)
        if hasattr(model, "partial_fit"):
            for piece in (slice(0, 50), slice(50, 120)):
                try:
                    model.partial_fit(X[piece], y[piece])
                except ValueError as error:
                    print(f"{name}, in pieces: {error}")
                    break
            else:
                _learned(f"{name}, in pieces:", model, X, holes)
    model = ESTIMATORS["AELR"](k=4, B=1.0, eta=0.05, pilot=5)
    _learned("AELR, observed:", model.fit(lambda row, at: X[row, at], y=y, n_features=X.shape[1]), X, holes)


def _learned(name: str, model: Any, X: np.ndarray, holes: np.ndarray) -> None:
    show(name, bill=model.attributes_seen_)
    if hasattr(model, "components_"):
        show(name, components=model.components_, transformed=model.transform(X))
        return
    show(name, coef=model.coef_, intercept=model.intercept_, predictions=model.predict(X))
    if getattr(model, "covariance_", None) is not None:
        means, deviations = model.predict(holes, return_std=True)
        show(name, means=means, deviations=deviations)


def streams() -> None:
    """Print, for a grid of configurations, their identities and the keys of all random streams that their runs make."""
    import budgetreg

    keys: set[str] = set()
    original = np.random.PCG64DXSM

    class Noted(original):  # type: ignore[misc, valid-type]
        def __init__(self, seed: Any = None) -> None:
            super().__init__(seed)
            keys.add(str(seed))  # of a spawned stream, the parent and the number

    np.random.PCG64DXSM = Noted  # type: ignore[misc]
    for choices in _grid():
        keys.clear()
        results = budgetreg.run({"repetitions": 2, "checkpoints": 2, "backend": "sequential", **choices})
        digest = hashlib.sha256(json.dumps(sorted(keys)).encode()).hexdigest()
        print(json.dumps(choices), results.manifest["identity_digest"], len(keys), digest[:16])


def _grid() -> Iterator[dict[str, Any]]:
    fixed = {"tuning": "fixed", "tuning.B": 1, "tuning.eta": 0.05, "tuning.eta_two": 0.05, "tuning.lambda": 0.1}
    for algo in ("aelr", "aer", "aerr", "aesvr", "baseline", "ddaelr_two_phase", "fixed_subset", "sgd_impute", "lasso"):
        yield {"algo": algo, "dataset": "wine", **fixed}
    for algo in ("aefa_streaming", "mbeg", "popca", "popca_importance"):
        yield {"algo": algo, "algo.n_components": 2, "dataset": "coins", "dataset.n": 50, "tuning": "theory", "k": 2}
    for choices in ({"k": 2}, {"seed": 1}, {"tuning.folds": 2}, {"pilot": 9}, {"dataset.split": "random"}):
        yield {"algo": "aelr", "dataset": "sphere", "dataset.n": 60, "dataset.n_test": 20, "tuning.folds": 3, **choices}
    for dataset in ("gaussian", "hidden_basis", "one_good_feature", "power_law", "three_bits"):
        yield {"algo": "aerr", "dataset": dataset, "dataset.n": 80, "dataset.n_test": 20, "k": 2, **fixed}
    for k in (2, "auto"):
        yield {"algo": "aeml", "algo.n_factors": 2, "dataset": "wine", "k": k, "total": 300}


def patients() -> None:
    """Write patients.csv and more.csv: tables with names and outcomes, the ages and little else."""
    table = pd.read_csv("diabetes.csv").iloc[:70]
    table.insert(0, "patient", [f"p{number}" for number in range(len(table))])
    table.loc[3:, "sex"], table.loc[:, "bmi":"s6"] = np.nan, np.nan
    table.loc[:59].to_csv("patients.csv", index=False)
    table.loc[60:].to_csv("more.csv", index=False)


def laboratory(order: str, results: str, *missing: str) -> None:
    """Write the results of an order, without those of some attributes; a few will never be measured."""
    values, lines = pd.read_csv("diabetes.csv"), pd.read_csv(order, dtype=str)
    measured = [
        values.loc[int(example.removeprefix("p")), attribute]
        for example, attribute in zip(lines["example"], lines["attribute"], strict=True)
    ]
    lines["value"] = ["unavailable" if number % 20 == 7 else str(value) for number, value in enumerate(measured)]
    lines.loc[lines["attribute"].isin(missing), "value"] = ""
    lines.to_csv(results, index=False)


def extension() -> None:
    """Write what an installer leaves of the package in examples/, whose modules are found by PYTHONPATH."""
    import tomllib

    project = tomllib.loads(Path("examples/budgetreg_marginals/pyproject.toml").read_text())["project"]
    folder = Path("budgetreg_marginals-0.1.0.dist-info")
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 0.1.0\n")
    sections = (
        "\n".join([f"[{group}]", *(f"{name} = {place}" for name, place in entries.items())])
        for group, entries in project["entry-points"].items()
    )
    (folder / "entry_points.txt").write_text("\n".join(sections) + "\n")


if __name__ == "__main__":
    name, *words = sys.argv[1:]
    {each.__name__: each for each in (estimators, streams, patients, laboratory, extension)}[name](*words)
