"""Control variates of the inner product: unbiased, equal to a literal version, the same in any batch."""

import numpy as np
import pytest
from hydra import compose, initialize_config_dir

from budgetreg.algorithms.engine import ControlVariate
from budgetreg.algorithms.hazan_koren_2012.gradients import EG, OGD, GradientLearner
from budgetreg.algorithms.learner import BudgetSplit, SideInformation
from budgetreg.algorithms.vectors import data_point, invert
from budgetreg.common.errors import ConfigError
from budgetreg.common.streams import generator, uniform
from budgetreg.config.catalogue import conf_dir
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table
from budgetreg.protocol.configuration import validate
from tests.learners.test_partial import SCALE, draws, problem

STATES = {"ogd": (OGD, np.square), "eg": (EG, np.abs)}


@pytest.mark.parametrize("slope", [False, True])
@pytest.mark.parametrize("improved", [False, True])
@pytest.mark.parametrize("update", STATES)
def test_mean_and_second_moment_of_the_inner_product_are_exact(update, improved, slope):
    """Enumerate all draws, for coefficients that are independent of the attributes."""
    d, rng = 5, np.random.default_rng(7)
    x, w, moments = rng.normal(size=d), rng.normal(size=(1, d, 2)) / d, rng.random(d)
    a, b = rng.normal(size=(2, d))
    kind, size = STATES[update]
    options = {"root_moments": np.sqrt(moments)[None]} if improved else {}
    state = kind(1, d, 1, {"B": np.array([3.0, 5.0]), "eta": np.ones(2)}, start=w, **options)
    state.project_and_accumulate(np.zeros(1, dtype=int))
    control = ControlVariate(state, 1, d, slope=slope)
    state.expect((a + 1j * b if slope else a)[None])
    y = 0.6
    mu = a + b * y if slope else a
    for g in range(2):
        w_g = w[0, :, g]
        p = np.abs(w_g) * np.sqrt(moments) if improved else size(w_g)
        p /= p.sum()
        estimates = np.empty(d)
        for j, u in enumerate(np.cumsum(p) - p / 2):
            drawn, coefficient = state.draw(np.array([[u]]))
            assert drawn[0, 0, g] == j
            unexpected, expected = control.split(drawn, x[drawn], np.array([y]))
            estimates[j] = expected[0, g] + coefficient[0, 0, g] * unexpected[0, 0, g]
        assert p @ estimates == pytest.approx(w_g @ x, rel=1e-10)
        about = p @ (estimates - w_g @ mu) ** 2
        assert about == pytest.approx((w_g**2 * (x - mu) ** 2 / p).sum(), rel=1e-10)


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


def listed(update, X, y, mu, attributes, uniforms, B, eta):
    """Run AERR or AELR with expected attributes mu (m, d), one replica and one example at a time."""
    d = X.shape[1]
    w, theta = np.zeros(d), np.zeros(d)
    for x, target, m, drawn, u in zip(X, y, mu, attributes, uniforms, strict=True):
        if update == "eg":
            w = B * np.sinh(theta) / np.cosh(theta).sum()
        yield w
        weights = STATES[update][1](w)
        j = invert(weights, u)
        phi = w @ m - target + (w[j] / weights[j] * weights.sum() * (x - m)[j]).mean() if w.any() else -target
        g = phi * data_point(x, drawn)
        theta = theta - np.clip(eta * g, -1, 1)
        v = w - eta * g
        w = v * (B / max(np.sqrt(v @ v), B))


def run(X, y, streams, settings, checkpoints, **options):
    orders = np.stack([np.random.default_rng(f).permutation(len(X)) for f in streams])
    settings = {name: np.array(values) for name, values in settings.items()}
    split = BudgetSplit(options.pop("k_x"), options.pop("k_ip"))
    accessor = Accessor(Table(X, y, SCALE), orders, len(settings["B"]), sum(split), checkpoints)
    rngs = [generator("test", f) for f in streams]
    learner = GradientLearner(
        name="test", **{"data_point": "uniform", "inner_product": "weight", "average": "last", **options}
    )
    return dict(learner.fit(accessor, settings, checkpoints, rngs, SideInformation(sum(split), split)))


@pytest.mark.parametrize("kind", ["mean", "label"])
@pytest.mark.parametrize(("update", "k_ip", "eta"), [("ogd", 1, [0.02, 0.3]), ("eg", 3, [0.02, 1.0])])
def test_the_learner_equals_the_listing(update, k_ip, eta, kind):
    X, y = problem(530, 40)
    settings = {"B": [2.0, 0.7], "eta": eta}
    outputs = run(X, y, [0, 1], settings, [256, 300, 530], update=update, control_variate=kind, k_x=3, k_ip=k_ip)
    for f in range(2):
        order = np.random.default_rng(f).permutation(len(X))
        examples = X[order] * SCALE, y[order]
        drawn = draws(generator("test", f), *X.shape, uniform, 3, k_ip)
        mu = expectations(*examples, drawn[0], kind == "label")
        for g in range(2):
            iterates = list(listed(update, *examples, mu, *drawn, settings["B"][g], eta[g]))
            for c, W in outputs.items():
                np.testing.assert_allclose(W[f, :, g], iterates[c - 1], rtol=0, atol=1e-9, err_msg=f"at {c}")


@pytest.mark.parametrize("kind", ["mean", "label"])
def test_targets_and_attributes_of_0_have_expectation_0(kind):
    X, y = np.zeros((300, 3)), np.zeros(300)
    options = {"update": "ogd", "control_variate": kind, "k_x": 1, "k_ip": 1}
    assert not run(X, y, [0], {"B": [1.0], "eta": [1.0]}, [300], **options)[300].any()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["algo=aer", "algo.control_variate=mean"], "algo.update=pegasos: its inner product has no control variate"),
        (["algo=aelr", "algo.control_variate=means"], "algo.control_variate=means: the control variate must be one of"),
        (["algo=ddaerr_two_phase", "+algo.control_variate=mean"], "algo.control_variate: no such key"),
        (["algo=online_ridge", "+algo.control_variate=mean"], "algo.control_variate: no such key"),
    ],
)
def test_learners_without_control_variates_refuse_the_option(overrides, message):
    with initialize_config_dir(str(conf_dir()), version_base="1.3"), pytest.raises(ConfigError) as refusal:
        validate(compose("config", overrides))
    assert str(refusal.value).startswith(message)
