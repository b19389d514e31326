"""What will be run: every decision of a run, made before anything is computed, and its attribute bill."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from budgetreg.data import Dataset, load
from budgetreg.errors import ConfigError, DataError
from budgetreg.protocol.configuration import AlgoConfig, Config
from budgetreg.protocol.grids import count, lay_out
from budgetreg.tasks.task import task_of
from budgetreg.theory import mbeg_least_examples
from budgetreg.updates.gen_est import INNER_PRODUCT_DRAWS, averaged_draws, second_moment

AXIS_SPAN = 256
"""The attribute axis begins at the cost of a full row, or at its end divided by this."""


LARGE_SECOND_MOMENT = 1e4
"""Of GenEst's estimates of a slope that is 1 at most: beyond it, nothing can be learned in a pass of usual length."""


ONLINE_ON_A_BUDGET = ("partial", "two_phase", "svr")
"""Kinds of learners that draw for the data point and for the inner product."""
IN_STEP = (*ONLINE_ON_A_BUDGET, "mbeg", "streaming")
"""Kinds of learners whose streams advance together, example by example."""

REPLICA_BYTES = 64
"""Per attribute and replica: what the largest state and its output take; per pair of them if subspaces are learned."""
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
    checkpoints : tuple of int
        Numbers of examples at which the curve is evaluated.
    settings : mapping of str to tuple of float
        The grid in absolute values, one entry per setting.
    attributes_final : int
        Most that the final run of a repetition may be charged.
    attributes_tuning : int
        Most that the cross-validation of a repetition may be charged, all folds and settings together.
    notes : tuple of str
        What the user is told once.
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
    checkpoints: tuple[int, ...]
    settings: Mapping[str, tuple[float, ...]]
    attributes_final: int
    attributes_tuning: int
    notes: tuple[str, ...]

    @property
    def budget(self) -> int | None:
        """Most attributes of one example that are revealed; None if their number is random and bounded on average."""
        on_average = self.config.algo.residual == "gen_est" or self.config.algo.update == "passive"
        return None if on_average else self.per_example

    @property
    def streams_at_once(self) -> int:
        """Streams that advance together: as many as memory is set aside for.

        Offline learners share what their folds have in common, so that a repetition's folds are never parted.
        """
        if self.config.algo.core == "offline":
            return self.config.tuning.folds
        numbers = self.d if self.config.algo.predicts else self.d**2
        replicas = min(self.config.backend.batch_size, STATE_BYTES // (REPLICA_BYTES * numbers))
        return max(1, replicas // self.n_settings)

    @property
    def one_pass(self) -> bool:
        """Whether the final runs advance beside the folds, for all settings, rather than after them for those chosen.

        Worth more than it costs where a step of few replicas is dear and where the outputs of all settings, which have
        to be kept until one is chosen, take little memory.  Learners that divide the examples into phases or see full
        rows do not let passes be of unequal lengths.
        """
        kept = 8 * self.d * self.n_settings * len(self.checkpoints)
        return self.tuned and self.config.algo.core in ("partial", "svr") and kept <= STATE_BYTES

    @property
    def repetitions_at_once(self) -> int:
        """Repetitions that advance together, of learners whose streams do."""
        data = load(self.config.dataset, self.config.seed, 0, targets=self.config.algo.predicts)
        if self.config.algo.core not in IN_STEP or not isinstance(data.X, np.ndarray):
            return 1
        streams = (self.config.tuning.folds if self.tuned else 0) + (not self.tuned or self.one_pass)
        return max(1, min(self.streams_at_once // streams, STATE_BYTES // data.X.nbytes))

    @property
    def n_settings(self) -> int:
        """Number of settings G; 1 of a learner without parameters."""
        return count(self.settings)

    @property
    def tuned(self) -> bool:
        """Whether there is anything to choose by cross-validation."""
        return self.n_settings > 1


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
    if config.dataset.center == "revealed" and config.algo.core in ("offline", "pairs"):
        raise ConfigError(f"dataset.center=revealed: {config.algo.name} stores what it sees; use full or none")
    data = load(config.dataset, config.seed, 0, targets=config.algo.predicts)
    task_of(config.algo).admit(config, data)
    n_train, n_test = split_sizes(config, data)
    d = data.X.shape[1]
    if config.k > d:
        raise ConfigError(f"k={config.k}: the attribute budget must be at most d={d}, the attributes of {data.name}")
    k_x, k_ip = split_budget(config.algo, config.k)
    per_example = d if config.algo.core in ("exact", "offline") or config.algo.update == "full" else config.k
    checkpoints = _checkpoints(config, n_train, d, per_example if config.axis == "attributes" else config.k)
    settings = lay_out(config, data, m=checkpoints[-1], k_x=k_x)
    n_settings = count(settings)
    folds = config.tuning.folds if n_settings > 1 else 0
    if folds > n_train:
        raise ConfigError(f"tuning.folds={folds}: at most the {n_train} training examples of {data.name}")
    fold_examples = min(checkpoints[-1], n_train - -(-n_train // folds)) if folds else 0
    notes = data.notes
    if config.dataset.center == "full":
        notes += ("dataset.center=full: the training means come from full rows, which no budget pays for",)
    if config.algo.knows_moments:
        notes += (
            f"{config.algo.name} is given the attributes' second moments over the training part, "
            "which no budget pays for",
        )
    if config.algo.core == "mbeg":
        notes += _mbeg_notes(config.algo, max(settings["eta"]), config.k, d)
    if config.algo.residual == "gen_est":
        notes += _gen_est_notes(config.algo, max(settings["B"]), float(np.abs(data.y).max()))
    return Plan(
        config=config,
        folder=config.folder(),
        dataset=data.name,
        fingerprint=data.fingerprint(),
        n_train=n_train,
        n_test=n_test,
        d=d,
        k_x=k_x,
        k_ip=k_ip,
        per_example=per_example,
        checkpoints=checkpoints,
        settings=settings,
        attributes_final=per_example * checkpoints[-1],
        attributes_tuning=per_example * fold_examples * folds * n_settings,
        notes=notes,
    )


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


def split_budget(algo: AlgoConfig, k: int) -> tuple[int | None, int | None]:
    """Return the draws for the data point and for the inner product; None for learners that draw for neither.

    Raises
    ------
    ConfigError
        If the budget is too small, or the split leaves no draw for either.
    """
    if algo.core == "svr" and (algo.residual == "gen_est" or algo.split == "literal"):
        if k <= INNER_PRODUCT_DRAWS:
            raise ConfigError(
                f"k={k}: {algo.name} needs a budget of at least {INNER_PRODUCT_DRAWS + 1}, one attribute for the data "
                f"point and {INNER_PRODUCT_DRAWS} for the inner product"
            )
        return k - INNER_PRODUCT_DRAWS, INNER_PRODUCT_DRAWS
    if algo.n_components is not None:
        _check_subspace_budget(algo, k, algo.n_components)
    if algo.core == "pairs" and k < 2:
        raise ConfigError(f"k={k}: {algo.name} needs a budget of at least 2, the attributes of one pair")
    if algo.core not in ONLINE_ON_A_BUDGET:
        return None, None
    if k < 2:
        raise ConfigError(
            f"k={k}: {algo.name} needs a budget of at least 2, one attribute for the data point and one for the "
            "inner product"
        )
    split = algo.literal_split if algo.split == "literal" else algo.split
    k_ip = split if isinstance(split, int) else {"one": 1, "half": k // 2, "even": k // 2}[str(split)]
    if not 1 <= k_ip < k:
        raise ConfigError(f"algo.split={k_ip}: inner-product draws must be between 1 and k-1={k - 1}")
    return k - k_ip, k_ip


def _check_subspace_budget(algo: AlgoConfig, k: int, n_components: int) -> None:
    if algo.update in ("passive", "full"):  # at any budget, these see two attributes of an example now and then
        return
    if k < 2:
        raise ConfigError(
            f"k={k}: {algo.name} needs a budget of at least 2, as one attribute of each example tells nothing of how "
            "attributes go together"
        )
    if algo.core == "mbeg" and k % 2:
        raise ConfigError(f"k={k}: {algo.name} sees attributes in pairs and needs an even budget")
    if algo.update in ("grouse", "petrels") and k <= n_components:
        raise ConfigError(
            f"k={k}: {algo.name} fits {n_components} weights to the attributes of each example, and needs a budget "
            f"above algo.n_components={n_components}"
        )


def _checkpoints(config: Config, n_train: int, d: int, per_example: int) -> tuple[int, ...]:
    asked = config.checkpoints
    in_shares = not isinstance(asked, int) and any(isinstance(one, float) for one in asked)
    if not isinstance(asked, int) and not in_shares:
        if asked[-1] > n_train:
            raise ConfigError(f"checkpoints={list(asked)}: there are only {n_train} training examples")
        return tuple(map(int, asked))
    end = config.k * n_train
    if end < per_example:
        raise ConfigError(
            f"k={config.k}: {end} attributes in all buy no full row of {d} for {config.algo.name}; "
            f"k={d} gives it every example"
        )
    begin = min(max(d, end // AXIS_SPAN), end)
    if isinstance(asked, int):
        axis = np.geomspace(begin, end, asked) if asked > 1 else np.array([end])
        axis[-1] = end
    else:
        axis = np.round(end * np.array(asked), 6)  # as 0.29 of 100 lies a bit below 29
    examples = {int(attributes) // per_example for attributes in axis} - {0}
    if not examples:
        raise ConfigError(
            f"checkpoints: none of these shares of {end} attributes buys {config.algo.name} an example of "
            f"{per_example}; give one of at least {per_example / end:.2g}"
        )
    return tuple(sorted(examples))


def _mbeg_notes(algo: AlgoConfig, eta: float, k: int, d: int) -> tuple[str, ...]:
    """Warn if the theorem does not hold, which wants ``alpha = eta d^2`` and at most 1/2."""
    if algo.alpha != "theory" or eta * d**2 <= 1 / 2:
        return ()
    return (
        f"{algo.name} is outside its theory: alpha = eta d^2 would be {eta * d**2:.2g} for eta up to {eta:.2g}, and is "
        f"set to 1/2; with theory's eta, it takes {mbeg_least_examples(k, d):.2g} examples to be inside",
    )


def _gen_est_notes(algo: AlgoConfig, B: float, largest: float) -> tuple[str, ...]:
    """Warn if the second moment of GenEst's estimates is hopeless, for the largest target and ``|x|_2 <= 1``."""
    assert algo.delta is not None and algo.eps is not None
    N = int(averaged_draws(np.array(B), algo.eps))
    moment = second_moment((largest + algo.delta) / algo.eps, (B / algo.eps) ** 2, N)
    if moment <= LARGE_SECOND_MOMENT:
        return ()
    return (
        f"algo.eps={algo.eps:g} is small for targets up to {largest:.3g} and B up to {B:g}: GenEst's estimates of a "
        f"slope of at most 1 have a second moment of {moment:.1g}; raise algo.eps, or take algo.residual=plug_in",
    )
