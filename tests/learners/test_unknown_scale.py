"""Attributes whose values do not show their scale are left out and named, and no prediction grows without bound."""

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from sklearn import datasets

from budgetreg.cli.app import main
from budgetreg.common.notices import Notice
from budgetreg.estimators import AEML, AEMR, FixedSubset, ImputeRidge, SGDImpute
from budgetreg.protocol.split import spreads
from budgetreg.revealed.collection import Block
from budgetreg.revealed.columns import Rescaled, RunningScale
from budgetreg.revealed.tails import few_differ, over_decades
from budgetreg.study.model import learn
from tests.tiers import slow_but

N, TEST, D = 100, 2000, 6

Column = Callable[[np.random.Generator], np.ndarray]


def rare(at: float, within: float, other: Callable[[np.random.Generator, int], np.ndarray]) -> Column:
    """Return a column near one value in the rows learned from; one in twenty other rows has another one."""

    def drawn(rng: np.random.Generator) -> np.ndarray:
        x = at + within * rng.normal(size=N + TEST)
        x[N::20] = other(rng, len(x[N::20]))
        return x

    return drawn


COLUMNS: dict[str, Column] = {
    "rounding": rare(0, 1e-13, lambda rng, n: np.full(n, 0.5)),
    "small": rare(0, 1e-6, lambda rng, n: np.full(n, 0.5)),
    "nearly constant": rare(1, 1e-9, lambda rng, n: 1 + rng.normal(size=n)),
    "nearly constant and large": rare(1e9, 1.0, lambda rng, n: 1e9 * rng.normal(size=n)),
    "lognormal": lambda rng: np.exp(4 * rng.normal(size=N + TEST)),
    "lognormal, of both signs": lambda rng: np.exp(8 * rng.normal(size=N + TEST)) - 1,
    "tiny and lognormal": lambda rng: 1e-19 * np.exp(5 * rng.normal(size=N + TEST)),
}


def table(column: Column | None = None, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return rows to learn from, then rows to test on, of normal attributes and, last, two such columns."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(N + TEST, 1)) + rng.normal(size=(N + TEST, D))
    y = Z[:, :3].sum(axis=1) + rng.normal(size=N + TEST)
    return (Z if column is None else np.column_stack([Z, column(rng), column(rng)])), y


def error(estimator: ImputeRidge | AEMR | AEML | FixedSubset | SGDImpute, X: np.ndarray, y: np.ndarray) -> float:
    residuals = estimator.fit(X[:N], y[:N]).predict(X[N:]) - y[N:]
    return float(np.mean(np.square(residuals)) / y[N:].var())


def aemr() -> AEMR:
    return AEMR(k=3)


QUICK = [lambda: ImputeRidge(k=3), lambda: FixedSubset(k=3), lambda: SGDImpute(k=3, B=3.0, eta=0.03)]
SLOW = [lambda: AEML(k=3), lambda: ImputeRidge(k=3, impute="iterative")]


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        *slow_but([*product(QUICK[:1], COLUMNS), *product(QUICK, ["lognormal"])], product([*QUICK, aemr], COLUMNS)),
        *slow_but([], product(SLOW, ("rounding", "tiny and lognormal"))),
    ],
)
def test_no_error_is_above_that_without_the_columns(made, kind):
    X, y = table(COLUMNS[kind])
    with pytest.warns(Notice, match="some attributes are left out.*number 7, number 8"):
        estimator = made()
        with_columns = error(estimator, X, y)
    assert (estimator.coef_[-2:] == 0).all() and estimator.coef_[:D].any()
    assert with_columns < error(made(), X[:, :D], y) + 0.4


@pytest.mark.filterwarnings("ignore::budgetreg.common.notices.Notice")
@pytest.mark.parametrize("seed", slow_but([0, 1], range(5)))
def test_one_pass_over_lognormal_attributes_predicts_no_large_number(seed):
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(N + TEST, 3))
    X = np.exp(2.5 * (factors @ rng.normal(size=(3, 12)) / 2 + rng.normal(size=(N + TEST, 12)) / 2))
    X *= 10.0 ** rng.integers(-6, 7, 12)
    y = factors @ [1, 0.5, -0.5] + 0.5 * rng.normal(size=N + TEST)
    assert error(SGDImpute(k=4, B=3.0, eta=0.03), X, y) < 1.2


@pytest.mark.slow
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_the_joint_model_does_not_extrapolate_either(missing):
    """Values far from those seen change neither a prediction nor what is expected of others."""
    X, y = table(COLUMNS["rounding"])
    train = np.where(np.random.default_rng(1).random((N, D + 2)) < missing, np.nan, X[:N])
    model = learn(train, y[:N], seed=0, algo="aeml")
    assert model.left_out == (D, D + 1)
    holes = np.where(np.random.default_rng(2).random((TEST, D + 2)) < 0.3, np.nan, X[N:])
    assert np.square(model.predict(holes) - y[N:]).mean() < 1.2 * y[N:].var()


def test_everyday_units_leave_nothing_out():
    X, y = table()
    units = np.array([5e4, 1e-3, 1e9, 1.0, 1e-4, 30.0])
    level = np.array([2e5, 2e-3, 1e9, 0.0, -1e-3, 1e3])
    plain, scaled = (ImputeRidge(k=3).fit(of[:N], y[:N]) for of in (X, X * units + level))  # no notice, or an error
    np.testing.assert_allclose(scaled.predict(X[N:] * units + level), plain.predict(X[N:]), rtol=1e-6)


def tables_of_scikit_learn() -> Iterator[np.ndarray]:
    yield datasets.load_diabetes(scaled=False).data
    yield datasets.load_breast_cancer().data
    yield datasets.load_wine().data


@pytest.mark.parametrize("n", slow_but([4, 30], [3, 4, 8, 15, 30, 100]))
def test_no_column_of_the_bundled_tables_is_left_out(n):
    """The results in this repository stay as they are."""
    rng = np.random.default_rng(n)
    for X in tables_of_scikit_learn():
        d = X.shape[1]
        for _ in range(10):
            rows = X[rng.choice(len(X), n, replace=False)]
            values = np.column_stack([rows, rng.normal(size=n)])[None]
            block = Block(np.broadcast_to(np.arange(d + 1), values.shape), values)
            pilot = rows[:6]
            scale = np.broadcast_to(1 / spreads(pilot), (1, d))
            shift = pilot.mean(axis=0) * scale
            seen = Block(block.attributes, np.column_stack([rows * scale[0] - shift[0], values[0, :, d]])[None])
            assert not Rescaled([block], d, True).left_out.any()
            assert not Rescaled([seen], d, True, (scale, shift)).left_out.any()


def test_few_values_that_differ_do_not_show_how_far_away_others_will_be():
    same = np.zeros(40)

    def shown(*others: float, n: int = 40, least: float = 0.0) -> bool:
        return not few_differ(np.append(same[len(others) : n], others), least)

    assert shown(1, n=19) and not shown(1, n=20)
    assert shown(0.2, n=8, least=0.1) and not shown(0.05, n=8, least=0.1)
    assert shown(1, 2, 3) and not shown(1, 2, 3.1) and not shown(-1, 3.1, n=14) and shown(-1, 3.1, n=13)
    assert shown(1, 2, 3, 9) and shown() and not few_differ(np.array([0.0, 0, 5]))
    assert not few_differ(np.random.default_rng(0).integers(0, 2, 40).astype(float))


def test_columns_over_decades_stand_out():
    found = []
    for seed in range(50):
        rng = np.random.default_rng(seed)
        normal, skewed = list(rng.normal(size=(8, 30))), [np.exp(3 * rng.normal(size=30)) for _ in range(3)]
        found.append(over_decades([*normal, *skewed]))
        np.testing.assert_array_equal(found[-1], over_decades([*normal, *(-1e-9 * x for x in skewed)]))
    assert np.mean(found, axis=0)[8:].min() == 1
    assert np.mean(found, axis=0)[:8].mean() < 0.1, "ordinary attributes are rarely taken for such ones"
    assert not over_decades(skewed).any(), "all show their tails together"
    assert not over_decades(normal).any() and not over_decades([np.empty(0), np.ones(3), *normal]).any()
    milder = np.exp(1.1 * np.linspace(-1.5, 1.5, 30))
    assert not over_decades([*normal, milder]).any() and over_decades([*normal, milder, *skewed])[8]


def test_a_value_that_dominates_its_attribute_shows_no_scale():
    def scale(columns: np.ndarray, scaled: bool = True) -> RunningScale:
        stored = np.ones((1, columns.shape[1])), np.zeros((1, columns.shape[1]))
        return RunningScale(columns[None], scaled, stored)

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    X[7, 1], X[:, 2], X[::2, 3], X[:, 4] = 30, 0.1, np.arange(30) % 2, X[:, 4] * 1e-7
    weighted, left_out = scale(X).weighted()
    assert left_out.tolist() == [[False, True, False, False, True]] == (~weighted).tolist()
    np.testing.assert_allclose(scale(X).units()[0], [*X[:, :2].std(axis=0, ddof=1), 0.1, *X[:, 3:].std(axis=0, ddof=1)])
    weighted, left_out = scale(X[:, [1, 1, 0]]).weighted()
    assert not weighted.any() and left_out.tolist() == [[True, True, False]], "most are like this, and others may be"
    assert not scale(X[:3]).weighted()[0].any() and not scale(X[:3]).weighted()[1].any()
    assert scale(X, scaled=False).weighted()[0].all() and (scale(X, scaled=False).units() == 1).all()
    alone = scale(X[:0])
    assert not alone.weighted()[0].any() and not alone.weighted()[1].any()
    for row in X:
        alone.add(np.arange(5)[None, ::-1], row[None, ::-1])
    np.testing.assert_allclose(alone.means[:, :5], X.mean(axis=0)[None], rtol=1e-12)
    np.testing.assert_allclose(alone.units(), scale(X).units(), rtol=1e-12)


def test_the_pilot_does_not_scale_by_rounding():
    rng = np.random.default_rng(4)
    X = np.column_stack([5 * rng.normal(size=6), 1e-12 * rng.normal(size=6), np.full(6, 3.0)])
    unit = spreads(X)
    assert unit[0] == X[:, 0].std(ddof=1) and unit[1] > 1 and unit[2] == 3


@pytest.mark.usefixtures("undrawn")
def test_commands_name_what_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, y = table(COLUMNS["rounding"])
    header = ",".join([*(f"x{i}" for i in range(D)), "idle", "still", "y"])
    np.savetxt("own.csv", np.column_stack([X, y])[: N + 20], delimiter=",", header=header, comments="")
    words = "dataset=file dataset.path=own.csv algo=impute_ridge k=3 backend=sequential"
    assert main(f"run {words} repetitions=2 checkpoints=1 out=run".split()) == 0
    err = capsys.readouterr().err
    assert "impute_ridge: 'idle' in 2, 'still' in 2 of 2 repetitions" in err and "dataset.ranges=FILE" in err
    assert "radii" not in err
    assert main(f"fit {words} out=fit".split()) == 0
    assert "'idle' in 1, 'still' in 1 of 1 repetitions" in capsys.readouterr().err
    ranges = "".join(f"{name},-5,5\n" for name in header.split(",")[:-1])
    (tmp_path / "ranges.csv").write_text(f"attribute,low,high\n{ranges}")
    assert main(f"fit {words} dataset.ranges=ranges.csv out=known".split()) == 0
    assert "left out" not in capsys.readouterr().err
