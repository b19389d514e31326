"""`partial_fit`: examples in pieces have the numbers of all at once, and only what was seen of them is stored."""

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from budgetreg.algorithms.gonen_2016 import SecondMomentLearner
from budgetreg.algorithms.learner import Observation
from budgetreg.common.streams import generator
from budgetreg.estimators import AELR, ESTIMATORS, BudgetEstimator, ObservationError, SGDImpute
from budgetreg.estimators.parameters import learner_of
from tests.estimators.tables import small, table

NOT_CONTINUED = {
    # A share of all examples is first.
    *("AEFA", "DDAELRTwoPhase", "DDAERRTwoPhase", "FixedSubset", "POPCAImportance", "TwoPhaseSparse"),
    *("AEML", "AEMR"),  # they plan their draws by what was seen
}
UNTUNED = [name for name, cls in ESTIMATORS.items() if not cls.tuned]
CONTINUED = [name for name in UNTUNED if name not in NOT_CONTINUED]


def ready(name: str, **changes: Any) -> Any:
    """Return an estimator that goes on with more examples: its parameters do not depend on how many there are."""
    moments = "moments" in ESTIMATORS[name]().get_params()
    given = {"scale": "none", "pilot": 3, "moments": "pilot"} if moments else {"scale": "none", "pilot": 0}
    return small(name, **{**given, **changes})


def learned(estimator: Any) -> list[np.ndarray]:
    parts = (estimator.coef_, estimator.intercept_) if hasattr(estimator, "coef_") else (estimator.components_,)
    return [np.asarray(part) for part in (*parts, estimator.attributes_seen_)]


def in_pieces(estimator: BudgetEstimator, X: np.ndarray, y: np.ndarray, cuts: Sequence[int]) -> BudgetEstimator:
    for begin, end in zip([0, *cuts], [*cuts, len(X)], strict=True):
        estimator.partial_fit(X[begin:end].copy(), y[begin:end].copy())
    return estimator


def assert_same(one: Any, other: Any) -> None:
    for a, b in zip(learned(one), learned(other), strict=True):
        np.testing.assert_array_equal(a, b)


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10**6), cuts=st.lists(st.integers(8, 59), max_size=2, unique=True), average=st.booleans())
def test_pieces_have_the_numbers_of_the_whole(seed: int, cuts: list[int], average: bool) -> None:
    X, y = table(60, 5, seed=seed)
    one = AELR(k=3, B=1.0, eta=0.1, pilot=3, average="suffix" if average else "all", random_state=seed)
    other = AELR(**one.get_params())
    assert_same(in_pieces(one, X, y, sorted(cuts)), other.partial_fit(X, y))


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTINUED)
def test_what_is_seen_of_an_example_does_not_change_when_others_follow(name: str) -> None:
    """An earlier example has no other values any more, so that drawing others would fail."""
    X, y = table(300, 6, seed=4)  # more than one block of examples
    k = 6 if learner_of(ESTIMATORS[name].algo).observation is Observation.ALL else 4
    pieces = in_pieces(ready(name, k=k), X, y, [70, 71, 257])
    assert_same(pieces, ready(name, k=k).partial_fit(X, y))
    # A fit takes examples in a random order: of rows that it brings into theirs, it learns the same.
    rows = np.empty(len(X), dtype=int)
    rows[generator("order", 0, "table", 0).permutation(len(X))] = np.arange(len(X))
    whole = ready(name, k=k).fit(X[rows], y[rows])
    if pieces.get_params().get("pilot"):
        assert pieces.attributes_seen_ > whole.attributes_seen_  # of which the pilot takes examples at the end
    elif name in ("Lasso", "Ridge"):  # sums are in the order of the rows
        np.testing.assert_allclose(pieces.coef_, whole.coef_, rtol=1e-10)
    else:
        assert_same(pieces, whole)


def test_a_wrong_declaration_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SecondMomentLearner, "continues", True)
    X, y = table(60, 6)
    model = ready("POPCAImportance", k=2).partial_fit(X[:20], y[:20])
    with pytest.raises(ObservationError, match=r"example \d+: .*was not seen by an earlier call"):
        model.partial_fit(X[20:], y[20:])


def test_only_what_was_seen_is_stored() -> None:
    X, y = table(300, 100)
    model = SGDImpute(k=2, B=1.0, eta=0.01, pilot=0, scale="none").partial_fit(X, y)
    assert model.attributes_seen_ == 2 * 300
    # A cell and its value take 16 bytes, and a target 8.
    assert len(pickle.dumps(model)) < 300 * (2 * 16 + 8) + 4000 < X.nbytes / 10
    again = pickle.loads(pickle.dumps(model)).partial_fit(X[:1], y[:1])
    assert again.attributes_seen_ == 2 * 301


def test_learners_that_depend_on_the_number_of_examples_have_no_such_method() -> None:
    for name in ESTIMATORS:
        assert hasattr(ready(name), "partial_fit") == (name in CONTINUED)
    for hidden in ({"pilot": None}, {"scale": "max_abs"}, {"center": "full"}):
        assert not hasattr(ready("AELR", **hidden), "partial_fit")
    with pytest.raises(AttributeError) as missing:
        AELR(k=2, B=1.0, eta=0.1).partial_fit(*table(20, 3))
    assert "AELR: the pilot is a share of all examples; give a number of rows" in str(missing.value.__cause__)


def test_a_call_that_fails_changes_nothing() -> None:
    X, y = table(40, 4)
    model, other = ready("AELR").partial_fit(X[:20], y[:20]), ready("AELR").partial_fit(X[:20], y[:20])
    before = learned(model)
    with pytest.raises(ValueError, match="contains NaN"):
        model.partial_fit(np.where(X > 3, np.nan, X), y)
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :3], y)
    with pytest.raises(ValueError, match=r"AELR\.partial_fit: other than at first: B, k; begin with a new"):
        model.set_params(k=3, B=2.0).partial_fit(X[20:], y[20:])
    with pytest.raises(ValueError, match="eta must be given"):
        model.set_params(k=4, B=1.0, eta=None).partial_fit(X[20:], y[20:])
    for a, b in zip(before, learned(model), strict=True):
        np.testing.assert_array_equal(a, b)
    model.set_params(eta=0.05)
    assert_same(model.partial_fit(X[20:], y[20:]), other.partial_fit(X[20:], y[20:]))
    with pytest.raises(ValueError, match=r"k=9: the attribute budget must be at most d=3"):
        model.set_params(k=9).fit(X[:, :3], y)
    with pytest.raises(ValueError, match="X has 3 attributes, not 4 as before"):
        model.set_params(k=4).partial_fit(X[:, :3], y)
    with pytest.raises(ValueError, match=r"pilot=50: 50 full rows of 4 attributes cost as much as"):
        ready("AELR", pilot=50).partial_fit(X, y)


def test_a_fit_forgets_what_came_before() -> None:
    X, y = table(40, 4)
    model = ready("AELR", k=3).partial_fit(X, y).fit(X[:, :3], y)
    assert_same(model.partial_fit(X[:, :3], y), ready("AELR", k=3).partial_fit(X[:, :3], y))


def test_a_seed_that_is_drawn_is_drawn_once() -> None:
    X, y = table(40, 4)
    models = [ready("AELR", random_state=np.random.RandomState(3)) for _ in range(2)]
    assert_same(in_pieces(models[0], X, y, [10]), models[1].partial_fit(X, y))


def test_frames_are_learned_from_by_name() -> None:
    X, y = table(40, 3)
    frame = pd.DataFrame(X, columns=list("abc"))
    model = in_pieces(ready("SGDImpute", k=2), X, y, [20])
    named = ready("SGDImpute", k=2).partial_fit(frame[:20], y[:20]).partial_fit(frame[20:], y[20:])
    assert_same(named, model)
    with pytest.raises(ValueError, match="feature names"):
        named.partial_fit(frame[["b", "a", "c"]], y)
