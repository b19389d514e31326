"""Runs equal the protocol written out word by word, one example and one draw at a time.

Nothing here uses the code of the protocol. The learners are the listings of `budgetreg.algorithms`, and
`budgetreg.common.streams` defines the keys of random streams. The rest defines a repetition: a split, an order, folds,
candidates that learn in the folds under the same budget, a final run of the best one on the whole training part, errors
on the test part, and a bill.
"""

import csv
from dataclasses import dataclass, field
from math import ceil, erf, log, log2, pi, sqrt
from math import factorial as fact

import numpy as np
import pytest
from scipy.optimize import brentq

import budgetreg
from budgetreg.algorithms.hazan_koren_2012.aerr_aelr import aelr, aerr
from budgetreg.algorithms.vectors import data_point, invert
from budgetreg.api import plan
from budgetreg.common.streams import generator
from budgetreg.data.registry import load

D, F = 6, 5
BLOCK = 256
DELTA, EPS = 0.05, 2.0


@dataclass(frozen=True)
class Case:
    """A run: its keys on the command line, and what differs from other runs."""

    algo: str
    k: int
    grid: dict[str, list[float]]
    table: str = "small"
    seed: int = 0
    tuning: str = "cv"
    at: str = "end"
    average: str | None = "all"
    center: str = "none"
    split: str = "random"
    axis: str = "attributes"
    checkpoints: tuple = (9, 30, 60, 68)
    more: dict[str, object] = field(default_factory=dict)


# With these numbers of examples it matters that the protocol rounds down.
SIZES = {"small": 75, "labels": 75, "long": 440, "power_law": 75}


def table(name):
    """Return attributes of unequal size that are not centred, and targets that they explain in part."""
    rng = np.random.default_rng(17)
    X = rng.uniform(-0.4, 1, (SIZES[name], D)) * [1, 0.9, 0.7, 0.5, 0.3, 0.15]
    y = X @ [1.0, -0.8, 0.6, 0.0, -1.0, 1.5] + 0.3 * rng.normal(size=len(X)) + 0.2
    return X, np.where(y > 0.3, 1.0, -1.0) if name == "labels" else y


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the tables as files: floats with all digits, target last."""
    path = tmp_path_factory.mktemp("literal")
    for name in ("small", "labels", "long"):
        X, y = table(name)
        lines = [",".join(map(repr, row)) for row in np.column_stack([X, y]).tolist()]
        header = ",".join([*(f"x{i}" for i in range(D)), "y"])
        (path / f"{name}.csv").write_text("\n".join([header, *lines, ""]))
    return path


# A learner takes examples in order and a generator. It returns the outputs after each example (m, d), the attributes
# paid for each (m,), and the means that centred each (m, d).


def draws(rng, m, k_x, k_ip, q=None):
    """Return what is drawn for m examples, block by block: attributes, then uniforms for the inner product."""
    blocks = []
    for _ in range(-(-m // BLOCK)):
        attributes = rng.integers(0, D, (BLOCK, k_x)) if q is None else invert(q, rng.random((BLOCK, k_x)))
        blocks.append((attributes, rng.random((BLOCK, k_ip))))
    return [np.concatenate(parts)[:m] for parts in zip(*blocks, strict=True)]


def averages(iterates, rule):
    """Return for each t the mean of ``w_1..w_t``, or of the last half of them, or ``w_t``."""
    if rule == "all":
        return np.cumsum(iterates, axis=0) / np.arange(1, len(iterates) + 1)[:, None]
    first = {"suffix": lambda t: t // 2, "last": lambda t: t - 1}[rule]
    return np.array([np.mean(iterates[first(t) : t], axis=0) for t in range(1, len(iterates) + 1)])


def revealed_means(X, attributes):
    """Return the means that centre each example: of what was drawn for data points in earlier blocks."""
    means = np.zeros(X.shape)
    for t in range(len(X)):
        seen = [(i, X[s, i]) for s in range(t - t % BLOCK) for i in attributes[s]] if t % BLOCK == 0 else []
        values = [[v for i, v in seen if i == j] for j in range(D)]
        means[t] = [np.mean(v) if v else 0.0 for v in values] if t % BLOCK == 0 else means[t - 1]
    return means


def one_phase(listing, guided=False):
    def learn(case, X, y, rng, setting, moments):
        k_ip = case.k // 2 if guided else 1
        weights = np.sqrt(moments)
        q = weights / weights.sum() if guided else None
        attributes, uniforms = draws(rng, len(y), case.k - k_ip, k_ip, q)
        zeros = revealed_means(X, attributes) if case.center == "revealed" else np.zeros(X.shape)
        options = {"q": q, "s": weights} if guided else {}
        iterates, paid = zip(*listing(X - zeros, y, attributes, uniforms, **setting, **options), strict=True)
        return averages(iterates, case.average), np.array([*map(len, paid)]), zeros

    return learn


def two_phases(case, X, y, rng, setting, moments):
    """AERR on the first tenth estimates the moments; an attribute that was never drawn gets the mean of the others."""
    m_1, k_ip = len(y) // 10, case.k // 2
    attributes, uniforms = draws(rng, m_1, case.k - k_ip, k_ip)
    early, paid_1 = zip(*aerr(X[:m_1], y[:m_1], attributes, uniforms, setting["B"], setting["eta"]), strict=True)
    squares = [[X[t, j] ** 2 for t in range(m_1) for j in attributes[t] if j == i] for i in range(D)]
    two_phases.unknown += sum(not seen for seen in squares)
    typical = np.mean([np.mean(seen) for seen in squares if seen])
    A = np.array([np.mean(seen) if seen else typical for seen in squares])
    s = 0.95 * np.sqrt(A) / np.sqrt(A).mean() + 0.05
    q = s / s.sum()
    attributes, uniforms = draws(rng, len(y) - m_1, case.k - k_ip, k_ip, q)
    start = averages(early, case.average)[-1]
    steps = aerr(X[m_1:], y[m_1:], attributes, uniforms, setting["B"], setting["eta_two"], q=q, s=s, start=start)
    late, paid_2 = zip(*steps, strict=True)
    outputs = np.concatenate([averages(early, case.average), averages(late, case.average)])
    return outputs, np.array([*map(len, paid_1 + paid_2)]), np.zeros(X.shape)


two_phases.unknown = 0


def ridge(case, X, y, rng, setting, moments):
    """Return the minimiser on the 2-ball: ``(X'X + penalty)^-1 X'y`` with the least penalty that leads there."""
    outputs = []
    for t in range(1, len(y) + 1):
        values, vectors = np.linalg.eigh(X[:t].T @ X[:t])
        b = vectors.T @ (X[:t].T @ y[:t])

        def excess(penalty, values=values, b=b):
            return np.linalg.norm(b / (values + penalty)) - setting["B"]

        w = np.linalg.lstsq(X[:t], y[:t])[0]
        if np.linalg.norm(w) > setting["B"]:
            penalty = brentq(excess, 1e-9, 1e4, xtol=1e-14, rtol=1e-14)
            w = vectors @ (b / (values + penalty))
        outputs.append(w)
    return np.array(outputs), np.full(len(y), D), np.zeros(X.shape)


def online_ridge(case, X, y, rng, setting, moments):
    """Gradient descent with the exact gradient: all attributes of each example."""
    w, iterates = np.zeros(D), []
    for x, target in zip(X, y, strict=True):
        iterates.append(w)
        v = w - setting["eta"] * (w @ x - target) * x
        w = v * min(1, setting["B"] / np.linalg.norm(v))
    return averages(iterates, case.average), np.full(len(y), D), np.zeros(X.shape)


def aesvr(case, X, y, rng, setting, moments):
    """Gradient descent along GenEst's estimates: what an example costs depends on the radius."""
    B, eta, k_x = setting["B"], setting["eta"], case.k - 3
    N = ceil(round(16 * B**2 / EPS**2, 9))
    key = rng.integers(2**64, size=2, dtype=np.uint64)
    blocks = []
    for _ in range(-(-len(y) // BLOCK)):
        blocks.append((rng.integers(0, D, (BLOCK, k_x)), rng.geometric(0.5, (BLOCK, 2)) - 1, rng.random((BLOCK, 2, 8))))
    attributes, orders, uniforms = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    w, iterates, paid = np.zeros(D), [], []
    for t, (x, target) in enumerate(zip(X, y, strict=True)):
        iterates.append(w)
        paid.append(k_x)
        phi = 0.0
        for call, sign in enumerate((1, -1)):
            n = int(orders[t, call])
            if not w.any():
                phi += erf((-target - sign * DELTA) / EPS) / 2
            elif n % 2:
                each = 1 if n <= 2 * log2(N) else N
                counter = np.array([0, t // BLOCK, t % BLOCK, call], dtype=np.uint64)
                more = np.random.Generator(np.random.Philox(key=key, counter=counter)).random(n * each)
                numbers = np.concatenate([uniforms[t, call], more])[: n * each]
                drawn = invert(w**2, numbers)
                theta = (w @ w * x[drawn] / w[drawn]).reshape(n, each).mean(axis=1) - target - sign * DELTA
                a_n = 2 / sqrt(pi) * (-1) ** (n // 2) / (fact(n // 2) * n)
                phi += 2 ** (n + 1) * a_n * np.prod(theta / EPS) / 2
                paid[-1] += n * each
        v = w - eta * phi * data_point(x, attributes[t])
        w = v * min(1, B / max(np.linalg.norm(v), 1e-300))
    return averages(iterates, case.average), np.array(paid), np.zeros(X.shape)


LEARNERS = {
    "aerr": one_phase(aerr),
    "aelr": one_phase(aelr),
    "ddaerr": one_phase(aerr, guided=True),
    "ddaerr_two_phase": two_phases,
    "aesvr": aesvr,
    "ridge": ridge,
    "online_ridge": online_ridge,
}
FULL_INFORMATION = ("ridge", "online_ridge")


def candidates(case, m, everything):
    """Return the settings: each radius with each multiple of the step size that theory prescribes for m examples."""
    if case.tuning == "fixed":
        return [{name: value for name, (value,) in case.grid.items()}]
    k, m_1 = case.k, m // 10
    half = k - k // 2
    unit = {
        "aerr": lambda B: {"eta": sqrt((k - 1) / (2 * D * m))},
        "aelr": lambda B: {"eta": sqrt(2 * (k - 1) * log(2 * D) / (5 * m * D)) / (4 * B)},
        # All repetitions share the unit, which is of all examples; draws use only the training part.
        "ddaerr": lambda B: {"eta": 1 / sqrt(m * (np.sqrt(np.mean(everything**2, axis=0)).sum() ** 2 / half + 1))},
        "ddaerr_two_phase": lambda B: {
            "eta": sqrt(half / (2 * D * m_1)),
            "eta_two": sqrt(half / (6 * D * (m - m_1))),
        },
        "aesvr": lambda B: {"eta": 2 * B * sqrt((k - 3) / (2 * D * m))},
        "online_ridge": lambda B: {"eta": 1 / sqrt(m)},
        "ridge": lambda B: {},
    }[case.algo]
    if case.tuning == "theory":
        return [{"B": B, **unit(B)} for B in case.grid["B"]]
    settings = [{"B": B} for B in case.grid["B"]]
    for name, multiples in case.grid.items():
        if name != "B":
            settings = [{**setting, name: v * unit(setting["B"])[name]} for setting in settings for v in multiples]
    return settings


def literal(case, name, X, y, repetition, everything):
    """Return what a repetition reports: the points of its curve, and its row of the runs."""
    n, learn, identity = len(y), LEARNERS[case.algo], (case.seed, name, repetition)
    if case.split == "official":
        train, test = np.arange(SIZES["power_law"]), np.arange(SIZES["power_law"], n)
    else:
        shuffled, n_test = generator("split", *identity).permutation(n), int(n * 0.1)
        train, test = np.sort(shuffled[n_test:]), shuffled[:n_test]
    m = len(train)
    order = generator("order", *identity).permutation(train)
    place = generator("folds", *identity).permutation(m) % F
    # A share of an axis of k m attributes is the number of examples that it pays for.
    price = D if case.algo in FULL_INFORMATION and case.axis == "attributes" else case.k
    shares = isinstance(case.checkpoints[-1], float)
    checkpoints = [int(c * case.k * m // price) for c in case.checkpoints] if shares else list(case.checkpoints)
    last = checkpoints[-1]
    in_fold = min(last, m - ceil(m / F))
    mean = X[train].mean(axis=0) if case.center == "full" else np.zeros(D)
    moments = np.square(X[train] - mean).mean(axis=0)
    settings = candidates(case, last, everything)

    def learned(examples, stage, setting):
        rng = generator("draws", case.seed, name, case.algo, case.k, repetition, stage)
        return learn(case, X[examples] - mean, y[examples], rng, setting, moments)

    def residuals(rows, output):
        W, _, zeros = output
        return np.array([(X[rows] - mean - zero) @ w - y[rows] for w, zero in zip(W, zeros, strict=True)])

    def loss(r):
        return np.mean(np.maximum(np.abs(r) - DELTA, 0) if case.algo == "aesvr" else r**2, axis=1)

    chosen, tuning_bill = dict.fromkeys(checkpoints, 0), 0
    if len(settings) > 1:
        held_out = np.zeros((len(settings), F, in_fold))
        for g, setting in enumerate(settings):
            for f in range(F):
                output = learned(order[place != f][:in_fold], f"fold {f}", setting)
                held_out[g, f] = loss(residuals(order[place == f], output))
                tuning_bill += output[1].sum()
        risk = held_out.mean(axis=1)
        decides = {c: min(c if case.at == "each" else last, in_fold) for c in checkpoints}
        chosen = {c: int(risk[:, decides[c] - 1].argmin()) for c in checkpoints}
    finals = {g: learned(order[:last], "final", settings[g]) for g in set(chosen.values())}
    curve = []
    for c in checkpoints:
        output = finals[chosen[c]]
        r = residuals(test, output)[c - 1]
        mse = np.mean(r**2)
        point = {
            "examples": c,
            "attributes": output[1][:c].sum(),
            "test_mse": mse,
            "test_relative": mse / np.mean(y[test] ** 2),
            "test_error_rate": "",
            "test_svr_loss": np.mean(np.maximum(np.abs(r) - DELTA, 0)) if case.algo == "aesvr" else "",
        }
        if case.table == "labels":
            point["test_error_rate"] = np.mean(np.sign(r + y[test]) != y[test])
        curve.append(point)
    paid = finals[chosen[last]][1]
    run = {
        **{f"p_{key}": value for key, value in settings[chosen[last]].items()},
        "attributes_total": paid.sum(),
        "attributes_mean": paid.sum() / last,
        "attributes_max": max(finals[g][1].max() for g in chosen.values()),
        "attributes_tuning": tuning_bill,
        "status": "finished",
    }
    return curve, run


# The files that runs write


def choices(case, folder):
    data = {"dataset": "file", "dataset.path": str(folder / f"{case.table}.csv"), "dataset.scale": "none"}
    if case.table == "power_law":
        data = {"dataset": "power_law", "dataset.d": D, "dataset.n": SIZES["power_law"], "dataset.n_test": 12}
        data["dataset.split"] = case.split
    if case.tuning == "fixed":
        parameters = {f"tuning.{name}": value for name, (value,) in case.grid.items()}
    else:
        parameters = {"algo.grid": case.grid if case.tuning == "cv" else {**case.grid, "eta": [1]}}
        parameters |= {"tuning.folds": F, "tuning.at": case.at, "tuning.widen": 0}
    return {
        "algo": case.algo,
        "algo.average": case.average,
        "k": case.k,
        "seed": case.seed,
        "axis": case.axis,
        "tuning": case.tuning,
        "dataset.center": case.center,
        "intercept": "none",
        "pilot": 0,
        **({"algo.moments": "given"} if case.algo == "ddaerr" else {}),
        "checkpoints": list(case.checkpoints),
        **data,
        **parameters,
        **case.more,
    }


def written(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def assert_equal(row, expected):
    for column, value in expected.items():
        if isinstance(value, str):
            assert row[column] == value, column
        else:
            assert float(row[column]) == pytest.approx(float(value), rel=1e-9, abs=1e-12), column


GRID = {"B": [0.7, 2.5], "eta": [0.5, 2, 8]}
ALONE = {"backend.batch_size": 1}
SHARES = (0.2, 0.55, 1.0)
CASES = {
    "aerr": Case("aerr", 4, GRID, seed=5, at="each"),
    "aerr-end": Case("aerr", 3, GRID, seed=0, more=ALONE),
    "aelr": Case("aelr", 4, GRID, seed=0, at="each"),
    "aelr-end": Case("aelr", 3, GRID, seed=5, more=ALONE),
    "suffix": Case("aerr", 4, GRID, at="each", average="suffix"),
    "last": Case("aelr", 4, GRID, at="each", average="last"),
    "labels": Case("aelr", 4, GRID, table="labels", at="each"),
    "theory": Case("aelr", 4, {"B": [0.7, 1.2, 2.5]}, tuning="theory"),
    "fixed": Case("aerr", 4, {"B": [1.0], "eta": [0.3]}, tuning="fixed"),
    "shares": Case("aerr", 4, GRID, at="each", checkpoints=SHARES),
    "moments": Case("ddaerr", 4, GRID, at="each"),
    "moments-centred": Case("ddaerr", 5, GRID, center="full", more=ALONE),
    "two-phases": Case("ddaerr_two_phase", 4, {**GRID, "eta_two": [0.5, 2]}, at="each", seed=5),
    "bills": Case("aesvr", 6, {"B": [0.4, 1.0, 1.5], "eta": [1, 4, 16]}, at="each", seed=1),
    "bills-end": Case("aesvr", 5, {"B": [0.4, 1.0, 1.5], "eta": [1, 4, 16]}, seed=3, more=ALONE),
    # The largest cost is in the first block of one repetition, and in the second block of the other.
    "bills-long": Case(
        "aesvr", 6, {"B": [1.0], "eta": [0.1]}, table="long", seed=2, tuning="fixed", checkpoints=(250, 270, 396)
    ),
    "ridge": Case("ridge", 4, {"B": [0.3, 0.6, 1.2, 2.4]}, average=None, checkpoints=SHARES, at="each"),
    "ridge-centred": Case("ridge", 4, {"B": [0.3, 0.6, 1.2, 2.4]}, average=None, center="full"),
    "exact": Case("online_ridge", 4, GRID, checkpoints=SHARES, center="full", at="each"),
    "exact-examples": Case("online_ridge", 4, GRID, checkpoints=SHARES, axis="examples"),
    "revealed": Case(
        "aerr",
        4,
        {"B": [0.7, 1.2], "eta": [2, 8]},
        table="long",
        center="revealed",
        at="each",
        checkpoints=(100, 256, 300, 396),
    ),
    "official": Case("aerr", 4, GRID, table="power_law", split="official", at="each", center="full"),
    "sparse": Case("aerr", 4, GRID, table="power_law", split="official", seed=4, more=ALONE),
    "pooled": Case("aelr", 4, GRID, table="power_law", center="full", at="each", seed=2, more=ALONE),
}

AGAIN = (
    "aerr-end",
    "aelr",
    "moments",
    "bills-end",
    "bills-long",
    "ridge-centred",
    "exact-examples",
    "sparse",
    "shares",
    "last",
    "moments-centred",
    "pooled",
)
"""Cases that vary those of the same learner."""


@pytest.mark.parametrize(
    "case", [pytest.param(CASES[name], id=name, marks=[pytest.mark.slow] * (name in AGAIN)) for name in CASES]
)
def test_runs_equal_the_protocol_written_out(case, folder, tmp_path):
    two_phases.unknown = 0
    given = choices(case, folder)
    budgetreg.run({**given, "repetitions": 2, "out": str(tmp_path)})
    curves, runs = written(tmp_path / "curves.csv"), written(tmp_path / "runs.csv")
    assert len(curves) == 2 * len(case.checkpoints) and len(runs) == 2
    everything = None
    for repetition in range(2):
        if case.table == "power_law":  # how it draws examples is tested elsewhere
            data = load(plan(given).config.dataset, case.seed, repetition)
            name, X, y = data.name, data.X * data.scale, data.y
        else:
            name, (X, y) = case.table, table(case.table)
        if everything is None:
            everything = X - X.mean(axis=0) if case.center == "full" else X
        curve, run = literal(case, name, X, y, repetition, everything)
        points = [row for row in curves if row["repetition"] == str(repetition)]
        labels = {"algo": case.algo, "dataset": name, "k": case.k}
        for row, point in zip(points, curve, strict=True):
            assert_equal(row, labels | point)
        assert_equal(runs[repetition], {**labels, "repetition": repetition, **run})
    if case.algo == "ddaerr_two_phase":
        assert two_phases.unknown > 0
