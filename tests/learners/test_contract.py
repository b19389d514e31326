"""The contract of `fit`: a learner that yields something else than it declares is stopped by one line that names it."""

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from budgetreg import extend
from budgetreg.algorithms import contract, registry
from budgetreg.algorithms.full_rows import ExactGradientLearner
from budgetreg.algorithms.imputation import ImputedGradientLearner
from budgetreg.algorithms.learner import Learner, Parameter, RunContext, SideInformation, SubspaceLearner
from budgetreg.cli.app import main
from budgetreg.common.errors import ContractError, UserError
from budgetreg.config import catalogue
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table, WithIntercept
from budgetreg.testing import checks
from budgetreg.testing.enumeration import GradientOracle

F, G, D = 2, 3, 4
REGRESSORS = np.ones((F, D, G))


@dataclass(frozen=True)
class Plain(Learner):
    core: ClassVar[str] = "plain"


@dataclass(frozen=True)
class Centring(Learner):
    core: ClassVar[str] = "centring"
    centres_itself = True


@dataclass(frozen=True)
class Subspaces(SubspaceLearner):
    core: ClassVar[str] = "subspaces"


def run(learner: Learner, *pairs: Any, **given: bool) -> list[tuple[int, np.ndarray, Any]]:
    """Run a learner whose fit yields these things, with checkpoints 1 and 3."""
    accessor = Accessor(Table(np.zeros((5, D)), np.zeros(5)), np.tile(np.arange(5), (F, 1)), G, 2, [1, 3])

    def fit(*arguments: Any) -> Iterator[Any]:
        yield from pairs

    side = SideInformation(2, **given)  # type: ignore[arg-type]
    return list(contract.run(learner, accessor, {}, [1, 3], [], side, fit))


def refusal(learner: Learner, *pairs: Any, **given: bool) -> str:
    with pytest.raises(ContractError) as caught:
        run(learner, *pairs, **given)
    message = str(caught.value)
    assert message.startswith(f"{learner.name}: fit of {type(learner).__name__} ")
    assert "\n" not in message
    return message


def test_outputs_as_declared_pass_unchanged() -> None:
    plain = run(Plain(name="p"), (1, REGRESSORS), (3, 2 * REGRESSORS))
    assert [checkpoint for checkpoint, _, _ in plain] == [1, 3]
    assert plain[1][1].tobytes() == (2 * REGRESSORS).tobytes()
    pair = WithIntercept(REGRESSORS, np.arange(6.0).reshape(F, G))
    for given in ({}, {"centred": True}, {"intercept": True}):
        centring = run(Centring(name="c"), (1, pair), (3, pair), **given)
        assert centring[0][2][1].intercept.tolist() == [3, 4, 5]
    V = np.ones((F, G, D, 2))
    assert len(run(Subspaces(name="s"), (1, V), (3, V))) == 2


@pytest.mark.parametrize(
    ("pairs", "problem"),
    [
        ([(1, REGRESSORS)], "ends without outputs at checkpoint 3"),
        ([(3, REGRESSORS)], "yields outputs at 3 where the next checkpoint is 1"),
        ([(1, REGRESSORS), (3, REGRESSORS), (3, REGRESSORS)], "at 3 where all checkpoints have been yielded"),
        ([REGRESSORS], "yields a ndarray; yield pairs of a checkpoint and outputs"),
        ([(1, REGRESSORS[..., 0])], r"shape (2, 4); it must be (streams, attributes, settings) = (2, 4, 3)"),
        ([(1, REGRESSORS.swapaxes(1, 2))], "shape (2, 3, 4); it must be"),
        ([(1, REGRESSORS.tolist())], "yields a list; yield an array of floats"),
        ([(1, REGRESSORS.astype(int))], "yields an array of int64; yield an array of floats"),
        ([(1, WithIntercept(REGRESSORS, np.zeros((F, G))))], "yields WithIntercept, but the accessor centres"),
    ],
)
def test_regressors_that_break_the_contract_are_named_with_the_fix(pairs: Sequence[Any], problem: str) -> None:
    assert problem in refusal(Plain(name="p"), *pairs)


def test_a_setting_that_diverges_is_left_to_the_choice_of_parameters() -> None:
    W = REGRESSORS.copy()
    W[:, :, 2] = np.inf
    assert len(run(Plain(name="p"), (1, W), (3, W))) == 2
    W[1] = np.nan
    with pytest.raises(extend.DataError, match=r"^p: outputs are not finite after 1 examples.*scale the data"):
        run(Plain(name="p"), (1, W))


@pytest.mark.parametrize("given", [{"centred": True}, {"intercept": True}])
def test_a_learner_that_centres_itself_cannot_forget_its_intercept(given: Mapping[str, bool]) -> None:
    assert "yield WithIntercept(regressors, intercept)" in refusal(Centring(name="c"), (1, REGRESSORS), **given)
    assert len(run(Centring(name="c"), (1, REGRESSORS), (3, REGRESSORS))) == 2


def test_intercepts_and_subspaces_have_their_shapes() -> None:
    flat = WithIntercept(REGRESSORS, np.zeros(F))
    assert "intercepts of shape (2,)" in refusal(Centring(name="c"), (1, flat), intercept=True)
    assert "subspaces of shape (2, 4, 3)" in refusal(Subspaces(name="s"), (1, REGRESSORS))
    assert "subspaces of shape (2, 4, 3, 1)" in refusal(Subspaces(name="s"), (1, REGRESSORS[..., None]))


def broken(change: Callable[[int, Any], Any]) -> Callable[..., Iterator[Any]]:
    fit = ExactGradientLearner.fit

    def changed(*arguments: Any) -> Iterator[Any]:
        for checkpoint, W in fit(*arguments):
            yield from change(checkpoint, W)

    return changed


def test_a_run_ends_with_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ExactGradientLearner, "fit", broken(lambda m, W: [(m, W[:, :-1])]))
    words = "run algo=online_ridge k=2 dataset=sphere dataset.d=5 dataset.n=50 dataset.n_test=9 repetitions=1 n_jobs=1"
    assert main([*words.split(), "tuning=fixed", "tuning.B=1", "tuning.eta=0.1", "backend=sequential"]) == 1
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "online_ridge: fit of" in line]
    assert line.startswith("budgetreg: online_ridge: fit of ExactGradientLearner yields regressors of shape (1, 4, 1)")
    assert not issubclass(ContractError, UserError)


def test_the_checks_report_a_broken_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ExactGradientLearner, "fit", broken(lambda m, W: []))
    result = checks.run_check(checks.examined("online_ridge"), "same bytes")
    assert result.passed is False
    assert "ends without outputs at checkpoint 3" in result.reason


def test_theory_without_a_theorem_says_what_to_declare() -> None:
    @dataclass(frozen=True)
    class Unproved(Learner):
        parameters = (Parameter("eta", "the step size"),)
        tuned = ("eta",)

    run_context = RunContext(2, 4, 10, None, 1.0, 1.0, lambda: np.ones(4))
    with pytest.raises(extend.ConfigError, match=r"no theorem prescribes eta.*theory.*absolute=True"):
        Unproved(name="mine").theory(run_context, None)


def test_a_gradient_oracle_needs_no_option_of_the_learner(monkeypatch: pytest.MonkeyPatch) -> None:
    """A learner without update, average or prices is compared with the same step."""

    @dataclass(frozen=True)
    class Bare(Learner):
        core: ClassVar[str] = "bare"
        tuned = ("B", "eta")
        centres_itself = True
        parameters = ImputedGradientLearner.parameters

        def fit(self, *arguments: Any) -> Any:
            return ImputedGradientLearner(name="inner", average="all").fit(*arguments)

        @property
        def oracle(self) -> GradientOracle:
            return GradientOracle(extend.REFERENCE_UPDATES["ogd"], None, "online_ridge", average="all")

    subject = checks.examined("sgd_impute")
    algo = Bare(name="bare", grid=subject.learner.grid)
    bare = replace(subject, config=replace(subject.config, algo=algo))
    assert checks.run_check(bare, "full at k=d").passed


def test_options_of_a_class_that_is_no_dataclass_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Undecorated(Plain):
        core: ClassVar[str] = "undecorated"
        shrinkage: float = extend.option("the shrinkage", extend.POSITIVE)

    monkeypatch.setattr(catalogue, "declared", lambda *arguments: {"undecorated": Undecorated})
    with pytest.raises(ContractError, match=r"^Undecorated declares options: decorate it with @dataclass"):
        registry.cores.__wrapped__()


@pytest.mark.parametrize("name", catalogue.options("algo"))
def test_learners_travel_to_worker_processes(name: str) -> None:
    learner = checks.examined(name).learner
    assert pickle.loads(pickle.dumps(learner)) == learner
