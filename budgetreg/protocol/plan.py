"""The plan of a run: all decisions, made before anything is computed, and its attribute bill."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from budgetreg.algorithms.learner import Batching, Learner, Missing, Observation
from budgetreg.common.errors import ConfigError, DataError, too_large
from budgetreg.config.options import EVERY
from budgetreg.data.dataset import Dataset
from budgetreg.data.registry import load, located, prices_of
from budgetreg.data.tables import shown
from budgetreg.protocol.configuration import Config, unlike
from budgetreg.protocol.spending import Spending, hit_rate
from budgetreg.protocol.split import refuse_incomplete, shares
from budgetreg.protocol.tuning import count, lay_out, on_edge, run_context, widened

REPLICA_BYTES = 64
"""Memory per number of a replica's state, with its output: `Learner.state_numbers` counts these numbers."""
COUNT_BYTES = 24
"""Memory per attribute, replica and checkpoint of the curve for an itemised bill; folds have their own checkpoints."""
WORKER_BYTES = 1 << 30
"""Memory of one worker for the replicas that advance together, and for the data that they read."""

_MOST = 8
"""Names in a list."""


@dataclass(frozen=True)
class Plan(Spending):
    """A run, decided: what it may spend, and all the rest.

    Attributes
    ----------
    folder : Path
        Where the results go.
    dataset : str
        Name of the data.
    fingerprint : str
        Digest of their content, as a file can change under its name.
    n_test : int
        Test examples.
    settings : mapping of str to tuple of float
        The grid in absolute values, one entry per setting.
    notes : tuple of str
        Notes for the user, printed once.
    names : tuple of str
        Names of the attributes; empty if they have none.
    target : str
        Name of the target in the data; empty if it has none.
    labels : tuple of str
        The two labels that are predicted, -1 and +1 in this order; empty for other targets.
    dropped : tuple of (int, str)
        Columns of the data that are no attributes, see `Dataset`.
    first : int or None
        The index of the first column of a LIBSVM file; None for other data.
    data_bytes : int or None
        Memory of the attributes' values; None if they are not held as an array.
    """

    folder: Path
    dataset: str
    fingerprint: str
    n_test: int
    settings: Mapping[str, tuple[float, ...]]
    notes: tuple[str, ...]
    names: tuple[str, ...]
    target: str
    labels: tuple[str, ...]
    dropped: tuple[tuple[int, str], ...]
    first: int | None
    data_bytes: int | None

    @property
    def gaps(self) -> bool:
        """Whether values are missing: drawing a missing value is free, and those of test rows are replaced by draws."""
        return self.hit_rate is not None

    @property
    def spends_gaps(self) -> bool:
        """Whether draws, or their number, make up for values that are missing."""
        return self.gaps and (self.config.algo.missing is Missing.LEFT_OUT or self.config.total is not None)

    @property
    def budget(self) -> int | None:
        """Most attributes of one example that are revealed; None if their number is random and bounded on average."""
        return None if self.config.algo.observation is Observation.K_ON_AVERAGE else self.per_example

    @property
    def centred(self) -> bool:
        """Whether the means of what was revealed are subtracted from the attributes."""
        return self.config.dataset.center == "revealed"

    @property
    def intercept(self) -> bool:
        """Whether the mean of the targets is predicted where attributes are at their means."""
        return self.config.intercept == "mean"

    @property
    def n_settings(self) -> int:
        """Number of settings G; 1 for a learner without parameters."""
        return count(self.settings)

    @property
    def tuned(self) -> bool:
        """Whether there is anything to choose by cross-validation."""
        return self.n_settings > 1

    @property
    def folds(self) -> int:
        """Number of folds; 0 if nothing is tuned."""
        return self.config.tuning.folds if self.tuned else 0

    @property
    def attributes_final(self) -> int:
        """Most that the final run of a repetition may be charged."""
        pilot = self.pilot_before_learning * self.full_row
        most = self.per_example * (self.most_examples - self.pilot_before_learning)
        if self.config.chooses_k:
            most = min(most, int(self.money / self.cheapest))
        return pilot + most

    @property
    def attributes_tuning(self) -> int:
        """Most that the cross-validation of a repetition may be charged, all folds and settings together."""
        if not self.tuned:
            return 0
        rest = self.n_train - self.pilot
        longest = rest - -(-rest // self.folds) + self.pilot
        examples = min(self.checkpoints[-1], longest) - self.pilot_before_learning
        return self.per_example * examples * self.folds * self.n_settings

    @property
    def one_pass(self) -> bool:
        """Whether final runs advance beside the folds, for all settings, rather than afterwards for the chosen ones.

        This is worth its cost if a step of few replicas is slow and if little memory suffices to keep the outputs of
        all settings until one is chosen.
        """
        outputs = 8 * self.d * self.n_settings * len(self.checkpoints)
        alike = self.config.algo.unequal_lengths and not self.config.ends_with_money
        # What a prediction sees is chosen from what was seen by then.
        return self.tuned and alike and outputs <= WORKER_BYTES and self.config.predict_k is None

    @property
    def ends_together(self) -> bool:
        """Whether final runs of several repetitions may advance together, although each may end with its money."""
        return not self.config.ends_with_money or self.config.algo.independent_checkpoints

    @property
    def streams_at_once(self) -> int:
        """The number of streams that advance together: as many as fit into memory, or all folds of a repetition."""
        algo = self.config.algo
        if self.config.chooses_k:  # what a stream has seen decides what it sees next
            return 1
        if algo.batching is Batching.WITH_ITS_FOLDS:
            return self.config.tuning.folds
        counts = COUNT_BYTES * self.d * len(self.checkpoints) if self.prices else 0
        replicas = WORKER_BYTES // (REPLICA_BYTES * algo.state_numbers(self.d) + counts)
        return max(1, min(self.config.backend.batch_size, replicas) // self.n_settings)

    @property
    def repetitions_at_once(self) -> int:
        """The number of repetitions that advance together; no result depends on it."""
        if self.config.algo.batching is not Batching.IN_STEP or self.data_bytes is None:
            return 1
        if not (self.tuned or self.ends_together):  # nothing advances together: each is kept when it ends
            return 1
        of_a_repetition = self.folds + (not self.tuned or self.one_pass)
        return max(1, min(self.streams_at_once // of_a_repetition, WORKER_BYTES // self.data_bytes))

    def widened(self, edge: str) -> "Plan":
        """Return the same plan with a larger grid, which contains the settings so far.

        The parameter is that of `protocol.tuning.widened`.
        """
        config = replace(self.config, algo=widened(self.config.algo, edge))
        data = load(config.dataset, config.seed, 0, targets=config.algo.predicts)
        return replace(self, config=config, settings=lay_out(config, run_context(self, data)))

    def widest(self) -> "Plan":
        """Return the plan whose grid has grown as often as it may, and whose tuning is charged most."""
        tuning, algo = self.config.tuning, self.config.algo
        edges = {word for g in range(self.n_settings) for word in on_edge(self.settings, g).split()}
        ends = ("low", "high") if tuning.at == "each" else ("high",)  # at one checkpoint the best is on one of them
        names = [name for name in algo.grid if f"{name}:high" in edges and algo.in_grid(name).unlimited]
        plan, edge = self, " ".join(f"{name}:{end}" for name in names for end in ends)
        for _ in range(tuning.widen if edge else 0):
            plan = plan.widened(edge)
        return plan

    def located(self) -> "Plan":
        """Return the same plan for a process that runs in another folder: the paths of its data are absolute."""
        return replace(self, config=replace(self.config, dataset=located(self.config.dataset)))

    def refuse_other_data(self) -> None:
        """Compare the data as this process finds them with those that the plan was made for.

        Raises
        ------
        DataError
            If they are missing, or their content differs.
        """
        data = load(self.config.dataset, self.config.seed, 0, targets=self.config.algo.predicts)
        here, planned = f"{data.name} {data.fingerprint()}", f"{self.dataset} {self.fingerprint}"
        if here != planned:
            raise DataError(f"the data are not those of the plan: {here} instead of {planned}")


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
        If the data cannot be had, or nothing can be learned from them.
    """
    algo = config.algo
    _check_config(config)
    # All that is read is read here. What follows is arithmetic.
    data = load(config.dataset, config.seed, 0, targets=algo.predicts)
    if config.k == EVERY:  # as if that number had been asked for
        config = replace(config, k=data.n_purchases, resolved={**config.resolved, "k": data.n_purchases})
    _check_data(config, data)
    n_train, n_test = split_sizes(config, data)
    plan = Plan(
        config=config,
        n_train=n_train,
        d=data.X.shape[1],
        n_complete=int(data.complete.mean() * n_train),
        prices=prices_of(config.dataset, data),
        groups=data.groups,
        hit_rate=None,
        folder=config.folder(),
        dataset=data.name,
        fingerprint=data.fingerprint(),
        n_test=n_test,
        settings={},
        notes=(),
        names=data.names,
        target=data.target,
        labels=data.labels if algo.predicts else (),
        dropped=data.dropped,
        first=data.first,
        data_bytes=data.X.nbytes if isinstance(data.X, np.ndarray) else None,
    )
    _check_prices(algo, plan.free, data)
    algo.split_budget(plan.k)  # refuses a budget that is too small
    if data.available is not None:
        plan = replace(plan, hit_rate=hit_rate(data.available, plan.charged, plan.k, algo.missing))
    run = run_context(plan, data)
    plan = replace(plan, settings=lay_out(config, run))
    rest = n_train - plan.pilot
    if plan.folds > rest:
        outside = f" outside the pilot of {plan.pilot}" if plan.pilot else ""
        raise ConfigError(f"tuning.folds={plan.folds}: at most the {rest} training examples of {data.name}{outside}")
    refuse_incomplete(config, data, n_test, plan.pilot, plan.folds)
    return replace(plan, notes=(*data.notes, *_remarks(plan, data), *algo.notes(run, plan.settings)))


def split_sizes(config: Config, data: Dataset) -> tuple[int, int]:
    """Return the numbers of training and test examples."""
    n = data.y.size
    if config.dataset.split == "official" and data.n_train is not None:
        return data.n_train, n - data.n_train
    n_test = 0 if config.dataset.untested else int(n * config.dataset.test_fraction)
    return n - n_test, n_test


def _check_config(config: Config) -> None:
    """Refuse keys that contradict each other or the learner.

    Raises
    ------
    ConfigError
    """
    algo = config.algo
    if config.total is not None:
        if config.axis == "examples":
            raise ConfigError(
                f"total={config.total}: axis=examples ends all learners at the same number of examples; use one of them"
            )
        if config.examples_asked:
            raise ConfigError(
                f"checkpoints={list(config.examples_asked)}: these numbers of examples contradict "
                f"total={config.total}; give shares, such as [0.5,1.0]"
            )
    if config.intercept == "mean" and not algo.predicts:
        raise ConfigError(f"intercept=mean: {algo.name} learns a subspace and predicts nothing; use none")
    if config.predict_k is not None and not algo.predicts:
        raise ConfigError(f"predict_k={config.predict_k}: {algo.name} learns a subspace and predicts nothing; use null")
    no_origin = algo.skipped_checks.get("origin")
    if no_origin and (config.intercept == "mean" or config.dataset.center == "revealed"):
        raise ConfigError(f"{algo.name}: {no_origin}: use intercept=none, and dataset.center=none or full")


def _check_prices(algo: Learner, free: np.ndarray | None, data: Dataset) -> None:
    """Refuse free attributes that a learner cannot use.

    Raises
    ------
    ConfigError
        If another learner can.
    """
    if free is not None and not algo.uses_free:
        which = shown([data.names[at] if data.names else data.label(at) for at in np.flatnonzero(free).tolist()])
        raise unlike(
            f"dataset.costs: the price of {which} is 0, and {algo.name} cannot use more than its k attributes: give a "
            "price above 0, or use one of ",
            lambda other: other.uses_free and other.predicts == algo.predicts,
        )


def _check_data(config: Config, data: Dataset) -> None:
    """Refuse data that the learner cannot use, or that are too few or too narrow for the configuration.

    Raises
    ------
    ConfigError
        If another configuration can use the data.
    DataError
        If none can.
    """
    algo, d, n = config.algo, data.X.shape[1], data.y.size
    algo.task.admit(algo.name, data, config.dataset.center)
    if data.groups is not None and not algo.draws_groups:
        raise unlike(
            f"dataset.groups: {algo.name} draws single attributes; learners that draw groups: ",
            lambda other: other.draws_groups and other.predicts == algo.predicts,
        )
    if np.isnan(data.y).any() and not algo.unlabelled:
        raise unlike(
            f"{data.name}: {algo.name} needs the target of every example; learners that accept missing targets: ",
            lambda other: other.unlabelled,
        )
    if data.available is not None and algo.missing is Missing.REFUSED:
        raise unlike(
            f"dataset.missing=unavailable: {algo.name} needs every value; learners that accept missing values: ",
            lambda other: other.missing is not Missing.REFUSED and other.predicts == algo.predicts,
        )
    if data.available is not None and algo.missing is Missing.WEIGHED:
        try:
            shares(data, np.arange(n))
        except MemoryError as error:
            raise too_large(algo.name, d, error) from error
    if config.dataset.split == "official" and data.n_train is None:
        raise ConfigError(f"dataset.split=official: {data.name} has no official split; use random")
    drawn = config.dataset.split != "official" and not config.dataset.untested
    if drawn and not 0 < int(n * config.dataset.test_fraction) < n:
        raise DataError(f"{data.name} has {n} examples: too few for a test part of {config.dataset.test_fraction}")
    if config.predict_k is not None and config.predict_k > d:
        raise ConfigError(f"predict_k={config.predict_k}: must be at most d={d}, the attributes of {data.name}")
    if isinstance(config.k, int) and config.k > data.n_purchases:
        most = f"d={d}, the attributes of {data.name}"
        if data.groups is not None:
            most = f"{data.n_purchases}, as a group counts as one of the {d} attributes of {data.name}"
        raise ConfigError(f"k={config.k}: the attribute budget must be at most {most}")


def _remarks(plan: Plan, data: Dataset) -> Iterator[str]:
    """Yield notes for the user on what a plan assumes, what is not paid for, and where it ends early."""
    config, algo = plan.config, plan.config.algo
    pilot, hits, first = plan.pilot, plan.hit_rate, plan.pilot_before_learning
    end, bought = plan.axis_end(first), plan.draws_bought(first)
    if config.chooses_k:
        yield (
            f"k=auto: {algo.name} chooses how many attributes it sees of each example; a checkpoint is an amount that "
            "is spent, and the column examples has that amount"
        )
    elif bought is not None and end < bought:
        about = "about " if hits or config.ends_with_money else ""
        values = hits.mean / plan.per_example if hits else 1
        paid = first * plan.full_row
        yield (
            f"{plan.total}: {algo.name} ends at {about}{paid + round((end - paid) * values)} attributes, when it "
            f"has seen {'up to ' if hits else ''}{plan.per_example} attributes of each of the "
            f"{plan.n_train} training examples"
        )
    elif config.ends_with_money:
        left = "" if config.last_share == 1 else f" of a share of {config.last_share:g}"
        yield (
            f"{plan.total}: {algo.name} ends where the next example would cost more than is left{left}, about "
            f"{plan.checkpoints[-1]} examples"
        )
    if pilot:
        # Missing values are replaced or left out, so more draws may be planned than the total pays for.
        most = end if config.ends_with_money else min(plan.attributes_final, config.total or plan.attributes_final)
        learned = "centre and moments" if config.dataset.scaled_by_ranges else "scale, centre and moments"
        source = "it"
        if config.dataset.scaled_by_revealed and algo.scales_itself:
            learned, source = "scale and centre", "all values seen"
        yield (
            f"a pilot of {pilot} full rows is bought first, {pilot * plan.full_row:,} of {most:,} attributes in "
            f"all: {learned} come from {source}"
        )
    asked = config.checkpoints
    if not isinstance(asked, int) and len(plan.checkpoints) < len(asked):
        yield (
            f"{len(plan.checkpoints)} of {len(asked)} checkpoints are left: others lie within the pilot, before the "
            "first example, or where another one is"
        )
    if plan.free is not None:
        names = shown([plan.prices.names[at] for at in np.flatnonzero(plan.free)]) if plan.prices else ""
        yield f"free attributes are seen for every example, beside those that are drawn, and are on no bill: {names}"
    if plan.groups is not None:
        yield (
            "attributes of a group are bought together, and count as one in k, in the bill and on the axis: "
            f"{plan.d} attributes are {np.count_nonzero(plan.groups.leads)} purchases"
        )
    if data.available is not None:
        replaced = algo.missing is Missing.LEFT_OUT
        way = "another attribute is drawn where a value is missing" if replaced else "missing values are skipped"
        folds = f"folds use complete rows only ({np.count_nonzero(data.complete)} of {data.y.size}), "
        tested = "those of test rows are drawn given the rest of the row and its target, the same for all learners, "
        yield (
            f"{1 - data.available.mean():.1%} of all cells have no value: {way} at no cost, "
            f"{tested if plan.n_test else ''}{folds if plan.tuned else ''}and "
            "estimates are unbiased if values are missing completely at random, which is assumed"
        )
        empty = [data.label(at) for at in np.flatnonzero(~data.available.any(axis=0)).tolist()]
        if empty:
            yield f"no row has a value of {listed(empty)}: such attributes have no weight"
    if config.dataset.center == "full":
        yield "dataset.center=full: the training means come from full rows, which no budget pays for"
    if algo.given_moments == "given":
        what = "the attributes' second moments over the training part"
        yield f"{algo.name} knows {what}, which no budget pays for"
    full_rows = plan.n_complete * plan.payment.row
    total = config.total or plan.k * plan.n_train
    if config.axis == "paid" and plan.tuned and full_rows > total:
        payer = f"k={config.k}" if config.total is None else "the total"
        which = "the complete rows of its held-out folds" if data.available is not None else "its held-out folds"
        yield (
            f"axis=paid: tuning sees all attributes of {which}, {full_rows:,.10g} {plan.payment.unit}, but "
            f"{payer} pays for {total:,}: no point of the curve can be drawn; with tuning=fixed, tuning costs nothing"
        )


def of_unknown_scale(way: str = "divide them by their known ranges, with scale='none'") -> str:
    """Return why attributes are left out, and what to do; their names are to follow."""
    return (
        "some attributes are left out, as the values seen do not show how large others will be (they are tiny, nearly "
        f"equal, or spread over decades); {way}, or take logarithms"
    )


def listed(words: Sequence[str]) -> str:
    """Return the first words of a list."""
    return ", ".join(words[:_MOST]) + (f", and {len(words) - _MOST} more" if len(words) > _MOST else "")
