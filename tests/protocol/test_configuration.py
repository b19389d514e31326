"""The configuration: what the files in conf/ compose to, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import DictConfig, OmegaConf, open_dict

from budgetreg.common.errors import ConfigError
from budgetreg.config import catalogue
from budgetreg.protocol.configuration import validate
from tests.refusals import refusal


@pytest.fixture(scope="module")
def default() -> DictConfig:
    with initialize_config_dir(str(catalogue.conf_dir()), version_base="1.3"):
        return compose("config")


def choosing(config: DictConfig, **options: str) -> DictConfig:
    """Return a copy in which groups hold other files of conf/, such as algo="ridge"."""
    files = {group: OmegaConf.load(catalogue.conf_dir() / group / f"{name}.yaml") for group, name in options.items()}
    return changed(config, **files)


def changed(config: DictConfig, **values: Any) -> DictConfig:
    """Return a copy with other values; a double underscore stands for a dot."""
    copy = config.copy()
    with open_dict(copy):
        for key, value in values.items():
            OmegaConf.update(copy, key.replace("__", "."), value, merge=False)
    return copy


def refused(config: DictConfig) -> str:
    return refusal(ConfigError, validate, config)


@pytest.mark.parametrize(
    "name",
    [
        *("mnist_3v5", "mnist", "digits_3v5", "diabetes", "breast_cancer", "wine"),
        *("power_law", "gaussian", "sphere", "three_bits"),
    ],
)
def test_each_data_set_composes(default: DictConfig, name: str) -> None:
    assert validate(choosing(default, dataset=name)).dataset.name == name


def test_a_data_set_has_its_options(default: DictConfig) -> None:
    config = changed(choosing(default, dataset="mnist"), dataset__digits=[1, 7], dataset__root="here")
    assert dict(validate(config).dataset.options) == {"root": "here", "digits": (1, 7)}


def test_a_file_needs_its_path(default: DictConfig) -> None:
    config = choosing(default, dataset="file")
    assert refused(config) == "dataset.path: a value is needed: dataset.path=VALUE"
    assert validate(changed(config, dataset__path="a.csv")).dataset.options["target"] is None


def test_tuning_by_theory_accepts_a_radius(default: DictConfig) -> None:
    config = choosing(default, tuning="theory")
    assert dict(validate(config).tuning.values) == {}
    assert dict(validate(changed(config, tuning__B=2)).tuning.values) == {"B": 2.0}


def test_a_recipe_sets_keys_of_a_learner_unless_they_are_given_by_hand(default: DictConfig) -> None:
    recipe = {"aelr": {"grid": {"B": [3]}, "split": "even"}, "aer": {"average": "last"}}
    config = changed(default, learners=recipe)
    algo = validate(config).algo
    assert (algo.grid["B"], algo.split, algo.average) == ((3.0,), "even", "all")
    assert len(algo.grid["eta"]) > 1
    by_hand = changed(config, algo__split=2)
    assert validate(by_hand, {"algo.split": 2}).algo.split == 2
    assert "learners" not in validate(config).identity()
    assert "did you mean 'lasso'" in refused(changed(default, learners={"lasssso": {}}))
    assert "algo.gird: no such key" in refused(changed(default, learners={"aelr": {"gird": 1}}))


def test_options_that_a_learner_lacks_are_refused(default: DictConfig) -> None:
    popca = choosing(default, algo="popca")
    assert validate(changed(popca, algo__replacement=True)).algo.replacement is True
    assert "must be true or false" in refused(changed(popca, algo__replacement=1))
    passive = choosing(default, algo="popca_passive")
    assert "algo.replacement: no such key" in refused(changed(passive, algo__replacement=True))
    assert "above 0 and below 1" in refused(changed(choosing(default, algo="popca_importance"), algo__mix=0))
    mbeg = choosing(default, algo="mbeg")
    assert [validate(changed(mbeg, algo__alpha=alpha)).algo.alpha for alpha in ("theory", 0, 1)] == [
        "theory",
        0,
        1,
    ]
    assert "algo.alpha=1.5: the share of uniform pairs" in refused(changed(mbeg, algo__alpha=1.5))
    assert "algo.grid.B: no such key" in refused(changed(popca, algo__grid__B=[1]))
    assert "algo.n_components=0" in refused(changed(popca, algo__n_components=0))


def test_fixed_tuning_takes_the_parameters_of_the_learner(default: DictConfig) -> None:
    config = changed(choosing(default, tuning="fixed"), tuning__B=2, tuning__lambda=3)
    assert dict(validate(choosing(config, algo="aer")).tuning.values) == {"B": 2.0, "lambda": 3.0}
    assert dict(validate(choosing(config, algo="lasso")).tuning.values) == {"B": 2.0}
    assert "tuning.eta" in refused(choosing(config, algo="aelr"))


@pytest.mark.parametrize("key", ["k", "repetitions", "n_jobs", "seed", "checkpoints"])
@pytest.mark.parametrize("value", [-1, True, 2.5, "abc", None])
def test_numbers_must_be_whole(default: DictConfig, key: str, value: Any) -> None:
    assert refused(changed(default, **{key: value})).startswith(f"{key}={json.dumps(value).strip(chr(34))}: ")


@pytest.mark.parametrize("key", ["k", "repetitions", "n_jobs", "checkpoints"])
def test_zero_is_refused(default: DictConfig, key: str) -> None:
    assert "at least 1" in refused(changed(default, **{key: 0}))
    assert validate(changed(default, seed=0)).seed == 0


@given(st.lists(st.integers(-2, 30), max_size=4))
def test_checkpoints_must_increase(default: DictConfig, examples: list[int]) -> None:
    config = changed(default, checkpoints=examples)
    if examples and examples[0] >= 1 and examples == sorted(set(examples)):
        assert validate(config).checkpoints == tuple(examples)
    else:
        assert refused(config).startswith("checkpoints=[")


@pytest.mark.parametrize(
    ("key", "value", "possible"),
    [
        ("algo__split", "evn", "did you mean 'even'?"),
        ("algo__split", 0, "whole number of at least 1"),
        ("algo__average", "foo", "one of all, suffix, last"),
        ("algo__core", "exactly", "one of corrected_moments, debiased_sgd, exact, factor_analysis"),
        ("algo__update", "adam", "one of ogd, eg, pegasos"),
        ("algo__grid__eta", [], "increasing list of numbers above 0"),
        ("algo__grid__eta", [1, 0.5], "increasing list of numbers above 0"),
        ("algo__grid__B", [0], "increasing list of numbers above 0"),
        ("algo__grid__B", [float("inf")], "increasing list of numbers above 0"),
        ("algo__grid__C", [1], "keys: B, eta"),
        ("algo", "aelr", "must have the key core"),
        ("tuning__at", "never", "one of end, each"),
        ("tuning__folds", 1, "at least 2"),
        ("dataset__center", "ful", "did you mean 'full'?"),
        ("dataset__center", "mean", "one of none, revealed, full"),
        ("dataset__test_fraction", 2, "above 0 and below 1"),
        ("dataset__split", "official", "must be one of random, all"),
        ("dataset__kind", "digit", "did you mean 'digits'?"),
        ("dataset__digits", [3, 5], "keys: name, kind"),
        ("backend__name", "ray", "one of loky, sequential, dask"),
        ("backend__address", "tcp://here:8786", "keys: name, batch_size"),
        ("backend__batch_size", 0, "at least 1"),
        ("out", "", "text, not empty or null"),
        ("kk", 3, "did you mean 'k'?"),
        ("k", 0, "=0: the attribute budget must be a whole number of at least 1 or one of auto, all"),
    ],
)
def test_errors_list_the_valid_choices(default: DictConfig, key: str, value: Any, possible: str) -> None:
    message = refused(changed(default, **{key: value}))
    assert message.startswith(key.replace("__", "."))
    assert possible in message


@pytest.mark.parametrize("address", ["tcp://10.0.0.7:8786", "tls://head-node.example:1", "tcp://[::1]:8786", None])
def test_the_address_of_a_scheduler_changes_no_result(default: DictConfig, address: str | None) -> None:
    given = changed(choosing(default, backend="dask"), backend__address=address)
    assert validate(given).backend.address == address
    assert validate(given).identity() == validate(default).identity()


@pytest.mark.parametrize("address", ["", "localhost", "8786", "localhost:8786", "udp://a:1", "tcp://a", "tcp://a:b", 1])
def test_a_malformed_address_of_a_scheduler_is_refused(default: DictConfig, address: object) -> None:
    message = refused(changed(choosing(default, backend="dask"), backend__address=address))
    assert message.startswith(f"backend.address={address}: the address of dask's scheduler must be tcp://HOST:PORT")


def test_a_missing_key_is_named(default: DictConfig) -> None:
    config = default.copy()
    with open_dict(config):
        del config["k"]
    assert refused(config) == "k: the attribute budget is missing"


def otherwise_executed(config: DictConfig) -> DictConfig:
    """Return a copy in which every key that changes no result is changed."""
    return changed(config, n_jobs=7, repetitions=99, out="x", backend__batch_size=3, dataset__root="y")


def test_tuning_paid_refuses_learners_that_choose_on_full_rows(default: DictConfig) -> None:
    message = refused(choosing(default, algo="aelr", tuning="paid"))
    assert "tuning=paid: aelr would choose B and eta on rows" in message
    offered = message.rpartition(": ")[2].split(", ")
    assert "aeml" in offered and {"ridge", "popca"}.isdisjoint(offered)
    paid, usual = (validate(choosing(default, algo="aeml", tuning=name)) for name in ("paid", "cv"))
    assert paid.identity() == usual.identity()  # neither chooses anything
    assert validate(choosing(default, algo="popca", tuning="paid")).tuning.name == "paid"


def test_the_identity_decides_the_folder(default: DictConfig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    config = changed(choosing(default, dataset="mnist_3v5"), seed=3)
    folder = validate(config).folder()
    assert folder.parent == tmp_path / "runs" / "mnist_3v5"
    assert folder.name.startswith("aelr-k4-seed3-")
    assert validate(changed(otherwise_executed(config), out=None)).folder() == folder
    assert validate(changed(config, algo__split="even")).folder() != folder


def test_out_or_a_recipe_names_the_folder(default: DictConfig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/someone")
    assert validate(changed(default, out="a/b")).folder() == tmp_path / "a" / "b"
    assert validate(changed(default, out="~/b")).folder() == Path("/home/someone/b")
    folder = validate(changed(default, experiment="somebody_2012/fig1")).folder()
    assert folder.parent == tmp_path / "runs/somebody_2012/fig1/digits_3v5"


@pytest.mark.parametrize("group", ["algo", "dataset", "tuning", "backend", "experiment"])
def test_every_file_begins_with_its_description(group: str) -> None:
    assert catalogue.options(group)
    for option in catalogue.options(group):
        assert len(catalogue.headline(group, option)) > 20


def test_a_preset_may_choose_another_tuning(default: DictConfig) -> None:
    recipe = changed(default, protocols={"given": {"tuning": {"name": "fixed", "B": 2, "eta": 0.5}}, "tuned": {}})
    tuned = validate(changed(choosing(recipe, algo="aelr"), protocol="tuned"))
    given = validate(changed(choosing(recipe, algo="aelr"), protocol="given"))
    assert (tuned.tuning.name, tuned.tuning.values) == ("cv", {})
    assert (given.tuning.name, given.tuning.values) == ("fixed", {"B": 2, "eta": 0.5})
    by_hand = changed(choosing(default, algo="aelr", tuning="fixed"), tuning__B=2, tuning__eta=0.5)
    assert given.digest() == validate(by_hand).digest()


def test_a_preset_that_keeps_the_tuning_reports_unknown_keys(default: DictConfig) -> None:
    recipe = changed(default, protocols={"wrong": {"tuning": {"B": 2}}}, protocol="wrong")
    assert refused(recipe).startswith("tuning.B: no such key")
