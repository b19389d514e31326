"""The batched cores: equal to the listings on identical draws, in every batch, within the budget."""

import numpy as np
import pytest
from scipy.optimize import brentq

from budgetreg.algorithms.cesa_bianchi_2010 import aer
from budgetreg.algorithms.engine import DATA_POINT_SAMPLERS, Proportional, next_block
from budgetreg.algorithms.hazan_koren_2012.aerr_aelr import (
    GradientLearner,
    aelr,
    aelr_exponents,
    aelr_regressor,
    aelr_update,
    aerr,
    aerr_update,
)
from budgetreg.algorithms.kukliansky_shamir_2015 import TwoPhaseLearner, estimated_moments, two_phases
from budgetreg.algorithms.learner import BudgetSplit
from budgetreg.algorithms.vectors import data_point, inner_product, invert
from budgetreg.common.streams import generator, uniform
from tests.learners.problems import averaged, fit
from tests.tiers import slow_but

LISTING = {"ogd": (aerr, "eta"), "eg": (aelr, "eta"), "pegasos": (aer, "lambda")}
CHECKPOINTS = [1, 5, 256, 257, 300]
SCALE = 1 / 255


def problem(m, d, seed=0, sparse=0.6):
    """Return sparse attributes in [0, 1] and two-valued targets, as images have."""
    rng = np.random.default_rng(seed)
    X = rng.integers(1, 256, (m, d)) * (rng.random((m, d)) > sparse)
    w = rng.normal(size=d)
    return X.astype(np.uint8), np.where(X * SCALE @ w > 0, 1.0, -1.0)


def run(X, y, streams, settings, checkpoints=CHECKPOINTS, *, scale=SCALE, shift=None, itemised=False, **options):
    """Run the core along some streams, each with its order and draws."""
    split = BudgetSplit(options.pop("k_x"), options.pop("k_ip"))
    orders = np.stack([np.random.default_rng(f).permutation(len(X)) for f in streams])
    given = {"budget_split": split, "moments": options.pop("moments", None)}
    run = {"settings": settings, "given": given, "table": {"scale": scale, "shift": shift}, "itemised": itemised}
    learner, rngs = GradientLearner(name="test", **options), [generator("test", f) for f in streams]
    outputs, accessor = fit(learner, X, y, orders, sum(split), checkpoints, rngs=rngs, **run)
    return outputs, accessor.bill()


def draws(rng, m, d, sampler, k_x, k_ip):
    parts = [next_block([rng], [sampler], d, k_x, k_ip) for _ in range(-(-m // 256))]
    return tuple(np.concatenate(part, axis=1)[0, :m] for part in zip(*parts, strict=True))


def listed(X, y, stream, update, data_point, k_x, k_ip, B, parameter, shift=0.0):
    """Return iterates (m, d) and attributes paid (m,) of the literal listing on the draws of a stream."""
    order = np.random.default_rng(stream).permutation(len(X))
    sampler = DATA_POINT_SAMPLERS[data_point]
    attributes, uniforms = draws(generator("test", stream), *X.shape, sampler, k_x, k_ip)
    steps = LISTING[update][0](X[order] * SCALE - shift, y[order], attributes, uniforms, B, parameter)
    iterates, paid = zip(*steps, strict=True)
    return np.array(iterates), np.array([*map(len, paid)])


CASES = [
    ("ogd", "uniform", 3, 1, [0.05, 0.4], 1e-9),
    ("ogd", "uniform", 4, 4, [0.05, 0.2], 1e-9),
    ("eg", "uniform", 3, 1, [0.01, 0.3], 1e-12),
    ("eg", "uniform", 2, 3, [0.01, 5.0], 1e-12),
    ("pegasos", "subset", 2, 2, [0.1, 5.0], 1e-9),
    ("pegasos", "subset", 5, 1, [1.0, 50.0], 1e-9),
]
FEW = CASES[1::2]
"""One case of each update."""


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize(("update", "data_point", "k_x", "k_ip", "parameters", "tolerance"), slow_but(FEW, CASES))
def test_core_equals_listing(update, data_point, k_x, k_ip, parameters, tolerance, centred):
    X, y = problem(300, 29)
    shift = X.mean(axis=0) * SCALE if centred else None
    settings = {"B": [2.0, 0.7], LISTING[update][1]: parameters}
    draw = {"update": update, "data_point": data_point, "k_x": k_x, "k_ip": k_ip}
    results = {
        rule: run(X, y, [0, 1], settings, shift=shift, average=rule, **draw) for rule in ("all", "suffix", "last")
    }
    for f, g in np.ndindex(2, 2):
        iterates, paid = listed(X, y, f, *draw.values(), settings["B"][g], parameters[g], shift if centred else 0.0)
        for rule, (outputs, bill) in results.items():
            for c in CHECKPOINTS:
                np.testing.assert_allclose(
                    outputs[c][f, :, g], averaged(iterates[:c], rule), rtol=0, atol=tolerance, err_msg=f"{rule} at {c}"
                )
                assert bill.at[c][f, g] == paid[:c].sum()


@pytest.mark.parametrize(("update", "data_point", "k_x", "k_ip", "parameters", "tolerance"), slow_but(FEW, CASES))
def test_itemised_bills_equal_the_listing(update, data_point, k_x, k_ip, parameters, tolerance):
    """Including the draws of skipped steps: most of these examples are 0."""
    X, y = problem(300, 29, sparse=0.9)
    settings = {"B": [2.0, 0.7], LISTING[update][1]: parameters}
    draw = {"update": update, "data_point": data_point, "k_x": k_x, "k_ip": k_ip, "average": "all"}
    outputs, bill = run(X, y, [0, 1], settings, itemised=True, **draw)
    plain, unnamed = run(X, y, [0, 1], settings, **draw)
    for c in CHECKPOINTS:
        np.testing.assert_array_equal(outputs[c], plain[c])
        np.testing.assert_array_equal(bill.at[c], unnamed.at[c])
    sizes = np.square if update == "ogd" else np.abs
    for f, g in np.ndindex(2, 2):
        iterates, _ = listed(X, y, f, update, data_point, k_x, k_ip, settings["B"][g], parameters[g])
        attributes, uniforms = draws(generator("test", f), *X.shape, DATA_POINT_SAMPLERS[data_point], k_x, k_ip)
        for c in CHECKPOINTS:
            inner = [invert(sizes(w), u) for w, u in zip(iterates[:c], uniforms[:c], strict=True) if np.any(w)]
            named = np.concatenate([attributes[:c].ravel(), *inner])
            np.testing.assert_array_equal(bill.reveals.until(c)[f, g], np.bincount(named, minlength=29))


@pytest.mark.parametrize(
    ("update", "B", "parameter", "target", "tolerance"),
    [
        ("eg", 0.1, 0.5, 10.0, 1e-12),  # an infeasible target, for which exponents grow without bound
        ("eg", 8.0, 8.0, 1.0, 1e-11),  # steps that make exponents jump
        ("ogd", 4.0, 4.0, 1.0, 1e-9),  # every step leaves the ball by far, and the scale collapses
        ("pegasos", 8.0, 1e-3, 1.0, 1e-8),
    ],
)
def test_extreme_steps_equal_the_listing(update, B, parameter, target, tolerance):
    X, y = problem(800, 8, sparse=0.3)
    y = y * 0 + target if target > B else y
    data_point = "subset" if update == "pegasos" else "uniform"
    draw = {"update": update, "data_point": data_point, "k_x": 2, "k_ip": 2}
    c = 800 if update != "ogd" else 300  # AERR amplifies rounding along the pass
    outputs, _ = run(X, y, [3], {"B": [B], LISTING[update][1]: [parameter]}, [c], average="all", **draw)
    iterates, _ = listed(X, y, 3, *draw.values(), B, parameter)
    np.testing.assert_allclose(outputs[c][0, :, 0], iterates[:c].mean(axis=0), rtol=0, atol=tolerance * B)


def literal(update, X, y, rng, m, sampler, k_x, k_ip, *rest, **options):
    """Return iterates and payments of a listing on the next blocks of draws."""
    attributes, uniforms = draws(rng, m, X.shape[1], sampler, k_x, k_ip)
    iterates, paid = zip(*LISTING[update][0](X, y, attributes, uniforms, *rest, **options), strict=True)
    return attributes, np.array(iterates), np.array([*map(len, paid)])


@pytest.mark.parametrize("inner_product", ["weight", "moment"])
@pytest.mark.parametrize(("update", "eta"), [("ogd", 0.1), ("eg", 0.2)])
def test_moment_based_draws_equal_the_listing(update, eta, inner_product):
    X, y = problem(600, 37)
    X[:, 5] = 0
    moments = np.square(X * SCALE).mean(axis=0)
    weights = np.sqrt(moments) if update == "ogd" else moments
    order = np.random.default_rng(0).permutation(600)
    sampler = Proportional(weights)
    np.testing.assert_allclose(sampler.q, weights / weights.sum(), rtol=1e-15)
    guide = {"q": sampler.q, "s": np.sqrt(moments) if inner_product == "moment" else None}
    _, iterates, paid = literal(
        update, X[order] * SCALE, y[order], generator("test", 0), 600, sampler, 4, 3, 1.5, eta, **guide
    )
    draw = {"update": update, "data_point": "moment", "inner_product": inner_product, "k_x": 4, "k_ip": 3}
    settings = {"B": [1.5], "eta": [eta]}
    outputs, bill = run(X, y, [0], settings, [300, 600], average="suffix", moments=moments[None], **draw)
    np.testing.assert_allclose(outputs[600][0, :, 0], averaged(iterates, "suffix"), rtol=0, atol=1e-9)
    assert bill.at[300][0, 0] == paid[:300].sum()


@pytest.mark.parametrize(
    ("inner_product", "smoothing"),
    slow_but([("moment", "theory")], [("weight", 0.02), ("moment", 0.0), ("moment", "theory")]),
)
@pytest.mark.parametrize(("update", "etas"), [("ogd", (0.1, 0.05)), ("eg", (0.2, 0.1))])
def test_two_phases_equal_their_listings(update, etas, inner_product, smoothing):
    X, y = problem(800, 23)
    X[:, 5] = 0
    order = np.random.default_rng(0).permutation(800)
    rows, rng, m_1 = X[order] * SCALE, generator("test", 0), 300
    attributes, first = draws(rng, m_1, 23, uniform, 3, 2)
    numbers, second = draws(rng, 500, 23, lambda rng, d, k_x: rng.random((256, k_x)), 3, 2)
    eps = min(1, 23 * np.log(2 * 23 / 0.05) / (3 * m_1)) if smoothing == "theory" else smoothing
    A = estimated_moments(rows[:m_1], attributes, eps)
    assert len(np.unique(attributes)) == 23 and A[5] == 13 / 6 * eps
    drawn, improved = (attributes, numbers, np.concatenate([first, second])), inner_product == "moment"
    steps = two_phases(update, rows, y[order], *drawn, 2.0, etas, eps, 0.1, improved=improved)
    iterates, paid = map(list, zip(*steps, strict=True))
    early, late, paid = np.array(iterates[:m_1]), np.array(iterates[m_1:]), np.array([*map(len, paid)])
    start = early.mean(axis=0)
    np.testing.assert_allclose(late[0], start, rtol=0, atol=1e-12)
    if update == "eg":  # the exponents of w: sinh(theta) is proportional to w, and the sum of cosh follows from w
        C = brentq(lambda C: np.sqrt(1 + np.square(C * start / 2)).sum() - C, 0, 1e6, xtol=1e-13)
        np.testing.assert_allclose(aelr_exponents(start, 2.0), np.arcsinh(C * start / 2), rtol=1e-9, atol=1e-12)
    learner = TwoPhaseLearner(
        name="test", update=update, inner_product=inner_product, phase_one=0.375, smoothing=smoothing, mix=0.1
    )
    settings, given = {"B": [2.0], "eta": etas[:1], "eta_two": etas[1:]}, {"budget_split": BudgetSplit(3, 2)}
    run = {"settings": settings, "rngs": [generator("test", 0)], "given": given}
    outputs, accessor = fit(learner, X, y, order[None], 5, [100, 500, 800], table={"scale": SCALE}, **run)
    np.testing.assert_allclose(outputs[100][0, :, 0], early[:100].mean(axis=0), rtol=0, atol=1e-12)
    np.testing.assert_allclose(outputs[500][0, :, 0], late[:200].mean(axis=0), rtol=0, atol=1e-9)
    np.testing.assert_allclose(outputs[800][0, :, 0], late.mean(axis=0), rtol=0, atol=1e-9)
    bill = accessor.bill()
    assert bill.total[0, 0] == paid.sum()
    assert bill.at[100][0, 0] == paid[:100].sum()


@pytest.mark.parametrize("update", ["ogd", "eg"])
@pytest.mark.slow
def test_rounding_does_not_change_the_distribution_of_outputs(update):
    """With steps so small that projections keep rounding errors."""
    rng, m = np.random.default_rng(7), 6000 if update == "ogd" else 2000
    X, w = rng.normal(size=(m, 20)), rng.normal(size=20)
    w /= np.linalg.norm(w)
    y, settings = X @ w + 0.1 * rng.normal(size=m), {"B": [1.0 if update == "ogd" else 3.0], "eta": [0.003]}
    draw = {"update": update, "data_point": "uniform", "k_x": 2, "k_ip": 2, "average": "all"}
    rounded = X * (1 + np.random.default_rng(8).uniform(-1, 1, X.shape) * 2.0**-52)
    here, there = (run(Z, y, range(40), settings, [m], scale=1, **draw)[0][m][:, :, 0] for Z in (X, rounded))
    apart = np.linalg.norm(here - there, axis=1) / np.linalg.norm(here, axis=1)
    error, other = (((W - w) ** 2).sum(axis=1) for W in (here, there))
    if update == "eg":
        assert apart.max() < 1e-12
        return
    assert np.median(apart) > 1e-3
    spread = np.sqrt((error.var(ddof=1) + other.var(ddof=1)) / len(error))
    assert abs(error.mean() - other.mean()) < 4 * spread < 0.12 * error.mean()


# Control variates of the inner product


def expectations(X, y, attributes, slope):
    """Return mu (m, d): for each block, least squares on values of earlier blocks and one or two added zeros."""
    seen = [[] for _ in range(X.shape[1])]
    mu = np.zeros(X.shape)
    for start in range(0, len(X), 256):
        typical = np.mean([target**2 for pairs in seen for _, target in pairs]) if start else 1.0
        for i, pairs in enumerate(seen):
            values, targets = np.array(pairs).reshape(-1, 2).T
            design = np.stack([np.ones(targets.size), targets], axis=1)
            design = np.vstack([design, np.diag([1, np.sqrt(typical)])])
            if not slope:
                design = np.delete(np.delete(design, 1, axis=1), -1, axis=0)
            solution = np.linalg.lstsq(design, np.pad(values, (0, 1 + slope)))[0]
            mu[start : start + 256, i] = solution[0] + (solution[1] * y[start : start + 256] if slope else 0)
        for t in range(start, min(start + 256, len(X))):
            for i in attributes[t]:
                seen[i].append((X[t, i], y[t]))
    return mu


def listed_with_expectations(update, X, y, mu, attributes, uniforms, B, eta):
    """Run AERR or AELR with expected attributes mu (m, d), one replica and one example at a time."""
    w, theta = np.zeros((2, X.shape[1]))
    for x, target, m, drawn, u in zip(X, y, mu, attributes, uniforms, strict=True):
        if update == "eg":
            w = aelr_regressor(theta, B)
        yield w
        p = np.abs(w) if update == "eg" else w**2
        phi = w @ m - target + inner_product(w, x - m, p, invert(p, u))
        x_ = data_point(x, drawn)
        w, theta = aerr_update(w, phi, x_, B, eta), aelr_update(theta, phi, x_, eta)


@pytest.mark.parametrize("kind", ["mean", "label"])
@pytest.mark.parametrize(("update", "k_ip", "eta"), [("ogd", 1, [0.02, 0.3]), ("eg", 3, [0.02, 1.0])])
def test_control_variates_equal_the_listing(update, k_ip, eta, kind):
    X, y = problem(530, 40)
    settings, draw = {"B": [2.0, 0.7], "eta": eta}, {"update": update, "data_point": "uniform", "k_x": 3, "k_ip": k_ip}
    outputs, _ = run(X, y, [0, 1], settings, [256, 300, 530], average="last", control_variate=kind, **draw)
    for f in range(2):
        order = np.random.default_rng(f).permutation(len(X))
        examples = X[order] * SCALE, y[order]
        drawn = draws(generator("test", f), *X.shape, uniform, 3, k_ip)
        mu = expectations(*examples, drawn[0], kind == "label")
        for g in range(2):
            steps = list(listed_with_expectations(update, *examples, mu, *drawn, settings["B"][g], eta[g]))
            for c, W in outputs.items():
                np.testing.assert_allclose(W[f, :, g], steps[c - 1], rtol=0, atol=1e-9, err_msg=f"at {c}")


@pytest.mark.parametrize("kind", ["mean", "label"])
def test_targets_and_attributes_of_0_have_expectation_0(kind):
    X, y, draw = np.zeros((300, 3)), np.zeros(300), {"update": "ogd", "data_point": "uniform", "k_x": 1, "k_ip": 1}
    outputs, _ = run(X, y, [0], {"B": [1.0], "eta": [1.0]}, [300], average="last", control_variate=kind, **draw)
    assert not outputs[300].any()


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [("control_variate", "mean", "no control variate"), ("inner_product", "moment", "cannot be guided by moments")],
)
def test_pegasos_refuses_what_it_cannot_do(option, value, message):
    learner = GradientLearner(name="aer", update="pegasos", data_point="subset", **{option: value})
    assert message in learner.refuse()
