"""Whether the correlations of a factor model count."""

import numpy as np
import pytest

from budgetreg.algorithms.factors import covariance as module
from budgetreg.algorithms.factors.covariance import Trust

Seen = list[tuple[np.ndarray, np.ndarray]]


def drawn(C: np.ndarray, T: int, k: int, seed: int, gaps: bool = False) -> Seen:
    """Return k of p columns, and the last one, of T examples with the covariance C; with gaps, some are missing."""
    rng, p = np.random.default_rng(seed), len(C)
    x = rng.multivariate_normal(np.zeros(p), C, T)
    S = np.sort(np.argsort(rng.random((T, p - 1)), axis=1)[:, :k], axis=1)
    S = np.append(S, np.full((T, 1), p - 1), axis=1)
    values = np.take_along_axis(x, S, axis=1)
    if gaps:
        missing = rng.random(S.shape) < 0.3
        S, values = np.where(missing, p, S), np.where(missing, 0.0, values)
    return [(S, values)]


def correlated(p: int, correlation: float) -> np.ndarray:
    """Return p - 1 attributes with equal correlations and deviations 1, 2, ..., and a target."""
    C = np.full((p, p), correlation) + (1 - correlation) * np.eye(p)
    deviations = np.arange(1.0, p + 1)
    C[-1, :-1] = C[:-1, -1] = 0.3
    return C * np.outer(deviations, deviations)


def test_correlations_that_predict_later_examples_count() -> None:
    C, live, trust = correlated(6, 0.6), np.arange(6), Trust(6)
    first, later = drawn(C, 200, 3, 0), drawn(C, 200, 3, 1)
    np.testing.assert_array_equal(trust.trusted(first, live, C), C)
    np.testing.assert_array_equal(trust.trusted(first + later, live, C), C)


def test_correlations_count_of_which_nothing_can_be_said() -> None:
    claimed, true = correlated(6, 0.05), correlated(6, 0.0)
    live, trust = np.arange(6), Trust(6)
    trust.trusted(drawn(true, 200, 3, 0), live, claimed)
    np.testing.assert_array_equal(trust.trusted(drawn(true, 400, 3, 1), live, claimed), claimed)


def test_correlations_that_do_not_are_dropped() -> None:
    claimed, true = correlated(6, 0.6), correlated(6, 0.0)
    live, trust = np.arange(6), Trust(6)
    first, later = drawn(true, 200, 3, 0), drawn(true, 400, 3, 1)
    np.testing.assert_array_equal(trust.trusted(first, live, claimed), claimed)  # there are no later examples yet
    result = trust.trusted(first + later, live, claimed)
    np.testing.assert_allclose(np.diagonal(result), np.diagonal(claimed))
    np.testing.assert_allclose(result[:5, :5], np.diag(np.diagonal(claimed)[:5]))


def test_correlations_count_again_when_later_examples_show_it() -> None:
    C, none, live, trust = correlated(6, 0.6), correlated(6, 0.0), np.arange(6), Trust(6)
    seen = drawn(none, 200, 3, 0)
    trust.trusted(seen, live, C)
    seen += drawn(none, 400, 3, 1)
    assert (trust.trusted(seen, live, C) != C).any()
    np.testing.assert_array_equal(trust.trusted(seen + drawn(C, 600, 3, 2), live, C), C)


def test_the_target_is_not_explained_better_than_before() -> None:
    claimed, true = correlated(6, 0.9), correlated(6, 0.0)
    live, trust = np.arange(6), Trust(6)
    first, later = drawn(true, 200, 3, 0), drawn(true, 400, 3, 1)
    trust.trusted(first, live, claimed)
    result = trust.trusted(first + later, live, claimed)

    def explained(C: np.ndarray) -> float:
        return float(C[-1, :-1] @ np.linalg.solve(C[:-1, :-1], C[:-1, -1]))

    assert explained(result) == pytest.approx(explained(claimed))
    assert np.linalg.eigvalsh(result).min() > 0


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("correlation", [-0.1, 0.0, 0.1, 0.8])
def test_predictions_are_clearly_worse_than_the_mean_and_no_weights_would_add_up(
    correlation: float, gaps: bool
) -> None:
    """By a listing, with columns that are not live before and after. If .9 is .1, predictions are only too large.

    All attributes have the correlation .3 with the target.
    """
    claimed, true, live = correlated(7, 0.9), correlated(7, correlation), np.array([0, 2, 3, 4, 5, 6])
    trust, cells = Trust(7), np.ix_(live, live)
    first, later = drawn(claimed[cells], 800, 4, 0, gaps), drawn(true[cells], 600, 4, 1, gaps)
    trust.trusted(first, live, claimed[cells])
    result = trust.trusted(first + later, live, claimed[cells])
    deviations = np.sqrt(np.diagonal(claimed[cells]))
    R, losses = claimed[cells] / np.outer(deviations, deviations), np.zeros((2, 600))
    for t, (columns, values) in enumerate(zip(*later[0], strict=True)):
        i = columns[columns < 5]
        x = values[columns < 5] / deviations[i]
        for at in range(len(i)):
            others = np.arange(len(i)) != at
            predicted = R[i[at], i[others]] @ np.linalg.solve(R[np.ix_(i[others], i[others])], x[others])
            losses[:, t] += (x[at] - predicted) ** 2 - x[at] ** 2, 0.3 * x[at] * (0.3 * x[others]).sum()
    worse, add_up = losses.sum(axis=1) > 3 * np.sqrt(600) * losses.std(axis=1)
    assert worse == (correlation < 0.5)
    assert add_up == (correlation > 0)
    assert (result[0, 1] == 0) == (worse and not add_up)


def test_they_are_tried_anew_with_half_as_many_examples_again() -> None:
    claimed, true = correlated(6, 0.6), correlated(6, 0.0)
    live, trust, examples = np.arange(6), Trust(6), drawn(true, 600, 3, 1)[0]

    def seen(T: int) -> Seen:
        return [(examples[0][:T], examples[1][:T])]

    trust.trusted(seen(400), live, claimed)
    np.testing.assert_array_equal(trust.trusted(seen(599), live, claimed), claimed)
    assert (trust.trusted(seen(600), live, claimed) != claimed).any()


def test_the_last_examples_that_fit_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 700 later examples the last 100 are, by which the correlations count; by the others they do not."""
    C, opposed, live = correlated(6, 0.6), correlated(6, -0.1), np.arange(6)
    first = drawn(C, 200, 3, 0)
    later = drawn(opposed, 600, 3, 1) + drawn(C, 100, 3, 2)
    trust = Trust(6)
    trust.trusted(first, live, C)
    assert (trust.trusted(first + later, live, C) != C).any()
    monkeypatch.setattr(module, "_TRIAL_WORK", 100 * 4**3)
    trust = Trust(6)
    trust.trusted(first, live, C)
    np.testing.assert_array_equal(trust.trusted(first + later, live, C), C)
