"""The configuration of a run: what Hydra composed, checked and turned into frozen dataclasses.

What a learner's keys and those of a data set must be, its family and its kind declare; a mistake becomes one line that
names the key, the value and what is possible.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from budgetreg.config.catalogue import has_option, options
from budgetreg.config.nested import flatten
from budgetreg.config.options import Options, completed, identity_of, options_of, resolve_nulls, rules_of
from budgetreg.config.requirements import POSITIVE, check, chosen, increasing
from budgetreg.config.sections import BACKEND, RADIUS, RECIPE, TOP, TUNINGS, tuning_options
from budgetreg.data import DatasetConfig, DatasetKind, kinds
from budgetreg.data.scaling import with_ranges
from budgetreg.errors import ConfigError, nearest
from budgetreg.files.integrity import record_digest
from budgetreg.learners import algo_options, composed, cores, parameters
from budgetreg.learners.declaration import Learner, Observation
from budgetreg.learners.groups import members
from budgetreg.learners.online import IGNORABLE


@dataclass(frozen=True)
class TuningConfig:
    """How parameters are chosen; `values` holds those that are given rather than chosen.

    `widen` is how often a grid on whose edge the best value lies may grow.
    """

    name: str
    at: str
    folds: int
    values: Mapping[str, float]
    widen: int = 0


@dataclass(frozen=True)
class BackendConfig:
    """Where repetitions are computed, and how many replicas advance together at most; changes no result.

    `address` is that of a scheduler, for backends that have one.
    """

    name: str
    batch_size: int
    address: str | None = None


@dataclass(frozen=True)
class Config:
    """All that a run depends on. `resolved` is the same as plain dictionaries, lists and values."""

    experiment: str
    algo: Learner
    dataset: DatasetConfig
    tuning: TuningConfig
    backend: BackendConfig
    k: int
    intercept: str
    pilot: int | str
    axis: str
    total: int | None
    repetitions: int
    seed: int
    checkpoints: int | tuple[float, ...]
    n_jobs: int
    out: str | None
    resolved: Mapping[str, Any]

    def identity(self) -> dict[str, Any]:
        """Return what decides the results: no defaults, nothing that has no effect, and the version of the family's.

        An option that is added later, with a default that changes nothing, leaves it as it is.
        """
        groups = ("algo", "dataset", "tuning")
        # As each example costs k, or ends like the others at what its attributes cost, however that is drawn.
        equal = self.algo.observation is not Observation.ALL or self.axis == "paid"
        without = {*groups, "axis"} if equal else {*groups}
        chosen_by, grid = self._choice()
        learner = {**self.algo.identity(self.resolved["algo"]), **({"grid": grid} if grid else {})}
        if self.dataset.costs is None:
            learner.pop("prices", None)  # there are none to heed
        dataset = kinds()[self.dataset.kind].identity(self.resolved["dataset"])
        return {
            **identity_of(TOP, self.resolved, without),
            "algo": learner,
            "dataset": dataset,
            **({"tuning": chosen_by} if chosen_by else {}),
        }

    def digest(self) -> str:
        """Return the SHA-256 of the identity, by which results of this configuration are recognised."""
        return record_digest(self.identity())

    def recorded(self) -> dict[str, Any]:
        """Return the resolved configuration without what changes no result, such as ``n_jobs`` or ``out``."""
        kept = {key: value for key, value in self.resolved.items() if not TOP[key].inert}
        inert = {key for key, one in kinds()[self.dataset.kind].options.items() if one.inert}
        kept["dataset"] = {key: value for key, value in kept["dataset"].items() if key not in inert}
        return kept

    def folder(self) -> Path:
        """Return the absolute folder of the results: `out`, or one that the identity determines.

        The same configuration finds its own folder again, which is what lets a command resume.
        """
        if self.out is not None:
            return Path(self.out).expanduser().absolute()
        leaf = f"{self.algo.name}-k{self.k}-seed{self.seed}-{self.digest()[:8]}"
        return Path("runs", self.experiment, self.dataset.name, leaf).absolute()

    def _choice(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what of tuning and grid decides the results; nothing of what is not chosen, or not from the grid."""
        grid = dict(self.resolved["algo"]["grid"])
        if not grid:
            return {}, {}
        told: dict[str, Any] = {"name": self.tuning.name, **self.tuning.values}
        if self.tuning.name == "fixed":
            return told, {}
        if self.tuning.name == "theory":
            grid = {key: values for key, values in grid.items() if key == RADIUS and key not in self.tuning.values}
        if any(len(values) > 1 for values in grid.values()):
            told |= {"at": self.tuning.at, "folds": self.tuning.folds}
            told |= {"widen": self.tuning.widen} if self.tuning.widen else {}
        return told, grid


def validate(cfg: Mapping[str, Any], given: Mapping[str, Any] | None = None) -> Config:
    """Check a composed configuration and return it as dataclasses.

    Parameters
    ----------
    cfg : DictConfig, or dict without interpolations
        What Hydra composes: the groups ``algo``, ``dataset``, ``tuning``, ``backend`` and the plain keys.
    given : mapping, optional
        Keys such as ``algo.split`` that were given by hand, which prevail over what a recipe sets in ``learners``.

    Raises
    ------
    ConfigError
        If a key is unknown or missing, or a value is not what its key needs.
    """
    tree = _checked(_plain(cfg), TOP, "")
    tree = _apply_protocol(tree, given or {})
    learners = tree["learners"]
    for key in RECIPE:
        del tree[key]
    _apply_recipe(tree["algo"], learners, given or {})
    return _typed(tree)


def restored(recorded: Mapping[str, Any], given: Mapping[str, Any] | None = None) -> Config:
    """Return a configuration as a run recorded it in its manifest, checked as if it had been asked for now.

    Parameters
    ----------
    recorded : mapping
        The key ``config`` of the manifest. What it does not say has its default, as it had then.
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
            _set(tree, key, value)
    told = {key: one for key, one in TOP.items() if key not in RECIPE}
    return _typed(_checked(tree, told, ""))


def _typed(tree: dict[str, Any]) -> Config:
    """Return a configuration, all presets applied, as dataclasses; what its families and kinds declare is checked."""
    kind = kinds()[chosen(tree["dataset"], "dataset", "kind", kinds())]
    algo = _algo(tree, kind.own_data)
    own = kind.own_data and algo.predicts
    dataset = _dataset(tree, kind, own)
    tree.update(resolve_nulls(TOP, tree, own))
    tuning = _tuning(tree, algo, own)
    tree["backend"] = _checked(tree["backend"], BACKEND, "backend")
    return Config(
        experiment=tree["experiment"],
        algo=algo,
        dataset=dataset,
        tuning=tuning,
        backend=BackendConfig(**tree["backend"]),
        k=tree["k"],
        intercept=tree["intercept"],
        pilot=tree["pilot"],
        axis=tree["axis"],
        total=tree["total"],
        repetitions=tree["repetitions"],
        seed=tree["seed"],
        checkpoints=_frozen(tree["checkpoints"]),
        n_jobs=tree["n_jobs"],
        out=tree["out"],
        resolved=tree,
    )


def with_defaults(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return an identity or a configuration with the defaults of the options that it leaves out.

    Sections of families and kinds that are not known stay as they are.
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


def _plain(cfg: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(cfg, DictConfig):
        return dict(cfg)
    try:
        tree = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    except MissingMandatoryValue as error:
        raise ConfigError(f"{error.full_key}: a value is needed: {error.full_key}=VALUE") from error
    except OmegaConfBaseException as error:
        raise ConfigError(f"{error.full_key}: {str(error).splitlines()[0]}") from error
    assert isinstance(tree, dict)
    return {str(key): value for key, value in tree.items()}


def _apply_protocol(tree: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Set what a recipe's preset sets, unless it was given by hand."""
    name, protocols = tree["protocol"], tree["protocols"]
    if name is None:
        return tree
    if name not in protocols:
        offered = ", ".join(protocols) or "no recipe with presets was chosen (experiment=NAME)"
        raise ConfigError(f"protocol={name}: no such preset{nearest(name, protocols)}; presets: {offered}")
    if not isinstance(protocols[name] or {}, dict):
        raise ConfigError(f"protocols.{name}: must be keys with values")
    for key, value in flatten(protocols[name] or {}).items():
        if key not in given:
            _set(tree, key, value)
    return _checked(tree, TOP, "")


def _apply_recipe(section: Any, learners: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Set in the section ``algo`` what a recipe sets for this learner, unless it was given by hand."""
    for name in learners:
        if not has_option("algo", name):
            raise ConfigError(f"learners.{name}: no such learner{nearest(name, options('algo'))}")
        if not isinstance(learners[name], dict):
            raise ConfigError(f"learners.{name}: must be keys of algo with values")
    own = learners.get(str(section.get("name")), {}) if isinstance(section, dict) else {}
    for key, value in flatten(own, "algo.").items():
        if key not in given:
            _set(section, key.removeprefix("algo."), value)


def _set(tree: dict[str, Any], key: str, value: Any) -> None:
    *path, last = key.split(".")
    for step in path:
        tree = tree.setdefault(step, {})
        if not isinstance(tree, dict):
            raise ConfigError(f"{key}: no such key: {step} has none below it")
    tree[last] = value


def _checked(section: Any, declared: Options, prefix: str) -> dict[str, Any]:
    """Compare a section with its options; return it with the defaults of what it does not say."""
    rules = rules_of(declared, section if isinstance(section, dict) else {})
    whole = completed(declared, section) if isinstance(section, dict) else section
    check(whole, rules, prefix)
    return dict(whole)


def _algo(tree: dict[str, Any], own_data: bool) -> Learner:
    section = tree["algo"]
    options = options_of(cores()[chosen(section, "algo", "core", cores())])
    declared = algo_options(cores()[section["core"]])
    section = resolve_nulls(declared, _checked(section, declared, "algo"), own_data)
    learner = composed(section, {})
    parameter = increasing("an increasing list of numbers above 0", POSITIVE)
    check(section["grid"], {key: (f"the grid of {key}", parameter) for key in learner.tuned}, "algo.grid")
    reason = learner.refuse()
    if reason:
        raise ConfigError(reason)
    unused = {key: None for key in IGNORABLE if key not in options}
    tree["algo"] = {key: value for key, value in {**section, **unused}.items() if not declared[key].inert}
    grid = {key: tuple(map(float, values)) for key, values in section["grid"].items()}
    return replace(learner, grid=grid)


def _dataset(tree: dict[str, Any], kind: DatasetKind, own_data: bool) -> DatasetConfig:
    declared = kind.all_options()
    asked = with_ranges(_checked(tree["dataset"], declared, "dataset"))
    section = tree["dataset"] = resolve_nulls(declared, asked, own_data)
    own = {key: _frozen(section[key]) for key in kind.options}
    return DatasetConfig(**{key: value for key, value in section.items() if key not in own}, options=own)


def _tuning_options(name: str) -> Options:
    return tuning_options(name, {one.name: one.what for one in parameters().values()})


def _tuning(tree: dict[str, Any], algo: Learner, own_data: bool) -> TuningConfig:
    name = chosen(tree["tuning"], "tuning", "name", TUNINGS)
    declared = _tuning_options(name)
    section = tree["tuning"] = resolve_nulls(declared, _checked(tree["tuning"], declared, "tuning"), own_data)
    if name == "honest" and algo.grid:
        able = members(
            lambda one: not one.tuned and one.observation is not Observation.ALL and one.predicts == algo.predicts
        )
        raise ConfigError(
            f"tuning=honest: {algo.name} has {' and '.join(algo.grid)} chosen on rows that are seen in full; "
            f"what needs nothing chosen is {', '.join(able)}"
        )
    values = {key: float(section[key]) for key in algo.grid if section.get(key) is not None}
    missing = [f"tuning.{key}" for key in algo.grid if name == "fixed" and key not in values]
    if missing:
        raise ConfigError(f"tuning=fixed: {algo.name} needs {' and '.join(missing)}, numbers above 0")
    return TuningConfig(name, section["at"], section["folds"], values, section.get("widen", 0))


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
