"""AESVR: the listing's moments by enumeration, the learner against the listing, and its errors."""

from itertools import islice, product
from math import ceil, erf, log2, pi, sqrt

import numpy as np
import pytest
from hydra import compose, initialize_config_dir

from budgetreg.algorithms.hazan_koren_2012 import aesvr
from budgetreg.algorithms.hazan_koren_2012.aesvr import SupportVectorLearner
from budgetreg.algorithms.learner import BudgetSplit
from budgetreg.algorithms.tasks import mean_loss
from budgetreg.algorithms.vectors import data_point, invert
from budgetreg.common.streams import generator
from budgetreg.config.catalogue import conf_dir
from budgetreg.data.distributions import Sphere
from budgetreg.metering.table import Table
from budgetreg.protocol.configuration import validate
from budgetreg.protocol.plan import make_plan
from budgetreg.protocol.repetitions import run_repetitions
from tests.learners.problems import fit
from tests.plans import journaled

DELTA = 0.2


def smoothed_loss(u, eps, delta=DELTA):
    """``f_eps(u)``: its two terms ``rho(v) = v erf(v) + exp(-v^2)/sqrt(pi)``."""
    terms = ((u - delta) / eps, (u + delta) / eps)
    return eps / 2 * sum(v * np.vectorize(erf)(v) + np.exp(-np.square(v)) / sqrt(pi) for v in terms) - delta


def slope(u, eps, delta=DELTA):
    """``f_eps'(u)``: half a sum of error functions, from the standard library."""
    return (erf((u - delta) / eps) + erf((u + delta) / eps)) / 2


# The loss and the series


@pytest.mark.parametrize("eps", [0.3, 1.0, 2.0])
def test_smoothed_loss_is_close_and_has_its_slope(eps):
    u = np.linspace(-4, 4, 161)
    smooth = smoothed_loss(u, eps)
    gap = smooth - np.maximum(np.abs(u) - DELTA, 0)
    assert (gap > -1e-12).all() and gap.max() <= eps
    numeric = (smoothed_loss(u + 1e-6, eps) - smoothed_loss(u - 1e-6, eps)) / 2e-6
    np.testing.assert_allclose(aesvr.smoothed_slope(u, DELTA, eps), numeric, atol=1e-8)
    np.testing.assert_allclose(aesvr.smoothed_slope(u, DELTA, eps), [slope(each, eps) for each in u], atol=1e-14)


def test_series_is_the_error_function():
    for theta in (-2.0, -0.4, 0.0, 1.3):
        powers = theta ** np.arange(aesvr.ORDERS)
        assert aesvr.COEFFICIENTS @ powers == pytest.approx(erf(theta), abs=1e-12)
        # Order n has the probability 2^-(n+1).
        assert (aesvr.WEIGHTS * 0.5 ** np.arange(1, aesvr.ORDERS + 1)) @ powers == pytest.approx(erf(theta), abs=1e-12)


def test_numbers_of_averaged_draws_and_their_expectation():
    # The number is ceil(16 B^2 / eps^2), and rounding does not raise it to the next integer.
    B = np.array([1.0, 1.0, 0.1, 1.2, 0.3])
    eps = (2, 0.5, 1, 0.4, 0.3)
    assert [int(aesvr.averaged_draws(b, e)) for b, e in zip(B, eps, strict=True)] == [4, 64, 1, 144, 16]
    for N in (1, 4, 5, 64, 1000):
        literal = sum(n / 2 ** (n + 1) * (1 if n <= 2 * log2(N) else N) for n in range(1, 200, 2))
        assert aesvr.expected_draws(N) == pytest.approx(2 * literal)
    worst = max(aesvr.expected_draws(N) for N in range(1, 2000))
    assert worst == pytest.approx(2.0556, abs=1e-4)
    assert worst < aesvr.INNER_PRODUCT_DRAWS


W = np.array([0.6, 0.0, -0.9])
X = np.array([0.5, 7.0, -0.3])
Y = 0.4


@pytest.mark.parametrize(("B", "eps"), [(1.0, 6.0), (2**0.5, 8.0), (1.0, 8**0.5)])
def test_the_second_moment_is_the_sum_over_orders(B, eps):
    """By all outcomes of the listing's draws; at the large scales, orders above 3 are negligible."""
    p, inner, N = W**2 / (W @ W), W @ X, ceil(round(4 * (2 * B / eps) ** 2, 9))
    theta, variance, total = (inner - Y - DELTA) / eps, ((W @ W) * np.square(X[W != 0]).sum() - inner**2) / eps**2, 0.0
    for n, weight in ((1, 8 / sqrt(pi)), (3, -32 / 3 / sqrt(pi))):
        N_n = 1 if n <= 2 * log2(N) else N
        mean = square = 0.0
        for drawn in product([0, 2], repeat=n * N_n):
            uniforms = iter([p[0] / 2 if j == 0 else (1 + p[0]) / 2 for j in drawn])
            estimate, attributes = aesvr.gen_est(W, X / eps, (Y + DELTA) / eps, 2 * B / eps, n, uniforms)
            assert attributes == list(drawn)
            mean += p[list(drawn)].prod() * estimate
            square += p[list(drawn)].prod() * estimate**2
        assert mean == pytest.approx(weight * theta**n)
        assert square == pytest.approx(weight**2 * (theta**2 + variance / N_n) ** n)
        total += 0.5 ** (n + 1) * square
    if eps > 3:
        assert aesvr.second_moment(theta, variance, N) == pytest.approx(total, rel=1e-4)


def test_second_moment_explodes_below_the_residuals():
    """Lemma 4.1's bound fails, because averaging reduces the variance but not the mean."""
    moments = [
        aesvr.second_moment(1 / eps, 0.0, int(aesvr.averaged_draws(np.array(1.0), eps))) for eps in (2, 1, 0.5, 0.25)
    ]
    assert moments[0] < 2 and moments[1] < 10
    assert moments[2] > 1e4 and moments[3] > 1e20
    assert aesvr.second_moment(1e6, 0.0, 4) == np.inf


# The learner


CHECKPOINTS = [1, 3, 256, 257, 290]


def problem(m=290, d=7, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) * (rng.random((m, d)) > 0.3) / np.sqrt(d)
    return X, np.clip(X @ rng.normal(size=d), -1, 1)


def run(X, y, streams, settings, *, budget=None, average="all", **options):
    orders = np.stack([np.random.default_rng(f).permutation(len(X)) for f in streams])
    run = {"settings": settings, "rngs": [generator("test", f) for f in streams], "budget": budget}
    learner = SupportVectorLearner(name="aesvr", average=average, delta=DELTA, **options)
    outputs, accessor = fit(learner, X, y, orders, 5, CHECKPOINTS, given={"budget_split": BudgetSplit(2, 3)}, **run)
    return outputs, accessor.bill()


class Draws:
    """The draws of a stream, example by example."""

    def __init__(self, stream, d, residual):
        self._rng, self._d, self._residual = generator("test", stream), d, residual
        if residual == "gen_est":
            self._key = self._rng.integers(2**64, size=2, dtype=np.uint64)

    def examples(self, m):
        for block in range(-(-m // 256)):
            attributes = self._rng.integers(0, self._d, size=(256, 2))
            if self._residual == "plug_in":
                for drawn, uniforms in zip(attributes, self._rng.random((256, 3)), strict=True):
                    yield drawn, iter(uniforms)
                continue
            orders = self._rng.geometric(0.5, (256, 2)) - 1
            uniforms = self._rng.random((256, 2, 8))
            for t in range(256):
                yield attributes[t], [(orders[t, call], self._numbers(uniforms, block, t, call)) for call in (0, 1)]

    def _numbers(self, uniforms, block, t, call):
        yield from uniforms[t, call]
        counter = np.array([0, block, t, call], dtype=np.uint64)
        rng = np.random.Generator(np.random.Philox(key=self._key, counter=counter))
        while True:
            yield rng.random()


def plug_in(X, y, draws, B, eta, eps):
    """Yield the iterates along slopes at estimated residuals, and the attributes drawn for each example."""
    w = np.zeros(X.shape[1])
    for x, target, (drawn, uniforms) in zip(X, y, draws, strict=True):
        j = invert(w**2, np.array(list(uniforms)))
        yield w, np.concatenate([drawn, j])
        product = (w @ w * x[j] / w[j]).mean() if j.size else 0.0
        v = w - eta * slope(product - target, eps) * data_point(x, drawn)
        w = v * (B / max(np.sqrt(v @ v), B))


def listed(X, y, stream, B, eta, eps, residual):
    """Return iterates (m, d) and attributes paid (m,), one example at a time."""
    order = np.random.default_rng(stream).permutation(len(X))
    draws = list(islice(Draws(stream, X.shape[1], residual).examples(len(X)), len(X)))
    if residual == "plug_in":
        steps = plug_in(X[order], y[order], draws, B, eta, eps)
    else:
        attributes, calls = zip(*draws, strict=True)
        steps = aesvr.aesvr(X[order], y[order], np.array(attributes), calls, B, eta, DELTA, eps)
    iterates, drawn = zip(*steps, strict=True)
    return np.array(iterates), np.array([*map(len, drawn)])


@pytest.mark.parametrize(("residual", "eps"), [("gen_est", 2.0), ("gen_est", 0.9), ("plug_in", 0.3)])
def test_learner_equals_listing(residual, eps):
    X, y = problem()
    settings = {"B": [eps / 2, 3.0], "eta": [0.3, 0.02]}  # four draws are averaged, or many
    results = {rule: run(X, y, [0, 1], settings, average=rule, residual=residual, eps=eps) for rule in ("all", "last")}
    for f, g in np.ndindex(2, 2):
        iterates, paid = listed(X, y, f, settings["B"][g], settings["eta"][g], eps, residual)
        if residual == "gen_est" and g == 0:
            assert paid.max() > 2 + 8  # the long products are among those compared
        for c in CHECKPOINTS:
            for rule, expected in (("all", iterates[:c].mean(axis=0)), ("last", iterates[c - 1])):
                outputs, bill = results[rule]
                np.testing.assert_allclose(outputs[c][f, :, g], expected, rtol=0, atol=1e-9, err_msg=f"{rule} at {c}")
                assert bill.at[c][f, g] == paid[:c].sum()
    if residual == "plug_in":
        run(X, y, [0], settings, residual=residual, eps=eps, budget=5)  # the accessor refuses to exceed it


def test_it_learns_on_the_sphere():
    """After 1500 examples: the zero predictor's loss is .216, and 5.8 attributes were paid per example."""
    sphere = Sphere(d=10, noise=0.05, n=1500, n_test=1000)
    data = sphere.draw(0, 0)
    table, test = Table(data.X, data.y), np.arange(1500, 2500)
    losses, orders = {}, np.tile(np.arange(1500), (2, 1))
    for residual in ("gen_est", "plug_in"):
        learner = SupportVectorLearner(name="aesvr", residual=residual, delta=0.05, eps=2.0)
        run = {"settings": {"B": [1.0], "eta": [0.03]}, "given": {"budget_split": BudgetSplit(4, 3)}, "budget": None}
        rngs = [generator("learn", f) for f in range(2)]
        outputs, accessor = fit(learner, data.X, data.y, orders, 7, rngs=rngs, **run)
        losses[residual] = np.mean([mean_loss(table, test, w, 0.05)[0] for w in outputs[1500]])
        mean = accessor.bill().total / 1500
        if residual == "gen_est":
            assert np.abs(mean - 4 - aesvr.expected_draws(4)).max() < 0.4
    zero = np.maximum(np.abs(data.y[test]) - 0.05, 0).mean()
    assert mean_loss(table, test, np.zeros((10, 1)), 0.05) == pytest.approx(zero)
    assert zero == pytest.approx(0.215, abs=0.01)
    assert losses["gen_est"] < 0.5 * zero
    assert losses["plug_in"] < 0.4 * zero


# The configuration


SMALL = (
    *("algo=aesvr", "algo.eps=2", "algo.grid.B=[0.5,1]", "algo.grid.eta=[0.5,2]", "k=7", "checkpoints=[20,60]"),
    *("dataset=sphere", "dataset.d=10", "dataset.noise=0.05", "dataset.n=60", "dataset.n_test=50", "tuning.folds=3"),
)


def plan_of(*overrides):
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        return make_plan(validate(compose("config", [*SMALL, *overrides])))


def test_plan_of_a_budget_on_average():
    plan = plan_of()
    assert (plan.budget_split.k_x, plan.per_example, plan.budget, plan.notes) == (4, 7, None, ())
    assert plan.settings["eta"][:2] == pytest.approx([0.5 * np.sqrt(4 / 1200), 1.0 * np.sqrt(4 / 1200)])
    # GenEst needs no split; the plug-in keeps its budget for every example.
    assert plan_of("algo.split=even").budget_split.k_x == 4
    plan = plan_of("algo.residual=plug_in", "algo.split=5")
    assert (*plan.budget_split, plan.budget) == (2, 5, 7)


def test_harmful_small_eps_gives_one_warning():
    (note,) = plan_of("algo.eps=0.5").notes
    assert "algo.eps=0.5" in note and "plug_in" in note and "\n" not in note
    assert plan_of("algo.eps=0.5", "algo.residual=plug_in").notes == ()


def test_tuning_and_error_use_the_loss_in_every_batch():
    plan = plan_of()
    result = journaled(plan)[0]
    again = plan_of("backend.batch_size=1")
    assert journaled(again)[0] == result
    last = result["curve"][-1]
    assert 0 < last["test_svr_loss"] < 0.3
    assert last["test_svr_loss"] != last["test_mse"]
    assert result["run"]["attributes_mean"] < 7 < result["run"]["attributes_max"]


def test_parameters_are_chosen_by_the_loss():
    """All residuals are within delta, so all settings tie, and the first one wins."""
    plan = plan_of("algo.residual=plug_in", "algo.delta=1.5")
    run = run_repetitions(plan, [0], lambda done: None)[0]["run"]
    assert (run["p_B"], run["p_eta"]) == (0.5, plan.settings["eta"][0])
