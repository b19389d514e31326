"""What will be run: every decision of a run, made before anything is computed, and its attribute bill."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from budgetreg.data import Dataset, Prices, load, located, prices_of
from budgetreg.errors import DataError
from budgetreg.learners.declaration import Observation
from budgetreg.learners.signature import BudgetSplit
from budgetreg.protocol.batching import batches
from budgetreg.protocol.configuration import Config
from budgetreg.protocol.grids import count, lay_out, run_context, widened
from budgetreg.protocol.notes import notes
from budgetreg.protocol.spending import Spending
from budgetreg.protocol.validation import check_config, check_data, check_folds


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
        Digest of their content, as a file can change under its name.
    n_train, n_test, d : int
        Training examples, test examples, attributes.
    budget_split : BudgetSplit or None
        How k is divided, for learners that declare it.
    per_example : int
        Attributes that a replica may be charged for one example: k, or d for a full-information learner. If `budget`
        is None, the limit holds on average.
    pilot : int
        Full rows that are bought first. They are the first examples of learners that see all attributes; other
        learners take no step on them.
    checkpoints : tuple of int
        Numbers of examples, the pilot's rows among them, at which the curve is evaluated.
    settings : mapping of str to tuple of float
        The grid in absolute values, one entry per setting.
    attributes_final : int
        Most that the final run of a repetition may be charged.
    attributes_tuning : int
        Most that the cross-validation of a repetition may be charged, all folds and settings together.
    notes : tuple of str
        Notes for the user, printed once.
    names : tuple of str
        Names of the attributes; empty if they have none.
    target : str
        Name of the target in the data; empty if it has none.
    prices : Prices or None
        Prices of the attributes. If they are known, the bill is itemised, and is in money too.
    gaps : bool
        Whether values are missing: drawing a missing value is free, and only complete rows are tested on.
    streams_at_once, repetitions_at_once : int
        Streams, and repetitions, that advance together.
    one_pass : bool
        Whether final runs advance beside the folds, see `budgetreg.protocol.batching`.
    """

    config: Config
    folder: Path
    dataset: str
    fingerprint: str
    n_train: int
    n_test: int
    d: int
    budget_split: BudgetSplit | None
    per_example: int
    pilot: int
    checkpoints: tuple[int, ...]
    settings: Mapping[str, tuple[float, ...]]
    attributes_final: int
    attributes_tuning: int
    notes: tuple[str, ...]
    names: tuple[str, ...]
    target: str
    prices: Prices | None
    gaps: bool
    streams_at_once: int
    repetitions_at_once: int
    one_pass: bool

    @property
    def budget(self) -> int | None:
        """Most attributes of one example that are revealed; None if their number is random and bounded on average."""
        return None if self.config.algo.observation is Observation.K_ON_AVERAGE else self.per_example

    @property
    def cells(self) -> int:
        """Pairs of a training example and an attribute: no run can reveal more of them, however often it draws."""
        return self.n_train * self.d

    @property
    def lead(self) -> int:
        """Examples on which the learner takes no step: the pilot's rows, unless it sees all attributes anyway."""
        return 0 if self.config.algo.observation is Observation.ALL else self.pilot

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

    def widened(self, edge: str) -> "Plan":
        """Return the same plan with a larger grid, which contains the settings so far, and with its bill.

        The parameter is that of `protocol.grids.widened`.
        """
        config = replace(self.config, algo=widened(self.config.algo, edge))
        data = load(config.dataset, config.seed, 0, targets=config.algo.predicts)
        run = run_context(config, data, self.budget_split, self.checkpoints[-1] - self.lead, self.prices)
        settings = lay_out(config, run)
        return replace(
            self,
            config=config,
            settings=settings,
            attributes_tuning=self.attributes_tuning // self.n_settings * count(settings),
            **batches(config, data, count(settings), len(self.checkpoints), self.prices is not None)._asdict(),
        )

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
    check_config(config)
    data = load(config.dataset, config.seed, 0, targets=algo.predicts)
    check_data(config, data)
    (n_train, n_test), d, prices = split_sizes(config, data), data.X.shape[1], prices_of(config.dataset, data)
    spending = Spending(config, n_train, d, algo.split_budget(config.k), prices)
    n_complete = int(data.complete.mean() * n_train)
    pilot = spending.pilot(n_complete // 2)
    lead = spending.lead(pilot)
    checkpoints = spending.checkpoints(pilot, lead)
    steps, rest = checkpoints[-1] - lead, n_train - pilot
    run = run_context(config, data, spending.budget_split, steps, prices)
    settings = lay_out(config, run)
    n_settings = count(settings)
    folds = config.tuning.folds if n_settings > 1 else 0
    check_folds(folds, rest, data.name)
    fold_steps = min(steps, rest - -(-rest // folds) + pilot - lead) if folds else 0
    return Plan(
        config=config,
        folder=config.folder(),
        dataset=data.name,
        fingerprint=data.fingerprint(),
        n_train=n_train,
        n_test=n_test,
        d=d,
        budget_split=spending.budget_split,
        per_example=spending.per_example,
        pilot=pilot,
        checkpoints=checkpoints,
        settings=settings,
        attributes_final=lead * d + spending.per_example * steps,
        attributes_tuning=spending.per_example * fold_steps * folds * n_settings,
        notes=(*notes(spending, data, pilot, n_complete, tuned=n_settings > 1), *algo.notes(run, settings)),
        names=data.names,
        target=data.target,
        prices=prices,
        gaps=data.available is not None,
        **batches(config, data, n_settings, len(checkpoints), prices is not None)._asdict(),
    )


def split_sizes(config: Config, data: Dataset) -> tuple[int, int]:
    """Return the numbers of training and test examples."""
    n = data.y.size
    if config.dataset.split == "official" and data.n_train is not None:
        return data.n_train, n - data.n_train
    n_test = int(n * config.dataset.test_fraction)
    return n - n_test, n_test
