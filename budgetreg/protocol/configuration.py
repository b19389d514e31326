"""The configuration of a run: what Hydra composed, checked and turned into frozen dataclasses.

What each key must be stands in `budgetreg.config.rules`; a mistake becomes one line that names the key, the value
and what is possible. What is particular to a kind of data (``dataset.digits``, ``dataset.path``, ...) is only
checked for being there: its meaning belongs to `budgetreg.data`.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from budgetreg.config.catalogue import options
from budgetreg.config.rules import BACKEND, DATASETS, GRIDS, LEARNERS, OPTIONS, TOP, TUNINGS, check, chosen
from budgetreg.errors import ConfigError, nearest

_EXECUTION = ("n_jobs", "backend", "out", "repetitions", "protocol")  # change no result, but by what they set
_ALIKE_ON_BOTH_AXES = ("partial", "two_phase", "svr", "pairs")  # as every example costs k attributes
_LOCATION = ("root",)  # of a data set: where it lies, not what it is
_RECIPE = ("protocols", "omit", "figure", "differs", "claims")  # what a recipe tells of its results
# By algo.core: what such a learner makes no use of.
_WITHOUT = {
    "partial": (),
    "two_phase": (),
    "svr": (),
    "exact": ("split",),
    "offline": ("split", "average"),
    "pairs": ("split", "average"),
    **dict.fromkeys(("second_moment", "mbeg", "streaming"), ("split", "average")),
}


@dataclass(frozen=True)
class AlgoConfig:
    """A learner, as a composition named in ``conf/algo/<name>.yaml``.

    Attributes
    ----------
    name : str
        What the learner is called in files and figures.
    core : {'partial', 'two_phase', 'svr', 'pairs', 'exact', 'offline', 'second_moment', 'mbeg', 'streaming'}
        The module of `budgetreg.learners` that runs it.
    update : {'ogd', 'eg', 'pegasos', 'ridge', 'lasso', 'program', 'correlation', 'active', 'passive', ...}
        The update of an online learner, the problem that another learner solves, or how a learner of subspaces sees
        attributes.
    data_point : {'uniform', 'subset', 'moment'} or None
        Independent uniform draws, a uniform subset, or independent draws guided by second moments; None if all
        attributes are seen.
    inner_product : {'weight', 'moment'} or None
        Draws in proportion to the regressor's weights, or guided by second moments, too; None as above.
    control_variate : {'none', 'mean', 'label'} or None
        What the inner product's draws are compared with; None for learners that offer none.
    literal_split : {'one', 'half'} or None
        How many draws the paper gives to the inner product; None if all attributes are seen.
    split : {'literal', 'even'}, int or None
        How the budget is split, a number being the inner product's draws; None if all attributes are seen.
    average : {'all', 'suffix', 'last'} or None
        Which iterates are averaged; None if there are none.
    grid : mapping of str to tuple of float
        Candidates for ``B`` and for ``eta`` and ``eta_two`` (multiples of theory's step size) or ``lambda`` (absolute).
    n_components : int or None
        Dimension of the subspace; None for regression.
    replacement : bool or None
        Whether the attributes are drawn with replacement; None for learners that offer no choice.
    phase_one : float or None
        The first phase's share of the examples; None for learners of one phase.
    smoothing : float, 'theory' or None
        What is added to estimated moments, in units of 13/6; None for learners of one phase.
    mix : float or None
        Share of equal weights in the second phase's draws; None for learners of one phase.
    alpha : float, 'theory' or None
        Share of pairs that are drawn uniformly; None for learners that draw no pairs.
    output : {'decompose', 'top'} or None
        How a weight matrix becomes a subspace; None for learners without.
    residual : {'gen_est', 'plug_in'} or None
        How the slope of the SVR loss is estimated; None for the squared loss.
    delta, eps : float or None
        The SVR loss ``max(|residual| - delta, 0)`` and the scale of its smoothing; None for the squared loss.
    """

    name: str
    core: str
    update: str
    data_point: str | None
    literal_split: str | None
    split: str | int | None
    average: str | None
    grid: Mapping[str, tuple[float, ...]]
    inner_product: str | None = None
    control_variate: str | None = None
    phase_one: float | None = None
    smoothing: float | str | None = None
    mix: float | None = None
    residual: str | None = None
    delta: float | None = None
    eps: float | None = None
    n_components: int | None = None
    replacement: bool | None = None
    alpha: float | str | None = None
    output: str | None = None

    @property
    def predicts(self) -> bool:
        """Whether it predicts targets; if not, it learns a subspace."""
        return self.n_components is None

    @property
    def knows_moments(self) -> bool:
        """Whether the learner is given the attributes' second moments."""
        return self.core == "partial" and "moment" in (self.data_point, self.inner_product)


@dataclass(frozen=True)
class DatasetConfig:
    """A data set, as named in ``conf/dataset/<name>.yaml``; `options` are what is particular to its kind."""

    name: str
    kind: str
    center: str
    split: str
    test_fraction: float
    options: Mapping[str, Any]


@dataclass(frozen=True)
class TuningConfig:
    """How parameters are chosen; `values` holds those that are given rather than chosen."""

    name: str
    at: str
    folds: int
    values: Mapping[str, float]


@dataclass(frozen=True)
class BackendConfig:
    """Where repetitions are computed, and how many replicas advance together at most; changes no result."""

    name: str
    batch_size: int


@dataclass(frozen=True)
class Config:
    """All that a run depends on. `resolved` is the same as plain dictionaries, lists and values."""

    experiment: str
    algo: AlgoConfig
    dataset: DatasetConfig
    tuning: TuningConfig
    backend: BackendConfig
    k: int
    axis: str
    repetitions: int
    seed: int
    checkpoints: int | tuple[float, ...]
    n_jobs: int
    out: str | None
    resolved: Mapping[str, Any]

    def identity(self) -> dict[str, Any]:
        """Return the resolved configuration without what changes no result, such as ``n_jobs`` or ``out``."""
        identity = {key: value for key, value in self.resolved.items() if key not in _EXECUTION}
        dataset = self.resolved["dataset"]
        identity["dataset"] = {key: value for key, value in dataset.items() if key not in _LOCATION}
        if self.algo.core in _ALIKE_ON_BOTH_AXES:
            identity["axis"] = "attributes"
        return identity

    def folder(self) -> Path:
        """Return the absolute folder of the results: `out`, or one that the identity determines.

        The same configuration finds its own folder again, which is what lets a command resume.
        """
        if self.out is not None:
            return Path(self.out).expanduser().absolute()
        digest = hashlib.sha256(json.dumps(self.identity(), sort_keys=True).encode()).hexdigest()
        leaf = f"{self.algo.name}-k{self.k}-seed{self.seed}-{digest[:8]}"
        return Path("runs", self.experiment, self.dataset.name, leaf).absolute()


def validate(cfg: DictConfig, given: Mapping[str, Any] | None = None) -> Config:
    """Check a composed configuration and return it as dataclasses.

    Parameters
    ----------
    cfg : DictConfig
        What Hydra composes: the groups ``algo``, ``dataset``, ``tuning``, ``backend`` and the plain keys.
    given : mapping, optional
        Keys such as ``algo.split`` that were given by hand, which prevail over what a recipe sets in ``learners``.

    Raises
    ------
    ConfigError
        If a key is unknown or missing, or a value is not what its key needs.
    """
    tree = _plain(cfg)
    check(tree, TOP, "")
    _apply_protocol(tree, given or {})
    for key in _RECIPE:
        del tree[key]
    _apply_recipe(tree["algo"], tree.pop("learners"), given or {})
    algo = _algo(tree["algo"])
    dataset = _dataset(tree["dataset"])
    tuning = _tuning(tree["tuning"], algo)
    check(tree["backend"], BACKEND, "backend")
    return Config(
        experiment=tree["experiment"],
        algo=algo,
        dataset=dataset,
        tuning=tuning,
        backend=BackendConfig(**tree["backend"]),
        k=tree["k"],
        axis=tree["axis"],
        repetitions=tree["repetitions"],
        seed=tree["seed"],
        checkpoints=_frozen(tree["checkpoints"]),
        n_jobs=tree["n_jobs"],
        out=tree["out"],
        resolved=tree,
    )


def left_out(choice: Mapping[str, Any], omit: Any) -> bool:
    """Whether a recipe leaves out a combination of its sweep.

    Parameters
    ----------
    choice : mapping
        Keys of the sweep, with the values of this combination.
    omit : list of mapping
        What the recipe says of it: a combination is left out if it has the value, or one of the values, of all keys of
        one of them.
    """
    return any(
        all(key in choice and choice[key] in (told if isinstance(told, list) else [told]) for key, told in one.items())
        for one in omit
    )


def _plain(cfg: DictConfig) -> dict[str, Any]:
    try:
        tree = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    except MissingMandatoryValue as error:
        raise ConfigError(f"{error.full_key}: a value is needed: {error.full_key}=VALUE") from error
    except OmegaConfBaseException as error:
        raise ConfigError(f"{error.full_key}: {str(error).splitlines()[0]}") from error
    assert isinstance(tree, dict)
    return {str(key): value for key, value in tree.items()}


def _apply_protocol(tree: dict[str, Any], given: Mapping[str, Any]) -> None:
    """Set what a recipe's preset sets, unless it was given by hand."""
    name, protocols = tree["protocol"], tree["protocols"]
    if name is None:
        return
    if name not in protocols:
        offered = ", ".join(protocols) or "no recipe with presets was chosen (experiment=NAME)"
        raise ConfigError(f"protocol={name}: no such preset{nearest(name, protocols)}; presets: {offered}")
    if not isinstance(protocols[name] or {}, dict):
        raise ConfigError(f"protocols.{name}: must be keys with values")
    for key, value in _leaves(protocols[name] or {}, ""):
        if key not in given:
            _set(tree, key, value)
    check(tree, TOP, "")


def _apply_recipe(section: Any, learners: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Set in the section ``algo`` what a recipe sets for this learner, unless it was given by hand."""
    for name in learners:
        if name not in options("algo"):
            raise ConfigError(f"learners.{name}: no such learner{nearest(name, options('algo'))}")
        if not isinstance(learners[name], dict):
            raise ConfigError(f"learners.{name}: must be keys of algo with values")
    own = learners.get(str(section.get("name")), {}) if isinstance(section, dict) else {}
    for key, value in _leaves(own, "algo"):
        if key not in given:
            _set(section, key.removeprefix("algo."), value)


def _set(tree: dict[str, Any], key: str, value: Any) -> None:
    *path, last = key.split(".")
    for step in path:
        tree = tree.setdefault(step, {})
        if not isinstance(tree, dict):
            raise ConfigError(f"{key}: no such key: {step} has none below it")
    tree[last] = value


def _leaves(tree: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(tree, dict):
        yield prefix, tree
        return
    for key, value in tree.items():
        yield from _leaves(value, f"{prefix}.{key}" if prefix else key)


def _algo(section: Any) -> AlgoConfig:
    rules = chosen(section, "algo", "core", LEARNERS)
    kind = f"{section['core']} {section.get('update')}"
    check(section, {**rules, **OPTIONS.get(kind, {})}, "algo")
    check(section["grid"], GRIDS[kind if kind in GRIDS else section["update"]], "algo.grid")
    if section["update"] == "pegasos" and "moment" in (section["data_point"], section["inner_product"]):
        raise ConfigError("algo.update=pegasos: its draws cannot be guided by moments; use ogd or eg")
    if section["update"] == "pegasos" and section["control_variate"] != "none":
        raise ConfigError("algo.update=pegasos: its inner product has no control variate; use ogd or eg")
    section.update(dict.fromkeys(_WITHOUT[section["core"]]))
    grid = {key: tuple(map(float, values)) for key, values in section["grid"].items()}
    return AlgoConfig(**{"data_point": None, "literal_split": None, **section, "grid": grid})


def _dataset(section: Any) -> DatasetConfig:
    check(section, chosen(section, "dataset", "kind", DATASETS), "dataset")
    common = {field.name: section[field.name] for field in fields(DatasetConfig) if field.name != "options"}
    options = {key: _frozen(value) for key, value in section.items() if key not in common}
    return DatasetConfig(**common, options=options)


def _tuning(section: Any, algo: AlgoConfig) -> TuningConfig:
    check(section, chosen(section, "tuning", "name", TUNINGS), "tuning")
    values = {key: float(section[key]) for key in algo.grid if section.get(key) is not None}
    missing = [f"tuning.{key}" for key in algo.grid if section["name"] == "fixed" and key not in values]
    if missing:
        raise ConfigError(f"tuning=fixed: {algo.name} needs {' and '.join(missing)}, numbers above 0")
    return TuningConfig(name=section["name"], at=section["at"], folds=section["folds"], values=values)


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
