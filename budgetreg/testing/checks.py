"""Checks that every learner of ``conf/algo`` has to pass, generated from its configuration.

A check takes a `Subject` and raises if it fails. The class of the learner declares its oracle, its costs, the values of
options to try and the checks to skip. This package knows how any learner has to behave in a run: what it pays, what it
depends on, which budgets it refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from budgetreg.algorithms import contract
from budgetreg.algorithms.learner import Batching, Fit, Learner, Observation, SideInformation
from budgetreg.common.errors import ConfigError, DataError, described
from budgetreg.common.streams import generator
from budgetreg.config.catalogue import blamed
from budgetreg.config.composition import Composer
from budgetreg.config.options import REQUIRED, options_of
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.ledger import Bill
from budgetreg.metering.table import Origin, Table
from budgetreg.protocol.configuration import Config, validate
from budgetreg.protocol.plan import Plan, make_plan
from budgetreg.testing.certificates import ERRORS, CheckError, D, K, expect
from budgetreg.testing.enumeration import prices
from budgetreg.testing.oracles import oracle_of

__all__ = ["CHECKS", "CheckError", "CheckResult", "Subject", "examined", "run_check", "run_checks", "skip_reason"]

_ROUNDING = 1e-6
"""Largest relative change of a regressor by rounding when the origin of the data moves."""


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
    for changes, learner in variants(subject.learner):
        words = " ".join(f"{key}={value}" for key, value in changes.items())
        variant = replace(subject, config=replace(subject.config, algo=learner), changes=words)
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
                abs(paid.mean() - expected) <= ERRORS * paid.std(ddof=1) / np.sqrt(F) + 1e-9,
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
        (off <= ERRORS * error + 1e-9 * np.abs(W).max()).all(),
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


# The subject of the checks: a learner composed as for a run, which a check runs on examples of its own.

_RUN = {
    "algo.average": "last",  # the iterates themselves, from which the steps follow
    "dataset": "sphere",
    "dataset.n": 20,
    "dataset.n_test": 5,
}


@dataclass(frozen=True, eq=False)
class Subject:
    """A learner that is checked.

    Attributes
    ----------
    config : Config
        The configuration; a check replaces its budget and its attributes.
    wrapped : callable
        Returns what runs in place of the learner's `fit`: tests break it here.
    changes : str
        Options that differ from the learner's file, as ``key=value``; empty if none does.
    """

    config: Config
    wrapped: Callable[[Fit], Fit] = lambda fit: fit
    changes: str = ""

    @property
    def learner(self) -> Learner:
        """The learner."""
        return self.config.algo

    @property
    def name(self) -> str:
        """The name of the learner."""
        return self.learner.name

    @property
    def draws(self) -> bool:
        """Whether the learner draws attributes."""
        return self.learner.observation is not Observation.ALL

    def other(self, name: str) -> Subject:
        """Return another learner of ``conf/algo`` as a subject."""
        return examined(name)

    def plan(self, d: int, k: int) -> Plan:
        """Return the plan of a run on d attributes.

        Raises
        ------
        ConfigError
            If the learner refuses the budget.
        """
        dataset = replace(self.config.dataset, options={**self.config.dataset.options, "d": d})
        return make_plan(replace(self.config, dataset=dataset, k=k))

    def draws_for(self, d: int, k: int) -> tuple[int, int]:
        """Return the numbers of draws for the data point and for the inner product at a budget of k."""
        budget_split = self.plan(d, k).budget_split
        assert budget_split
        return budget_split

    def run(
        self,
        table: Table,
        orders: np.ndarray,
        rngs: Sequence[Any],
        k: int,
        settings: Mapping[str, Sequence[float]],
        checkpoints: Sequence[int] | None = None,
        opened: Callable[[int], None] = lambda stop: None,
        known: Table | None = None,
        pilot: np.ndarray | None = None,
        costs: np.ndarray | None = None,
    ) -> tuple[list[np.ndarray], Reveals]:
        """Run the learner along F streams.

        Parameters
        ----------
        table : Table
            Examples.
        orders : ndarray of int, shape (F, m)
            Rows of each stream.
        rngs : sequence of numpy.random.Generator
            One per stream.
        k : int
            Attribute budget.
        settings : mapping of str to sequence of float
            Parameters; those that the learner has are used.
        checkpoints : sequence of int, optional
            Numbers of examples at which an output is wanted; by default the number of all.
        opened : callable, optional
            Called at each new block with the number of examples opened so far.
        known : Table, optional
            Examples whose second moments a learner is given that needs them; `table` by default.
        pilot : ndarray of int, shape (F, N), optional
            Rows that each stream knows beforehand. With them, attributes and targets are centred on their means,
            and learners that scale what they see do so.
        costs : ndarray of float, shape (d,), optional
            Prices of attributes, for price-aware learners; by default those of the oracles.

        Returns
        -------
        outputs : list of ndarray, shape (F, d, G) or (F, G, d, n)
            Regressors or subspaces, one array for each checkpoint; with a pilot the intercept is one more attribute.
        reveals : Reveals
            What the learner saw, and the bill.
        """
        plan = self.plan(table.d, k)
        # A step size such as eta_two, of a second phase, equals that of the first unless it is given.
        names = {name: name if name in settings else name.partition("_")[0] for name in plan.settings}
        values = {name: np.array(settings[names[name]], dtype=float) for name in plan.settings}
        checkpoints = checkpoints or [orders.shape[1]]
        n_settings = len(next(iter(values.values()), [None]))
        origin = pilot is not None
        centred, log = origin and not self.learner.centres_itself, Recorder(table.d)
        accessor = Accessor(
            table,
            orders,
            n_settings,
            plan.budget,
            checkpoints,
            opened,
            pilot=pilot,
            centre_attributes=centred,
            centre_targets=centred,
            log=log,
        )
        moments = np.square((known or table).rows(orders)).mean(axis=1) if self.learner.given_moments else None
        costs = prices(table.d) if costs is None else costs
        costs = costs if self.learner.cost_aware else None
        scaled = origin and self.learner.scales_itself
        given = SideInformation(k, plan.budget_split, moments, origin, origin, scaled, costs)
        fit = self.wrapped(self.learner.fit)
        outputs = contract.run(self.learner, accessor, values, checkpoints, list(rngs), given, fit)
        arrays = [_with_intercept(W, origins) if origin else W for _, W, origins in outputs]
        return arrays, Reveals(accessor.bill(), log.seen())


class Reveals(NamedTuple):
    """The cells that a learner saw along its streams, and the bill."""

    bill: Bill
    seen: tuple[np.ndarray, np.ndarray]
    """Rows and attributes of the values, in the order in which they were revealed."""

    def of(self, wanted: np.ndarray) -> list[np.ndarray]:
        """Return the attributes that were seen of each of some rows, in this order."""
        order = np.argsort(self.seen[0], kind="stable")
        rows, attributes = (part[order] for part in self.seen)
        ends = zip(np.searchsorted(rows, wanted), np.searchsorted(rows, wanted, side="right"), strict=True)
        return [attributes[begin:end] for begin, end in ends]


class Recorder:
    """Records which values an accessor returned, as its log.

    It records what was asked for and charged. It cannot see a learner that reads values without the accessor.
    """

    def __init__(self, d: int) -> None:
        self._d = d
        self._seen: list[tuple[np.ndarray, np.ndarray]] = []

    def open(self, start: int, rows: np.ndarray) -> None:
        """Begin a block, see `budgetreg.metering.ledger.Book`."""
        self._rows, self._streams = rows, np.arange(len(rows))

    def note_rows(self) -> None:
        """Record full rows."""
        self._note(self._rows[:, :, None], np.arange(self._d), None)

    def note_block(self, attributes: np.ndarray, drawn: np.ndarray | None) -> None:
        """Record what all settings draw."""
        self._note(self._rows[:, :, None], attributes, drawn)

    def note_example(self, position: np.ndarray, attributes: np.ndarray, drawn: np.ndarray | None) -> None:
        """Record what each replica draws."""
        self._note(self._rows[self._streams, position][:, None], attributes, drawn)

    def seen(self) -> tuple[np.ndarray, np.ndarray]:
        """Return rows and attributes of the values, in this order."""
        nothing = np.empty(0, dtype=np.intp)
        rows, attributes = zip((nothing, nothing), *self._seen, strict=True)
        return np.concatenate(rows), np.concatenate(attributes)

    def _note(self, rows: np.ndarray, attributes: np.ndarray, drawn: np.ndarray | None) -> None:
        rows, attributes, shown = np.broadcast_arrays(rows, attributes, True if drawn is None else drawn)
        self._seen.append((rows[shown], attributes[shown]))


def _with_intercept(W: np.ndarray, origins: Sequence[Origin]) -> np.ndarray:
    """Return regressors (F, d + 1, G) of examples with one more attribute, which is 1."""
    b = [
        np.broadcast_to(origin.intercept - (0 if origin.shift is None else origin.shift @ w), W.shape[2:])
        for origin, w in zip(origins, W, strict=True)
    ]
    return np.concatenate([W, np.stack(b)[:, None, :]], axis=1)


_composer = cache(Composer)  # Hydra is slow, and there are many learners


@cache
def examined(name: str) -> Subject:
    """Return the learner of a file in ``conf/algo`` as a subject.

    Raises
    ------
    ConfigError
        If the file does not describe one.
    """
    config = validate(_composer()({"algo": name, **_RUN}))
    of_subspaces: dict[str, Any] = {"n_components": 2}  # as the checks' examples have few attributes
    options = of_subspaces if of_subspaces.keys() <= options_of(type(config.algo)).keys() else {}
    return Subject(replace(config, algo=replace(config.algo, **options)))


def variants(learner: Learner) -> Iterator[tuple[Mapping[str, Any], Learner]]:
    """Yield the learner, then its variants with one option changed, and what is changed.

    Each option takes the values that it declares to be tried. An option without effect beside the others is changed
    together with one that gives it an effect. What the learner refuses is left out.

    Yields
    ------
    changes : mapping of str to Any
        Options and their values.
    Learner
    """
    yield {}, learner
    effective = _effective(learner)
    for changes, changed in _changed(learner, effective):
        yield changes, changed
        for more, both in _changed(changed, _effective(changed) - effective):
            yield {**changes, **more}, both


def _changed(learner: Learner, names: set[str]) -> Iterator[tuple[Mapping[str, Any], Learner]]:
    """Yield learners of which one option is changed, among some names."""
    for name, option in options_of(type(learner)).items():
        for value in option.values if name in names else ():
            if value != getattr(learner, name):
                changed = _completed(replace(learner, **{name: value}))
                if changed is not None:
                    yield {name: value}, changed


def _effective(learner: Learner) -> set[str]:
    """Return the names of options that have an effect beside the others."""
    options = options_of(type(learner)).items()
    return {name for name, option in options if option.applies(vars(learner))} - set(learner.inactive_options)


def _completed(learner: Learner) -> Learner | None:
    """Return a learner with the defaults of options that come to apply; None if one has no default, or it refuses."""
    for name, option in options_of(type(learner)).items():
        if option.applies(vars(learner)) and getattr(learner, name) is None and not option.must.accepts(None):
            if option.default is REQUIRED:
                return None
            learner = replace(learner, **{name: option.default})
    return learner if learner.refuse() is None else None
