"""A study: one file that records what was bought of each example, and recommends what to buy next."""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from budgetreg.common.errors import ConfigError, UserError
from budgetreg.common.files import at_home, refuse_foreign, write_atomically
from budgetreg.data.tables import text_of
from budgetreg.study.error import ErrorEstimate, Estimates, Interval, estimates_of, forecast_of, keep, kept
from budgetreg.study.examples import (
    ID,
    attributes_of,
    examples_of,
    examples_sheet,
    new_examples,
    price_list,
    sheet_from,
    texts_of,
    with_column,
    with_targets,
)
from budgetreg.study.file import LOGS, StudyFile
from budgetreg.study.model import (
    EXPORTED,
    LEARNER,
    check_learner,
    estimator_of,
    explain_no_spread,
    fitted,
    joint_of,
    labels_of,
    model_file,
)
from budgetreg.study.orders import COLUMNS, Order, ask, cancel, next_cells, order_of, propose
from budgetreg.study.results import Recorded, exclude, record
from budgetreg.study.state import (
    LOG,
    State,
    StudyBill,
    add,
    bill_of,
    create,
    csv_of,
    events_of,
    reprice,
    state_of,
    targets_of,
    words_of,
)

if TYPE_CHECKING:
    import pandas as pd

    from budgetreg.estimators import BudgetRegressor


_MOST = 10**18
"""What whole numbers are less than: a study's file holds no larger ones."""


class Study:
    """A study. Several processes may use its file; a change is whole, and durable when the call returns.

    Parameters
    ----------
    path : str or Path
        The file.

    Attributes
    ----------
    path : Path
        The file.

    Raises
    ------
    DataError
        If there is no such file, or it is no study, damaged, changed by another program, or of a newer version.

    Examples
    --------
    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/trial.db"
    >>> costs = {"age": 0, "test": 30}
    >>> study = Study.create(path, examples=["p1", "p2"], targets=[1.5, 2.0], costs=costs, unit="EUR")
    >>> order = study.ask(spend=30)
    >>> order["value"] = 1.0
    >>> study.tell(order).values
    2
    >>> study.bill().total
    30.0
    """

    def __init__(self, path: str | Path) -> None:
        self.path = at_home(path)
        self._store = StudyFile(self.path)

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        examples: "pd.DataFrame | Sequence[object] | str | Path",
        targets: "Mapping[object, object] | Sequence[object] | str | None" = None,
        attributes: Sequence[str] = (),
        costs: "Mapping[str, float] | str | Path | None" = None,
        groups: Mapping[str, str] | None = None,
        ranges: str | Path | None = None,
        id: str = "",
        drop: Sequence[str] = (),
        unit: str | None = None,
        seed: int = 0,
        algo: str = LEARNER,
        missing_values: Sequence[str | float] = (),
    ) -> Self:
        """Create a study and open it; if the same call has created it already, only open it.

        Parameters
        ----------
        path : str or Path
            The new file.
        examples : DataFrame, sequence, str or Path
            The names of the examples; or a table, or the path of one (CSV or Parquet), with their values that are known
            beforehand, which are free. NaN marks what is not known.
        targets : mapping, sequence or str, optional
            Targets, by name or in the order of the examples; or the column that holds them, here or in a table that is
            added later, by default `target`. None or NaN marks a target that is not known yet. Text with two different
            labels is two-valued.
        attributes : sequence of str, optional
            Attributes that no example has yet; those in the table and in the price list need not be named.
        costs : mapping, str or Path, optional
            Price of each attribute, or the path of a price list with the columns attribute,cost and perhaps group. By
            default, each costs 1.
        groups : mapping of str to str, optional
            The group of each attribute that is bought together with others, at the price of any of them.
        ranges : str or Path, optional
            List with the columns attribute,low,high; values that lie far outside are refused.
        id : str, optional
            Column of the examples' names. By default, of a table, the column `example` if there is one, else the index
            of a frame and the numbers of the rows of a file.
        drop : sequence of str, optional
            Columns of the table to leave out.
        unit : str, optional
            Unit of the prices.
        seed : int
            Seed of all draws.
        algo : str
            The learner.
        missing_values : sequence of str or float, optional
            What means a missing value in tables of the study, here and later, such as ``["?", ".", -999]``.

        Raises
        ------
        ConfigError
            If there is another file at the path, or a choice is impossible.
        DataError
            If a table or a list cannot be used.
        """
        id, drop, words = text_of(id), texts_of(drop), texts_of(missing_values)
        sheet = examples_sheet(examples, id, drop).emptied(words, {id or ID})
        sheet, target = with_targets(sheet, targets, id or ID)
        rows = examples_of(sheet, target, id)
        offered, unit = attributes_of(rows, texts_of(attributes), costs, groups, ranges, unit, drop)
        check_learner(algo)
        create(at_home(path), rows, offered, unit, _whole("seed", seed, 0), algo, words)
        return cls(path)

    @property
    def files(self) -> list[str]:
        """The file, and those that SQLite may keep beside it: nothing else is written there."""
        return [os.path.realpath(self.path) + ending for ending in ("", *LOGS)]

    def __enter__(self) -> Self:
        """Return the study."""
        return self

    def __exit__(self, *error: object) -> None:
        """Do nothing, see `close`."""

    def close(self) -> None:
        """Do nothing: no file stays open between calls, and at any moment a copy of the file is a backup."""

    def add(
        self,
        examples: "pd.DataFrame | Sequence[object] | str | Path | None" = None,
        targets: "Mapping[object, object] | Sequence[object] | None" = None,
        *,
        costs: "Mapping[str, float] | str | Path | None" = None,
        drop: Sequence[str] = (),
        replace: bool = False,
    ) -> dict[str, int]:
        """Add examples, targets, free values or attributes, or change prices; nothing if something is wrong.

        Parameters
        ----------
        examples, targets, drop
            As for `create`, with the names of the examples, and with the study's columns. Targets by name may come
            without examples; they are of examples that the study has.
        costs : mapping, str or Path, optional
            Prices from now on, as for `create`, of some attributes. Those that the study does not have are new.
        replace : bool
            Whether a different target or value may take the place of a known one; the log keeps both.

        Returns
        -------
        dict of str to int
            How many `prices` have changed; how many `attributes`, `examples`, `targets` and `values` are new; and how
            many are `replaced`.

        Raises
        ------
        DataError
            If a table cannot be used, or something differs from what is known.
        """
        with self._store.writing():
            facts, new = self._store.facts(), dict.fromkeys(("prices", "attributes"), 0)
            if costs is not None:
                new = reprice(self._store, price_list(costs))
            names = [name for (name,) in self._store.rows("SELECT name FROM attributes ORDER BY number")]
            # Targets by name alone are of examples that the study has.
            alone = list(getattr(targets, "keys", list)())
            sheet = examples_sheet(alone if examples is None else examples, facts["id"], texts_of(drop))
            sheet = sheet.emptied(words_of(facts), {facts["id"]})
            if targets is not None:
                sheet = with_column(sheet, facts["target"], targets, facts["id"])
            # Not by their numbers: a second table begins to count again.
            sheet.column(facts["id"], "it names the examples")
            rows = examples_of(sheet, facts["target"], facts["id"], names)
            return new | add(self._store, rows, replace, grow=examples is not None)

    def ask(
        self, spend: float, per_example: int | None = None, *, seed: int | None = None, order: int | None = None
    ) -> "pd.DataFrame":
        """Record the next order, and return it as a frame.

        Parameters
        ----------
        spend : float
            The most that it may cost.
        per_example : int, optional
            The most attributes (groups) of one example, over all orders together.
        seed : int, optional
            Seed of the draws; that of the study by default.
        order : int, optional
            The number that the order gets. If there is an order with it that was asked for in the same way, it is
            returned again, so that a program that was killed can repeat the call.

        Returns
        -------
        DataFrame
            The columns order, example, attribute, cost and value, which is empty.

        Raises
        ------
        ConfigError
            If a limit is impossible, nothing can be ordered, or the number belongs to another order.
        """
        return _frame(self.place_order(spend, per_example, seed=seed, order=order))

    def place_order(
        self,
        spend: float,
        per_example: int | None = None,
        *,
        seed: int | None = None,
        order: int | None = None,
        check: Callable[[Order], None] = lambda order: None,
    ) -> Order:
        """Record the next order, and return it with the reason for it, see `ask`; nothing happens if `check` raises."""
        limits, order = _limits(spend, per_example, seed), _whole("order", order, 1)
        with self._store.writing():
            placed = ask(self._store, *limits, order)
            check(placed)
        return placed

    def propose(self, spend: float, per_example: int | None = None, *, seed: int | None = None) -> Order:
        """Return what `ask` would order; nothing is recorded.

        Parameters are those of `ask`.

        Returns
        -------
        Order
            With its `lines`, its `reason` and, once values are known, the `alternatives` that it was compared with: the
            number of attributes of each example, how many examples that buys, and the expected errors, by how the
            attributes are chosen, as shares of the target's variance.

        Raises
        ------
        ConfigError
            If nothing can be ordered.
        """
        with self._store.reading():
            order, _ = propose(self._store, *_limits(spend, per_example, seed))
        return order

    def order(self, number: int) -> "pd.DataFrame":
        """Return an order as it was asked for.

        Raises
        ------
        ConfigError
            If there is no such order.
        """
        with self._store.reading():
            return _frame(order_of(self._store, _whole("order", number, 1)))

    def tell(
        self,
        results: "pd.DataFrame | str | Path",
        *,
        replace: bool = False,
        free: bool = False,
        invoiced: bool = False,
        refund: bool = False,
        decimal: str = ".",
        drop: Sequence[str] = (),
    ) -> Recorded:
        """Record results; nothing is recorded if one of them is wrong.

        Parameters
        ----------
        results : DataFrame, str or Path
            A table, or the path of one, with the columns example, attribute and value, such as a completed order; or
            with the names of examples and a column for each attribute. The names may be in the study's own column. An
            empty value is still pending; `unavailable` will never be measured. A column cost may have invoiced prices.
        replace : bool
            Whether a result, or what was charged, may take the place of a different one; the log keeps both.
        free : bool
            Whether values that nobody ordered are not charged.
        invoiced, refund : bool
            Whether values that are `unavailable` are charged, too; whether earlier charges for them are cancelled.
        decimal : str
            The decimal mark, a point or a comma.
        drop : sequence of str
            Columns to leave out.

        Returns
        -------
        Recorded
            Numbers of values. Results that are known already change nothing.

        Raises
        ------
        ConfigError
            If these choices are impossible.
        DataError
            If a row cannot be used, or differs from what is known.
        """
        if decimal not in (".", ","):
            raise ConfigError(f"decimal={decimal}: must be . or ,")
        if invoiced and refund:
            raise ConfigError("invoiced=true charges failed tests, and refund=true gives that back: choose one")
        sheet = sheet_from(results, "the results").without(texts_of(drop))
        with self._store.writing():
            return record(
                self._store, sheet, replace=replace, free=free, invoiced=invoiced, refund=refund, decimal=decimal
            )

    def exclude(
        self,
        *,
        examples: Sequence[str] = (),
        attributes: Sequence[str] = (),
        refund: bool = False,
        undo: bool = False,
    ) -> int:
        """Stop ordering values of withdrawn examples or discontinued attributes; repeating it changes nothing.

        Known values stay in the study, and charges stay on the bill. Pending values are released.

        Parameters
        ----------
        examples, attributes : str or sequence of str
            Their names.
        refund, undo : bool
            Whether the charges for them are cancelled; whether they can be ordered again instead.

        Returns
        -------
        int
            How many pending values there were.

        Raises
        ------
        ConfigError
            If there is no such name, or a choice is impossible.
        """
        if undo and refund:
            raise ConfigError("undo=true orders again, and refund=true gives charges back: choose one")
        with self._store.writing():
            return sum(
                exclude(self._store, column, texts_of(names), refund, undo)
                for column, names in (("example", examples), ("attribute", attributes))
            )

    def cancel(self, order: int) -> int:
        """Cancel the pending values of an order and return how many there were; repeating it changes nothing.

        Raises
        ------
        ConfigError
            If there is no such order.
        """
        with self._store.writing():
            return cancel(self._store, _whole("order", order, 1))

    def fit(self) -> "BudgetRegressor":
        """Return an estimator that is fitted to all known values; it predicts incomplete examples.

        Raises
        ------
        DataError
            If no target is known.
        """
        return estimator_of(self.state())

    def error(self) -> ErrorEstimate:
        """Return the estimated error for a new example; no complete row is needed. See `estimates`."""
        return self.estimates().error

    def forecast(self, spendings: Sequence[float]) -> list[Interval]:
        """Return forecasts of the error after further spending, with 90 % intervals.

        They are for new examples of which all attributes are measured.

        Raises
        ------
        ConfigError
            If a spending is not a number of at least 0.
        DataError
            If too little is known.
        """
        if not isinstance(spendings, Iterable):
            raise ConfigError(f"spendings={spendings}: a sequence of numbers is needed")
        amounts, state = [_amount(f"spending {spending}", spending) for spending in spendings], self.state()
        return forecast_of(state, fitted(state), self._estimates(state).error, amounts)

    def estimates(self, *, n_jobs: int = 1) -> Estimates:
        """Return estimates of the error and a forecast; the file keeps them, if it can be written.

        Parameters
        ----------
        n_jobs : int
            Models that are learned at the same time, in as many processes; changes no result.

        Returns
        -------
        Estimates
            Errors relative to that of the mean target, with 90 % intervals: if all attributes of a new example are
            measured, if as many are measured as were bought on average, and the former after further spending.

        Raises
        ------
        DataError
            If too little is known.
        """
        return self._estimates(self.state(), n_jobs)

    def history(self) -> list[Estimates]:
        """Return all estimates that were made so far, in their order."""
        with self._store.reading():
            return list(kept(self._store).values())

    def _estimates(self, state: State, n_jobs: int = 1) -> Estimates:
        with self._store.reading():
            known = kept(self._store).get(state.version)
        if known is not None:
            return known
        estimates = estimates_of(state, n_jobs)  # takes long, so that others may write meanwhile
        with suppress(UserError), self._store.writing():  # a user who may only read the file gets them all the same
            keep(self._store, state, estimates)
        return estimates

    def predict(
        self, examples: "pd.DataFrame | np.ndarray | str | Path", *, model: "BudgetRegressor | None" = None
    ) -> "pd.DataFrame":
        """Return predictions for other examples, which may have holes.

        Parameters
        ----------
        examples : DataFrame, ndarray, str or Path
            A table, or the path of one, whose columns are matched by name; attributes that it lacks are holes. Or an
            array with all attributes.
        model : BudgetRegressor, optional
            What `fit` has returned, so that it is not learned again.

        Returns
        -------
        DataFrame
            The name of each example (in the column `example`, if that of the study is called as one of the others), its
            `prediction`, the standard deviation `std` of the target around it, and of a
            two-valued target, whose values are -1 and +1, the `label` whose probability is larger, as
            ``budgetreg predict`` has it.
        """
        state = self.state()
        names, X = new_examples(examples, state.attributes, state.facts["id"], words_of(state.facts))
        learned = fitted(state) if model is None else joint_of(model, state)
        explain_no_spread(state)
        predictions = learned.predict(X)
        columns = {"prediction": predictions, "std": learned.deviations(X)}
        if len(state.labels) == 2:
            columns["label"] = labels_of(learned, state, X, predictions)
        return _pandas().DataFrame({_id_beside(state, columns): names, **columns})

    def next(
        self,
        examples: "pd.DataFrame | np.ndarray | str | Path",
        spend: float = float("inf"),
        *,
        model: "BudgetRegressor | None" = None,
    ) -> "pd.DataFrame":
        """Return what to measure next of each of several new examples, most useful first, and what it brings.

        Parameters
        ----------
        examples, model
            As for `predict`.
        spend : float
            The most that may be spent on each example.

        Returns
        -------
        DataFrame
            A row for each measurement: the name of the example, in a column as for `predict`; `attribute`, or those of
            a group, joined by plus signs; `cost`; and the standard deviation of the target around the prediction before
            (`std_before`) and after (`std_after`) it. `for_all` is its place, from 1, in the order for an example of
            which nothing is known, which can serve as one order for everyone. Examples for which nothing helps have
            no rows.
        """
        spend, state = _amount(f"spend={spend}", spend, limited=False), self.state()
        names, X = new_examples(examples, state.attributes, state.facts["id"], words_of(state.facts))
        learned, unknown = fitted(state) if model is None else joint_of(model, state), np.full((1, X.shape[1]), np.nan)
        explain_no_spread(state)
        (for_all,) = next_cells(learned, unknown, state.costs, state.heads, state.discontinued)
        orders = next_cells(learned, X, state.costs, state.heads, state.discontinued, spend)
        place = {state.heads[each.attributes[0]]: at for at, each in enumerate(for_all, start=1)}
        rows = []
        for name, order in zip(names, orders, strict=True):
            for each in order:
                attributes = " + ".join(state.attributes[at] for at in each.attributes)
                for_everyone = place.get(state.heads[each.attributes[0]], len(place) + 1)
                rows.append((name, attributes, each.price, each.before, each.after, for_everyone))
        columns = ["attribute", "cost", "std_before", "std_after", "for_all"]
        return _pandas().DataFrame(rows, columns=[_id_beside(state, columns), *columns])

    def export(self, path: str | Path, *, log: bool = False) -> None:
        """Write the known values or the log as a table, or the model as a file that ``budgetreg predict`` reads.

        Parameters
        ----------
        path : str or Path
            The file, which ends in ``.csv`` or ``.npz``.
        log : bool
            Whether the table is the log, see `log`.

        Raises
        ------
        ConfigError
            If the name has another ending, or a file is there: only the same table, an earlier log of the study, and a
            model that this method wrote, are replaced.
        UserError
            If the file cannot be written.
        """
        path = at_home(path)
        state, ending = self.state(), path.suffix.lower()
        if ending != ".csv" and (log or ending != ".npz"):
            other = "log" if log else "table, or in .npz, for a model"
            raise ConfigError(f"out={path}: must end in .csv, for a {other}")
        if ending == ".npz":
            refuse_foreign(path, lambda old: old.endswith(EXPORTED), self.files)
            content = model_file(fitted(state), state)
        elif log:
            content = csv_of(self.log())
            refuse_foreign(path, lambda old: old != b"" and content.startswith(old), self.files)
        else:
            content = csv_of(self.table())
            refuse_foreign(path, content.__eq__, self.files)
        write_atomically(path, content)

    def bill(self) -> StudyBill:
        """Return the bill: what was paid for each attribute and order, and what is pending."""
        with self._store.reading():
            return bill_of(self._store, state_of(self._store))

    def state(self) -> State:
        """Return the known values as arrays."""
        with self._store.reading():
            return state_of(self._store)

    def table(self) -> "pd.DataFrame":
        """Return a table of names, attributes and targets; NaN and None mark holes."""
        with self._store.reading():
            state, targets = state_of(self._store), targets_of(self._store)
        columns = {state.facts["id"]: list(state.examples), **dict(zip(state.attributes, state.values.T, strict=True))}
        return _pandas().DataFrame({**columns, state.facts["target"]: targets})

    def log(self) -> "pd.DataFrame":
        """Return all events: time (UTC), event, order, example, attribute, old and new value, and cost.

        The sum of the costs is the bill. What an earlier version of budgetreg recorded has no time.
        """
        with self._store.reading():
            return _pandas().DataFrame(events_of(self._store), columns=LOG, dtype=object)


def _frame(order: Order) -> "pd.DataFrame":
    frame = _pandas().DataFrame(order.lines, columns=list(COLUMNS[:-1]))
    return frame.assign(value=float("nan"))


def _limits(spend: float, per_example: int | None, seed: int | None) -> tuple[float, int | None, int | None]:
    """Return what an order is asked for with, checked."""
    return _amount(f"spend={spend}", spend), _whole("per_example", per_example, 1), _whole("seed", seed, 0)


def _amount(named: str, amount: Any, *, limited: bool = True) -> float:
    """Return an amount of money; unless it is limited it may be infinite.

    Raises
    ------
    ConfigError
        If it is no number of at least 0.
    """
    number = -1.0
    if not isinstance(amount, str):
        with suppress(TypeError, ValueError):
            number = float(amount)
    if not 0 <= number <= float("inf") or (limited and number == float("inf")):
        raise ConfigError(f"{named}: must be a number of at least 0")
    return number


def _whole(key: str, number: Any, least: int) -> Any:
    """Return a whole number, or None, as Python's own.

    Raises
    ------
    ConfigError
        If it is another number, below `least`, or too large.
    """
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or not least <= number < _MOST:
        raise ConfigError(f"{key}={number}: must be a whole number of at least {least}, and of at most 18 digits")
    return int(number)


def _id_beside(state: State, columns: Collection[str]) -> str:
    """Return the column of the examples' names: that of the study, unless it is one of the other columns."""
    return ID if state.facts["id"] in columns else state.facts["id"]


def _pandas() -> Any:
    import pandas as pd  # here, as it is slow to load

    return pd
