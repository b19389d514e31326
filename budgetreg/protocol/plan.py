"""What will be run: every decision of a run, made before anything is computed, and its attribute bill."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from budgetreg.data import Dataset, Prices, load, located, prices_of
from budgetreg.errors import ConfigError, DataError
from budgetreg.learners.declaration import Batching, BudgetSplit, Learner, Missing, Observation, RunContext
from budgetreg.learners.groups import members
from budgetreg.protocol.configuration import Config
from budgetreg.protocol.grids import count, lay_out, widened
from budgetreg.protocol.side_information import second_moments, shares, table_of
from budgetreg.protocol.spending import Spending, refuse_two_ends

REPLICA_BYTES = 64
"""Per attribute and replica: what the largest state and its output take; per pair of them if subspaces are learned."""
COUNT_BYTES = 24
"""Per attribute, replica and checkpoint of the curve: an itemised bill, whose folds have checkpoints of their own."""
STATE_BYTES = 1 << 30
"""Memory of one worker for the replicas that advance together, and for the data that they read."""


@dataclass(frozen=True)
class Plan:
    """A run, decided.

    Attributes
    ----------
    config : Config
        What was asked for.
    folder : Path
        Where the results go.
    dataset : str
        Name of the data.
    fingerprint : str
        Digest of their content: a file can change under its name.
    n_train, n_test, d : int
        Training examples, test examples, attributes.
    k_x, k_ip : int or None
        Draws for the data point and for the inner product; None if all attributes are seen, or pairs of them.
    per_example : int
        Attributes that a replica may be charged for one example: k, or d for a full-information learner.  On average
        at most, if `budget` is None.
    pilot : int
        Full rows that are bought first. They are the first examples of learners that see all attributes; others do
        not step on them.
    checkpoints : tuple of int
        Numbers of examples, the pilot's rows among them, at which the curve is evaluated.
    settings : mapping of str to tuple of float
        The grid in absolute values, one entry per setting.
    attributes_final : int
        Most that the final run of a repetition may be charged.
    attributes_tuning : int
        Most that the cross-validation of a repetition may be charged, all folds and settings together.
    notes : tuple of str
        What the user is told once.
    prices : Prices or None
        What the attributes cost, if anybody says so: then the bill is itemised, and in money too.
    gaps : bool
        Whether there are cells without a value: draws that meet one cost nothing, and complete rows alone are judged.
    names : tuple of str
        What the attributes are called; empty if they have no names.
    target : str
        What the target is called where the data lie; empty if it has no name.
    """

    config: Config
    folder: Path
    dataset: str
    fingerprint: str
    n_train: int
    n_test: int
    d: int
    k_x: int | None
    k_ip: int | None
    per_example: int
    pilot: int
    checkpoints: tuple[int, ...]
    settings: Mapping[str, tuple[float, ...]]
    attributes_final: int
    attributes_tuning: int
    notes: tuple[str, ...]
    names: tuple[str, ...]
    target: str
    prices: Prices | None = None
    gaps: bool = False

    @property
    def budget_split(self) -> BudgetSplit | None:
        """How k is divided, for learners that declare it."""
        return BudgetSplit(self.k_x, self.k_ip) if self.k_x is not None and self.k_ip is not None else None

    @property
    def budget(self) -> int | None:
        """Most attributes of one example that are revealed; None if their number is random and bounded on average."""
        return None if self.config.algo.observation is Observation.K_ON_AVERAGE else self.per_example

    @property
    def cells(self) -> int:
        """Pairs of a training example and an attribute: no run can reveal more of them, however often it draws."""
        return self.n_train * self.d

    @property
    def streams_at_once(self) -> int:
        """Streams that advance together: as many as memory is set aside for, or the folds that are never parted."""
        algo = self.config.algo
        if algo.batching is Batching.WITH_ITS_FOLDS:
            return self.config.tuning.folds
        state = REPLICA_BYTES * algo.state_numbers(self.d)
        counts = COUNT_BYTES * self.d * len(self.checkpoints) if self.prices else 0
        replicas = min(self.config.backend.batch_size, STATE_BYTES // (state + counts))
        return max(1, replicas // self.n_settings)

    @property
    def one_pass(self) -> bool:
        """Whether the final runs advance beside the folds, for all settings, rather than after them for those chosen.

        Worth more than it costs where a step of few replicas is dear and where the outputs of all settings, which have
        to be kept until one is chosen, take little memory.
        """
        kept = 8 * self.d * self.n_settings * len(self.checkpoints)
        return self.tuned and self.config.algo.unequal_lengths and kept <= STATE_BYTES

    @property
    def repetitions_at_once(self) -> int:
        """Repetitions that advance together, of learners whose streams do."""
        data = load(self.config.dataset, self.config.seed, 0, targets=self.config.algo.predicts)
        if self.config.algo.batching is not Batching.IN_STEP or not isinstance(data.X, np.ndarray):
            return 1
        streams = (self.config.tuning.folds if self.tuned else 0) + (not self.tuned or self.one_pass)
        return max(1, min(self.streams_at_once // streams, STATE_BYTES // data.X.nbytes))

    @property
    def lead(self) -> int:
        """Examples that the learner does not step on: the pilot's rows, unless it sees all attributes anyway."""
        return 0 if self.config.algo.observation is Observation.ALL else self.pilot

    @property
    def centred(self) -> bool:
        """Whether attributes count from the means of what was revealed."""
        return self.config.dataset.center == "revealed"

    @property
    def intercept(self) -> bool:
        """Whether the mean of the targets is predicted where attributes are at their means."""
        return self.config.intercept == "mean"

    @property
    def n_settings(self) -> int:
        """Number of settings G; 1 of a learner without parameters."""
        return count(self.settings)

    @property
    def tuned(self) -> bool:
        """Whether there is anything to choose by cross-validation."""
        return self.n_settings > 1

    def widened(self, edge: str) -> "Plan":
        """Return the same plan with a larger grid, and its bill; the settings there were are in it.

        The parameter is that of `protocol.grids.widened`.
        """
        config = replace(self.config, algo=widened(self.config.algo, edge))
        data = load(config.dataset, config.seed, 0, targets=config.algo.predicts)
        run = _run_context(config, data, self.budget_split, self.checkpoints[-1] - self.lead, self.prices)
        settings = lay_out(config, run)
        bill = self.attributes_tuning // self.n_settings * count(settings)
        return replace(self, config=config, settings=settings, attributes_tuning=bill)

    def located(self) -> "Plan":
        """Return the same plan for a process that runs in another folder: where its data lie is told in full."""
        return replace(self, config=replace(self.config, dataset=located(self.config.dataset)))

    def refuse_other_data(self) -> None:
        """Compare the data as this process finds them with those that the plan was made for.

        Raises
        ------
        DataError
            If they are missing, or their content is another.
        """
        data = load(self.config.dataset, self.config.seed, 0, targets=self.config.algo.predicts)
        found = (data.name, data.fingerprint())
        if found != (self.dataset, self.fingerprint):
            planned = f"{self.dataset} {self.fingerprint}"
            raise DataError(f"the data are not those of the plan: {' '.join(found)} instead of {planned}")


def make_plan(config: Config) -> Plan:
    """Decide a run.

    Parameters
    ----------
    config : Config
        A valid configuration.

    Returns
    -------
    Plan

    Raises
    ------
    ConfigError
        If the configuration does not fit the data.
    DataError
        If the data cannot be had.
    """
    algo = config.algo
    refuse_two_ends(config)
    if config.intercept == "mean" and not algo.predicts:
        raise ConfigError(f"intercept=mean: {algo.name} learns a subspace and predicts nothing; use none")
    counts_from_0 = algo.skipped_checks.get("origin")
    if counts_from_0 and (config.intercept == "mean" or config.dataset.center == "revealed"):
        raise ConfigError(f"{algo.name}: {counts_from_0}: use intercept=none, and dataset.center=none or full")
    data = load(config.dataset, config.seed, 0, targets=algo.predicts)
    algo.task.admit(algo.name, data, config.dataset.center)
    _refuse_missing(algo, data)
    n_train, n_test = split_sizes(config, data)
    gaps = data.available is not None
    d, prices = data.X.shape[1], prices_of(config.dataset, data)
    if config.k > d:
        raise ConfigError(f"k={config.k}: the attribute budget must be at most d={d}, the attributes of {data.name}")
    budget_split = algo.split_budget(config.k)
    spending = Spending(config, n_train, d, budget_split, prices)
    complete = int(data.complete.mean() * n_train)  # of the training part, about
    per_example, pilot = spending.per_example, spending.pilot(complete // 2)
    lead = 0 if algo.observation is Observation.ALL else pilot
    checkpoints = spending.checkpoints(pilot, lead)
    run = _run_context(config, data, budget_split, checkpoints[-1] - lead, prices)
    settings = lay_out(config, run)
    n_settings = count(settings)
    folds = config.tuning.folds if n_settings > 1 else 0
    rest = n_train - pilot
    if folds > rest:
        raise ConfigError(f"tuning.folds={folds}: at most the {rest} training examples of {data.name}")
    fold_examples = min(checkpoints[-1] - lead, rest - -(-rest // folds) + pilot - lead) if folds else 0
    notes = data.notes
    end, bought = spending.end(lead), spending.bought(lead)
    if bought is not None and end < bought:
        notes += (
            f"{spending.total}: {algo.name} ends at {end} attributes, as it sees {per_example} of each of "
            f"{n_train} training examples and there are no more",
        )
    if pilot:
        notes += (
            f"a pilot of {pilot} full rows is bought first, {pilot * d} of {end} attributes in all: "
            f"{'' if config.dataset.scaled_by_ranges else 'scale, '}centre and moments come from it",
        )
    if data.available is not None:
        notes += (
            f"{1 - data.available.mean():.1%} of all cells have no value: draws that meet one buy nothing, tests and "
            f"folds are judged on complete rows alone ({np.count_nonzero(data.complete)} of {data.y.size}), and "
            "estimates are unbiased if values are missing completely at random, which is assumed",
        )
    if config.dataset.center == "full":
        notes += ("dataset.center=full: the training means come from full rows, which no budget pays for",)
    if algo.given_moments == "given":
        notes += (
            f"{algo.name} is given the attributes' second moments over the training part, which no budget pays for",
        )
    total = config.total or config.k * n_train
    if config.axis == "paid" and folds and complete * spending.row > total:
        payer = f"k={config.k}" if config.total is None else "the total"
        notes += (
            f"axis=paid: tuning sees its held-out folds in full{' where they are complete' if gaps else ''}, "
            f"{complete * spending.row:,.10g} {spending.unit} where {payer} pays for {total:,}, so that no point of "
            "the curve is drawn; tuning=fixed pays for nothing",
        )
    notes += tuple(algo.notes(run, settings))
    return Plan(
        config=config,
        folder=config.folder(),
        dataset=data.name,
        fingerprint=data.fingerprint(),
        n_train=n_train,
        n_test=n_test,
        d=d,
        k_x=budget_split.k_x if budget_split else None,
        k_ip=budget_split.k_ip if budget_split else None,
        per_example=per_example,
        pilot=pilot,
        checkpoints=checkpoints,
        settings=settings,
        attributes_final=lead * d + per_example * (checkpoints[-1] - lead),
        attributes_tuning=per_example * fold_examples * folds * n_settings,
        notes=notes,
        prices=prices,
        gaps=gaps,
        names=data.names,
        target=data.target,
    )


def _refuse_missing(algo: Learner, data: Dataset) -> None:
    """Refuse data with cells without a value to a learner that cannot do without, or nobody can.

    Raises
    ------
    ConfigError
        If it is the learner.
    DataError
        If no row is complete, or two attributes never have values together and the learner needs that.
    """
    if data.available is None:
        return
    if algo.missing is Missing.REFUSED:
        able = members(lambda one: one.missing is not Missing.REFUSED and one.predicts == algo.predicts)
        raise ConfigError(
            f"dataset.missing=unavailable: {algo.name} needs every value; those that do without some: {', '.join(able)}"
        )
    if algo.missing is Missing.WEIGHED:
        shares(data, np.arange(data.y.size))
    if not data.complete.any():
        raise DataError(f"{data.name}: no row has all its values, and complete rows alone can be tested on")


def split_sizes(config: Config, data: Dataset) -> tuple[int, int]:
    """Return the numbers of training and test examples.

    Raises
    ------
    ConfigError
        If the official split is asked for and there is none.
    DataError
        If a part would be empty.
    """
    n = data.y.size
    if config.dataset.split == "official":
        if data.n_train is None:
            raise ConfigError(f"dataset.split=official: {data.name} has no official split; use random")
        return data.n_train, n - data.n_train
    n_test = int(n * config.dataset.test_fraction)
    if not 0 < n_test < n:
        raise DataError(f"{data.name} has {n} examples: too few for a test part of {config.dataset.test_fraction}")
    return n - n_test, n_test


def _run_context(
    config: Config, data: Dataset, budget_split: BudgetSplit | None, m: int, prices: Prices | None
) -> RunContext:
    intercept = config.intercept == "mean"
    return RunContext(
        k=config.k,
        d=data.X.shape[1],
        m=m,
        budget_split=budget_split,
        largest=float(np.abs(data.y - (data.y.mean() if intercept else 0.0)).max()),
        unit=float(data.y.std()) if intercept else 1.0,
        moments=cache(lambda: _moments(config, data)),
        prices=np.array(prices.costs) if prices and config.algo.cost_aware else None,
    )


def _moments(config: Config, data: Dataset) -> np.ndarray:
    """Return second moments, units of grids: over all examples, 1 as a pilot makes them, or as if even in ranges."""
    if config.dataset.scaled_by_pilot or config.dataset.scaled_by_ranges:
        return np.full(data.X.shape[1], 1.0 if config.dataset.scaled_by_pilot else 1 / 3)
    everything = np.arange(data.y.size)
    return second_moments(table_of(config.dataset.center, data, everything), everything)
