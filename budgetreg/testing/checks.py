"""Checks that every learner of ``conf/algo`` has to pass, generated from its configuration.

A check takes a `Subject` and raises if it fails. The class of the learner declares its oracle, its costs, the values of
options to try and the checks to skip. This package knows how any learner has to behave in a run: what it pays, what it
depends on, which budgets it refuses.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from budgetreg.algorithms.learner import Batching, Learner
from budgetreg.config.extensions import blamed
from budgetreg.errors import ConfigError, DataError, described
from budgetreg.metering.table import Table
from budgetreg.streams import generator
from budgetreg.testing.expectations import CheckError, expect
from budgetreg.testing.oracles import oracle_of
from budgetreg.testing.steps import prices
from budgetreg.testing.subject import Subject, examined

__all__ = ["CHECKS", "CheckError", "CheckResult", "Subject", "examined", "run_check", "run_checks", "skip_reason"]

D, K = 8, 6

_ROUNDING = 1e-6
"""Largest relative change of a regressor by rounding when the origin of the data moves."""

_ERRORS = 5
"""Largest deviation of a mean, in standard errors. Seeds are fixed, so a check that passes once always passes."""


@dataclass(frozen=True)
class CheckResult:
    """The result of a check.

    Attributes
    ----------
    check : str
        Name of the check in `CHECKS`.
    passed : bool or None
        Whether the learner passed; None if the check was skipped.
    reason : str
        Why the check was skipped, or what failed; empty if passed.
    changes : str
        Options that differ from the learner's file, as ``key=value``; empty if none does.
    """

    check: str
    passed: bool | None
    reason: str = ""
    changes: str = ""


def skip_reason(learner: Learner, check: str) -> str | None:
    """Return why a check does not apply to a learner; None if it applies."""
    if check == "origin" and not learner.predicts:
        return "a subspace contains 0, wherever that is"
    return learner.skipped_checks.get(check)


def run_check(subject: Subject, check: str) -> CheckResult:
    """Run one check; any exception that the learner raises is a failure.

    Parameters
    ----------
    subject : Subject
        The learner to check.
    check : str
        Name of the check in `CHECKS`.
    """
    reason = skip_reason(subject.learner, check)
    if reason is not None:
        return CheckResult(check, None, reason, subject.changes)
    try:
        with blamed():
            CHECKS[check](subject)
    except CheckError as error:
        return CheckResult(check, False, str(error), subject.changes)
    except Exception as error:  # a learner that crashes has failed, and the others still have to be checked
        return CheckResult(check, False, described(error), subject.changes)
    return CheckResult(check, True, changes=subject.changes)


def run_checks(subject: Subject) -> Iterator[CheckResult]:
    """Yield the result of every check of a learner, then of its variants with changed options."""
    for variant in subject.variants():
        for check in CHECKS:
            yield run_check(variant, check)


def budget(subject: Subject) -> None:
    """Check that the bill equals the declared cost of an example, which is at most the budget.

    No value may change what is paid for it. So one run has dense, sparse and all-zero examples, after a first example
    that moves the regressor, and another run has all-zero examples alone, which leave it at ``w = 0``. A bill without
    random draws has to be exact. Otherwise its mean has to lie within some standard errors.
    """
    plan, setting = subject.plan(D, K), _setting(subject, 0)
    cost = subject.learner.cost(D, K, {name: value for name, (value,) in setting.items()})
    expect(max(cost) <= plan.per_example, f"an example costs {max(cost):.3g} attributes; the budget is {K}")
    m, F = 96, min(32, subject.learner.check_streams)
    orders, dense = np.tile(np.arange(m), (F, 1)), np.full((m, D), 0.5)
    X, y = np.array(_table(m).X), np.where(np.arange(m) % 3, 1.0, 0.5)
    X[:1], X[m // 2 :] = dense[:1], 0
    runs = {
        "": (X, {"the first example": (0, 1), "a sparse example": (1, m // 2), "an all-zero example": (m // 2, m)}),
        " at w = 0": (np.zeros_like(X), {"an all-zero example": (0, m)}),
    }
    for where, (values, parts) in runs.items():
        table, known = Table(values, y), Table(dense, y)
        _, reveals = subject.run(table, orders, _rngs(F, "bill"), K, setting, [1, m // 2, m], known=known)
        bill, shown = reveals.bill, len(reveals.seen[0])
        most, paid_for = bill.most.max(), bill.total.sum()
        allowed = plan.budget is None or most <= plan.per_example
        expect(allowed, f"an example cost {most} attributes; the budget is {plan.per_example}")
        expect(shown <= paid_for, f"{shown} values were shown and {paid_for} paid for")
        for what, (start, stop) in parts.items():
            paid = (bill.at[stop] - (bill.at[start] if start else 0))[:, 0] / (stop - start)
            expected = cost.at_zero if start == 0 else cost.usual
            expect(
                abs(paid.mean() - expected) <= _ERRORS * paid.std(ddof=1) / np.sqrt(F) + 1e-9,
                f"{what}{where} costs {paid.mean():.4g} attributes on average; it should be {expected:.4g}",
            )


def same_bytes(subject: Subject) -> None:
    """Check that a second run gives the same bytes, and each replica the same bytes without the others.

    Settings that share one solution, and streams that share work, are not separated: no run separates them either.
    """
    m, F, checkpoints = 40, 3, [3, 40]
    table, orders = _table(m), np.stack([generator("check order", f).permutation(m) for f in range(F)])
    together, _ = subject.run(table, orders, _rngs(F), K, _settings(subject), checkpoints)
    again, _ = subject.run(table, orders, _rngs(F), K, _settings(subject), checkpoints)
    expect(_equal(together, again), "the same seed gave other bytes")
    for g in range(2 if subject.learner.grid and not subject.learner.shares_settings else 0):
        alone, _ = subject.run(table, orders, _rngs(F), K, _setting(subject, g), checkpoints)
        outputs = [np.take(W, [g], axis=2 if subject.learner.predicts else 1) for W in together]
        expect(_equal(outputs, alone), "a setting's bytes depend on the other settings")
    for f in range(0 if subject.learner.batching is Batching.WITH_ITS_FOLDS else F):
        alone, _ = subject.run(table, orders[f : f + 1], _rngs(F)[f : f + 1], K, _settings(subject), checkpoints)
        expect(_equal([W[f : f + 1] for W in together], alone), "a stream's bytes depend on the other streams")


def permutation(subject: Subject) -> None:
    """Check that permuted attributes permute the mean of the regressors after a few examples, up to chance.

    For subspaces, the mean of the projections is compared.
    """
    m, F = 12, subject.learner.check_streams if subject.draws else 1
    table, order = _table(m), np.roll(np.arange(D), 3)
    permuted = Table(np.asarray(table.X)[:, order], table.y)
    orders = np.tile(np.arange(m), (F, 1))
    (W,), _ = subject.run(table, orders, _rngs(F), K, _setting(subject, 0))
    (V,), _ = subject.run(permuted, orders, _rngs(F, "permuted"), K, _setting(subject, 0), costs=prices(D)[order])
    if subject.learner.predicts:
        W, V = W[:, order, 0], V[:, :, 0]
    else:
        W, V = (Z[:, 0] @ Z[:, 0].transpose(0, 2, 1) for Z in (W[:, :, order], V))
    error = np.sqrt((W.var(axis=0) + V.var(axis=0)) / F)
    off = np.abs(W.mean(axis=0) - V.mean(axis=0))
    expect(
        (off <= _ERRORS * error + 1e-9 * np.abs(W).max()).all(),
        f"a mean weight is off by {off.max():.2g}, the standard error being {error.flat[off.argmax()]:.2g}",
    )


def unobserved(subject: Subject) -> None:
    """Check that values that the learner did not see change nothing: NaN in their place gives the same bytes."""
    m, extra = 40, 5
    table, orders = _table(m + extra), generator("check order").permutation(m + extra)[None, :m]
    (W,), reveals = subject.run(table, orders, _rngs(1), K, _setting(subject, 0))
    hidden = np.full(np.shape(table.X), np.nan)
    seen = reveals.seen
    hidden[seen] = np.asarray(table.X)[seen]
    expect(np.isnan(hidden).any(), "everything was shown")
    _expect_same(W, subject, Table(hidden, table.y), orders, settings=_setting(subject, 0), known=table)


def origin(subject: Subject) -> None:
    """Check that the origin of attributes and targets does not matter where both are centred.

    A constant that is added to each attribute and to the target may change the intercept, as it changes that of a
    line, and nothing else. Then the examples on which a learner steps do not depend on the origin, and its estimates
    are unbiased for centred examples. Values that neither the learner nor the pilot saw change nothing.
    """
    m, extra, N = 300, 5, 4
    table = _table(m + extra + N)
    order = generator("check order").permutation(m + extra + N)[None]
    order, pilot = order[:, : m + N], order[:, :N]
    if subject.draws:
        order = order[:, N:]
    run: dict[str, Any] = {"settings": _setting(subject, 0), "checkpoints": [min(order.size, 280)], "pilot": pilot}
    X, added = np.asarray(table.X), np.linspace(-3, 3, D)
    (W,), reveals = subject.run(table, order, _rngs(1), K, **run)
    (V,), _ = subject.run(Table(X + added, table.y + 7), order, _rngs(1), K, known=table, **run)
    V[:, -1] += added @ V[:, :-1] - 7
    expect(np.abs(W).max() > 0, "nothing was learned")
    off = np.abs(V - W).max() / np.abs(W).max()
    expect(off <= _ROUNDING, f"where zero is changes the regressor by {off:.2g} of it")
    hidden = np.full(X.shape, np.nan)
    for seen in (reveals.seen, pilot[0]):
        hidden[seen] = X[seen]
    _expect_same(W, subject, Table(hidden, table.y), order, known=table, **run)


def refusal(subject: Subject) -> None:
    """Check that budgets that are too small are refused in one line, and that all larger ones run.

    A learner that sees attributes in groups may also refuse budgets that are not multiples of `Learner.k_multiple`.
    """
    multiple = subject.learner.k_multiple
    accepted: list[int] = []
    for k in range(1, D + 1):
        try:
            subject.plan(D, k)
        except ConfigError as error:
            allowed = not accepted or k % multiple
            expect(allowed, f"k={accepted[-1] if accepted else 0} is accepted and k={k} refused")
            expect(str(error) and "\n" not in str(error), f"k={k} is refused by {str(error)!r}")
        else:
            accepted.append(k)
    expect(accepted and accepted[0] > 1, "k=1 is accepted" if accepted else "no budget is accepted")
    subject.run(_table(10), np.arange(10)[None], _rngs(1), accepted[0], _setting(subject, 0))


CHECKS: Mapping[str, Callable[[Subject], None]] = {
    "unbiased": lambda subject: oracle_of(subject.learner).unbiased(subject),
    "second moments": lambda subject: oracle_of(subject.learner).second_moments(subject),
    "full at k=d": lambda subject: oracle_of(subject.learner).full_information(subject),
    "boundary": lambda subject: oracle_of(subject.learner).boundary(subject),
    "minimiser": lambda subject: oracle_of(subject.learner).minimiser(subject),
    "budget": budget,
    "same bytes": same_bytes,
    "permutation": permutation,
    "unobserved": unobserved,
    "origin": origin,
    "small k": refusal,
}


def _expect_same(W: np.ndarray, subject: Subject, hidden: Table, orders: np.ndarray, **run: Any) -> None:
    """Expect the same outputs W from a table whose unseen values are NaN."""
    try:
        (V,), _ = subject.run(hidden, orders, _rngs(1), K, **run)
        same = _equal([W], [V])
    except DataError:  # as outputs with NaN are refused
        same = False
    expect(same, "values that were not shown changed the regressor")


def _table(m: int) -> Table:
    """Return sparse examples with targets that depend on each attribute in a different way."""
    rng = generator("check examples", m)
    X = rng.standard_normal((m, D)) * (rng.random((m, D)) < 0.7) / np.sqrt(D)
    return Table(X, np.clip(X @ np.linspace(-1, 2, D), -1, 1))


def _rngs(F: int, purpose: str = "draws") -> list[np.random.Generator]:
    return [generator("check", purpose, f) for f in range(F)]


def _settings(subject: Subject) -> dict[str, list[float]]:
    return {parameter.name: list(parameter.tried) for parameter in subject.learner.parameters}


def _setting(subject: Subject, g: int) -> dict[str, list[float]]:
    return {name: values[g : g + 1] for name, values in _settings(subject).items()}


def _equal(first: list[np.ndarray], second: list[np.ndarray]) -> bool:
    return [W.tobytes() for W in first] == [W.tobytes() for W in second]
