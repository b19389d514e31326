"""The configuration of a run: what Hydra composed, checked and turned into frozen dataclasses.

Learners and kinds of data declare their own keys. A mistake gives one line that names the key, the value and what is
possible.
"""

import json
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException
from omegaconf.resolvers import oc

from budgetreg.algorithms.learner import IGNORABLE, Learner, Observation
from budgetreg.algorithms.registry import algo_options, composed, cores, members, parameters
from budgetreg.common.errors import ConfigError, nearest
from budgetreg.common.files import at_home, record_digest
from budgetreg.config.catalogue import has_option, options
from budgetreg.config.nested import flatten, put
from budgetreg.config.options import (
    AUTO,
    BACKEND,
    FORMER,
    POSITIVE,
    RADIUS,
    RECIPE,
    TOP,
    TUNINGS,
    Option,
    Options,
    checked,
    chosen,
    completed,
    frozen,
    identity_of,
    increasing,
    options_of,
    resolve_nulls,
    tuning_options,
)
from budgetreg.data.attributes import EQUAL, with_ranges
from budgetreg.data.registry import ALL, DatasetConfig, DatasetKind, kinds

_AUTOMATIC_PILOT = 2
"""Version of the rule for the size of an automatic pilot, see `budgetreg.protocol.spending`."""

_MONEY_LIMIT = 5
"""Version of the rule by which a total in money ends a run, see `budgetreg.protocol.passes`."""

_CHOICE_OF_CELLS = 2
"""Version of the rule by which learners choose how many attributes they see, see `budgetreg.revealed.purchases`."""

_UNKNOWN_SCALES = 1
"""Version of the rule by which attributes of unknown scale are left out, see `budgetreg.revealed.columns.Rescaled`. It
is that of other tables than scikit-learn's: of these, no attribute is left out, so that their results are as before."""


@dataclass(frozen=True)
class TuningConfig:
    """The choice of parameters.

    Parameters in `values` are given rather than chosen. A grid may grow `widen` times if the best value is on its edge.
    """

    name: str
    at: str
    folds: int
    values: Mapping[str, float]
    widen: int = 0


@dataclass(frozen=True)
class BackendConfig:
    """The backend, and how many replicas advance together at most; neither changes a result.

    `address` is that of a scheduler, for backends that have one.
    """

    name: str
    batch_size: int
    address: str | None = None


@dataclass(frozen=True)
class Config:
    """Everything that a run depends on. `resolved` is the same as plain dictionaries, lists and values."""

    experiment: str
    algo: Learner
    dataset: DatasetConfig
    tuning: TuningConfig
    backend: BackendConfig
    k: int | str
    intercept: str
    pilot: int | str
    axis: str
    total: int | None
    predict_k: int | None
    repetitions: int
    seed: int
    checkpoints: int | tuple[float, ...]
    n_jobs: int
    out: str | None
    resolved: Mapping[str, Any]

    def identity(self) -> dict[str, Any]:
        """Return what decides the results: no defaults, nothing without effect, and the version of the learner.

        An option that is added later, with a default that changes nothing, does not change it.
        """
        # The axis decides where learners end that see all attributes, unless it counts what attributes cost.
        same_end = self.algo.observation is not Observation.ALL or self.axis == "paid"
        tuning, grid = self._choice()
        rescaled = self.dataset.scaled_by_pilot and self.dataset.kind != "scikit_learn"
        rules = {"automatic_pilot": _AUTOMATIC_PILOT} if self.has_automatic_pilot else {}
        rules |= {"money_limit": _MONEY_LIMIT} if self.ends_with_money else {}
        rules |= {"choice_of_cells": _CHOICE_OF_CELLS} if self.chooses_k else {}
        rules |= {"unknown_scales": _UNKNOWN_SCALES} if rescaled else {}
        learner = self.algo.identity(self.resolved["algo"]) | ({"grid": grid} if grid else {})
        costs, ignored = self.dataset.costs, learner.get("prices") == "ignored"
        if costs is None or (costs == EQUAL and not ignored):  # equal prices change no draw
            learner.pop("prices", None)
        return {
            **identity_of(TOP, self.resolved, {"algo", "dataset", "tuning", *(["axis"] if same_end else [])}),
            **rules,
            "algo": learner,
            "dataset": kinds()[self.dataset.kind].identity(self.resolved["dataset"]),
            **({"tuning": tuning} if tuning else {}),
        }

    @property
    def ends_with_money(self) -> bool:
        """Whether the total is money, and what an example costs depends on draws: they decide how many are seen."""
        priced = self.dataset.costs not in (None, EQUAL) and not self.chooses_k
        return priced and self.total is not None and self.algo.observation is not Observation.ALL

    @property
    def examples_asked(self) -> tuple[int, ...]:
        """The checkpoints that are given as numbers of examples; none of them if they are shares, or a number."""
        asked = self.checkpoints
        if isinstance(asked, int) or any(isinstance(checkpoint, float) for checkpoint in asked):
            return ()
        return tuple(map(int, asked))

    @property
    def last_share(self) -> float:
        """The last checkpoint, as a share of what would be spent; 1 unless checkpoints are shares."""
        return 1.0 if isinstance(self.checkpoints, int) or self.examples_asked else self.checkpoints[-1]

    @property
    def chooses_k(self) -> bool:
        """Whether the learner chooses how many attributes it sees of each example, within the total."""
        return self.k == AUTO

    @property
    def has_automatic_pilot(self) -> bool:
        """Whether the plan decides how large the pilot is; with ranges there is one for moments only."""
        needless = self.dataset.scaled_by_ranges and self.algo.given_moments != "pilot"
        return self.pilot == "auto" and not needless

    def digest(self) -> str:
        """Return the SHA-256 of the identity, by which results of this configuration are recognised."""
        return record_digest(self.identity())

    def recorded(self) -> dict[str, Any]:
        """Return the resolved configuration without what changes no result, such as ``n_jobs`` or ``out``."""
        kept = {key: value for key, value in self.resolved.items() if not TOP[key].inert}
        inert = {key for key, option in kinds()[self.dataset.kind].options.items() if option.inert}
        return {**kept, "dataset": {key: value for key, value in kept["dataset"].items() if key not in inert}}

    def folder(self) -> Path:
        """Return the absolute folder of the results: `out`, or one that the identity determines.

        A command resumes because the same configuration has the same folder.
        """
        if self.out is not None:
            return at_home(self.out).absolute()
        leaf = f"{self.algo.name}-k{self.k}-seed{self.seed}-{self.digest()[:8]}"
        return Path("runs", self.experiment, self.dataset.name, leaf).absolute()

    def _choice(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return which of the tuning, and which grids, decide the results."""
        grid = dict(self.resolved["algo"]["grid"])
        if not grid:
            return {}, {}
        tuning: dict[str, Any] = {"name": self.tuning.name, **self.tuning.values}
        if self.tuning.name == "fixed":
            return tuning, {}
        if self.tuning.name == "theory":
            grid = {key: values for key, values in grid.items() if key == RADIUS and key not in self.tuning.values}
        if any(len(values) > 1 for values in grid.values()):
            tuning |= {"at": self.tuning.at, "folds": self.tuning.folds}
            tuning |= {"widen": self.tuning.widen} if self.tuning.widen else {}
        return tuning, grid


def validate(cfg: Mapping[str, Any], given: Mapping[str, Any] | None = None) -> Config:
    """Check a composed configuration and return it as dataclasses.

    Parameters
    ----------
    cfg : DictConfig, or dict without interpolations
        What Hydra composes: the groups ``algo``, ``dataset``, ``tuning``, ``backend`` and the plain keys.
    given : mapping, optional
        Keys such as ``algo.split`` that were given by hand, which overrule what a recipe sets in ``learners``.

    Raises
    ------
    ConfigError
        If a key is unknown or missing, a value is not what its key needs, or no row is left to test on.
    """
    tree = _apply_protocol(checked(_plain(cfg), TOP, ""), given or {})
    _apply_recipe(tree["algo"], tree["learners"], given or {})
    config = _typed({key: value for key, value in tree.items() if key not in RECIPE})
    if config.dataset.untested:
        raise ConfigError(
            f"dataset.split={config.dataset.split}: leaves no row to test on; `budgetreg fit` learns once from all rows"
        )
    return config


def from_all_rows(config: Config) -> Config:
    """Return the configuration that learns once from all rows: without a test part, and with the last checkpoint alone.

    Raises
    ------
    ConfigError
        If the learner predicts nothing, or the data are a distribution without a test part.
    """
    if not config.algo.predicts:
        raise ConfigError(f"algo={config.algo.name}: learns a subspace, and predicts nothing; see budgetreg run")
    return restored(config.resolved, {"dataset.split": ALL, "repetitions": 1, "checkpoints": 1})


def restored(recorded: Mapping[str, Any], given: Mapping[str, Any] | None = None) -> Config:
    """Return a configuration as a run recorded it in its manifest, checked as if it had been asked for now.

    Parameters
    ----------
    recorded : mapping
        The key ``config`` of the manifest. Keys that it lacks have their defaults, as they had then.
    given : mapping, optional
        Dotted keys to set that change no result, such as ``n_jobs``; ``dataset.root`` is for data that have one.

    Raises
    ------
    ConfigError
        If it cannot be run by this version.
    """
    tree = json.loads(json.dumps(recorded))
    for key, value in (given or {}).items():
        if key != "dataset.root" or "root" in tree.get("dataset", {}):
            put(tree, key, value)
    tuning = tree.get("tuning", {})
    if tuning.get("name") in FORMER["tuning"]:
        tuning["name"] = FORMER["tuning"][tuning["name"]]
    return assembled(tree)


def assembled(tree: Mapping[str, Any]) -> Config:
    """Return the configuration of plain keys and sections, checked.

    Raises
    ------
    ConfigError
        If a key is unknown or missing, or a value is not what its key needs.
    """
    return _typed(checked(tree, {key: option for key, option in TOP.items() if key not in RECIPE}, ""))


def _typed(tree: dict[str, Any]) -> Config:
    """Return a configuration, all presets applied, as dataclasses; learners and kinds of data check their keys."""
    kind = kinds()[chosen(tree["dataset"], "dataset", "kind", kinds())]
    algo = _algo(tree, kind.own_data)
    own_data = kind.own_data and algo.predicts
    dataset = _dataset(tree, kind, own_data)
    tree.update(resolve_nulls(TOP, tree, own_data))
    tuning = _tuning(tree, algo, own_data)
    if tree["k"] == AUTO:
        _refuse_auto(algo, tree["total"])
    tree["backend"] = checked(tree["backend"], BACKEND, "backend")
    sections = {"algo": algo, "dataset": dataset, "tuning": tuning, "backend": BackendConfig(**tree["backend"])}
    plain = {field.name: frozen(tree[field.name]) for field in fields(Config) if field.name in tree}
    return Config(**{**plain, **sections}, resolved=tree)


def unlike(problem: str, able: Callable[[Learner], bool]) -> ConfigError:
    """Return the error of a learner that cannot do something, which ends with the names of those that can."""
    return ConfigError(problem + ", ".join(members(able)))


def with_defaults(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return an identity or a configuration with the defaults of the options that it leaves out.

    Sections of unknown learners and kinds of data stay as they are.
    """
    whole = completed(TOP, config)
    algo, dataset = whole.get("algo", {}), whole.get("dataset", {})
    if algo.get("core") in cores():
        whole["algo"] = completed(options_of(cores()[algo["core"]]), algo)
    if dataset.get("kind") in kinds():
        whole["dataset"] = completed(kinds()[dataset["kind"]].all_options(), dataset)
    tuning = whole.get("tuning", {})
    if tuning.get("name") in TUNINGS:
        whole["tuning"] = completed(_tuning_options(tuning["name"]), tuning)
    return whole


def names_and_paths() -> dict[str, Option]:
    """Return the options whose values are text as it was typed, by key, such as ``dataset.path``."""
    sections = [("", TOP), ("backend.", BACKEND)]
    sections += [("dataset.", kind.all_options()) for kind in kinds().values()]
    sections += [("algo.", options_of(core)) for core in cores().values()]
    options = {f"{prefix}{key}": option for prefix, section in sections for key, option in section.items()}
    return {key: option for key, option in options.items() if option.must.text}


def _interpolated(cfg: Any, texts: Container[str], prefix: str = "") -> None:
    """Replace interpolations: text that is a number, a flag or a list, such as that of ``${oc.env:N}``, becomes one."""
    keys: Iterable[Any] = cfg.keys() if isinstance(cfg, DictConfig) else range(len(cfg))
    for key in keys:
        name = f"{prefix}{key}" if isinstance(cfg, DictConfig) else prefix.removesuffix(".")
        value = None if OmegaConf.is_missing(cfg, key) else cfg[key]
        if isinstance(value, DictConfig | ListConfig):
            _interpolated(value, texts, f"{name}.")
        elif isinstance(value, str) and OmegaConf.is_interpolation(cfg, key) and name not in texts:
            with suppress(OmegaConfBaseException):  # which is text then
                cfg[key] = oc.decode(value, cfg, None)  # type: ignore[arg-type]


def _plain(cfg: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(cfg, DictConfig):
        return dict(cfg)
    try:
        cfg = deepcopy(cfg)
        _interpolated(cfg, names_and_paths())
        tree = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    except MissingMandatoryValue as error:
        raise ConfigError(f"{error.full_key}: a value is needed: {error.full_key}=VALUE") from error
    except OmegaConfBaseException as error:
        raise ConfigError(f"{error.full_key}: {str(error).splitlines()[0]}") from error
    assert isinstance(tree, dict)
    return {str(key): value for key, value in tree.items()}


def _apply_protocol(tree: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Set what a recipe's preset sets, unless it was given by hand.

    A preset that names another tuning drops the keys that only the former tuning has.
    """
    name, protocols = tree["protocol"], tree["protocols"]
    if name is None:
        return tree
    if name not in protocols:
        offered = ", ".join(protocols) or "no recipe with presets was chosen (experiment=NAME)"
        raise ConfigError(f"protocol={name}: no such preset{nearest(name, protocols)}; presets: {offered}")
    if not isinstance(protocols[name] or {}, dict):
        raise ConfigError(f"protocols.{name}: must be keys with values")
    former = tree["tuning"].get("name") if isinstance(tree["tuning"], dict) else None
    for key, value in flatten(protocols[name] or {}).items():
        if key not in given:
            put(tree, key, value)
    tuning = tree["tuning"]
    if isinstance(tuning, dict) and tuning.get("name") in TUNINGS and tuning["name"] != former:
        known = _tuning_options(tuning["name"])
        tree["tuning"] = {key: value for key, value in tuning.items() if key in known or f"tuning.{key}" in given}
    return checked(tree, TOP, "")


def _apply_recipe(section: Any, learners: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Set in the section ``algo`` what a recipe sets for this learner, unless it was given by hand."""
    for name in learners:
        if not has_option("algo", name):
            raise ConfigError(f"learners.{name}: no such learner{nearest(name, options('algo'))}")
        if not isinstance(learners[name], dict):
            raise ConfigError(f"learners.{name}: must be keys of algo with values")
    keys = learners.get(str(section.get("name")), {}) if isinstance(section, dict) else {}
    for key, value in flatten(keys).items():
        if f"algo.{key}" not in given:
            put(section, key, value)


def _algo(tree: dict[str, Any], own_data: bool) -> Learner:
    core = cores()[chosen(tree["algo"], "algo", "core", cores())]
    declared = algo_options(core)
    section = resolve_nulls(declared, checked(tree["algo"], declared, "algo"), own_data)
    learner = composed(section, {})
    parameter = increasing("an increasing list of numbers above 0", POSITIVE)
    checked(section["grid"], {key: Option(f"the grid of {key}", parameter) for key in learner.tuned}, "algo.grid")
    if reason := learner.refuse():
        raise ConfigError(reason)
    unused = {key: None for key in IGNORABLE if key not in options_of(core)}
    tree["algo"] = {key: value for key, value in {**section, **unused}.items() if not declared[key].inert}
    grid = {key: tuple(map(float, values)) for key, values in section["grid"].items()}
    return replace(learner, grid=grid)


def _refuse_auto(algo: Learner, total: int | None) -> None:
    if not algo.chooses_k:
        raise unlike(
            f"k={AUTO}: {algo.name} cannot choose k with its options; give a number, or use one of ",
            lambda other: other.chooses_k,
        )
    if total is None:
        raise ConfigError(
            f"k={AUTO}: needs total=T, the attributes that may be spent in all, or with dataset.costs the money"
        )


def _dataset(tree: dict[str, Any], kind: DatasetKind, own_data: bool) -> DatasetConfig:
    declared = kind.all_options()
    asked = with_ranges(checked(tree["dataset"], declared, "dataset"))
    section = tree["dataset"] = resolve_nulls(declared, asked, own_data)
    of_kind = {key: frozen(section[key]) for key in kind.options}
    return DatasetConfig(**{key: value for key, value in section.items() if key not in of_kind}, options=of_kind)


def _tuning_options(name: str) -> Options:
    return tuning_options(name, {parameter.name: parameter.what for parameter in parameters().values()})


def _tuning(tree: dict[str, Any], algo: Learner, own_data: bool) -> TuningConfig:
    name = chosen(tree["tuning"], "tuning", "name", TUNINGS)
    declared = _tuning_options(name)
    section = tree["tuning"] = resolve_nulls(declared, checked(tree["tuning"], declared, "tuning"), own_data)
    if name == "paid" and algo.grid:
        raise unlike(
            f"tuning=paid: {algo.name} would choose {' and '.join(algo.grid)} on rows that are seen in full; "
            "learners without such parameters: ",
            lambda other: (
                not other.tuned and other.observation is not Observation.ALL and other.predicts == algo.predicts
            ),
        )
    values = {key: float(section[key]) for key in algo.grid if section.get(key) is not None}
    missing = [f"tuning.{key}" for key in algo.grid if name == "fixed" and key not in values]
    if missing:
        raise ConfigError(f"tuning=fixed: {algo.name} needs {' and '.join(missing)}, numbers above 0")
    return TuningConfig(name, section["at"], section["folds"], values, section.get("widen", 0))
