"""The mutants of ``make mutants`` outside the protocol: what learners estimate, and what is said of finished runs."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mutation import Mutant, around, rewrite

from budgetreg.analysis.bootstrap import RESAMPLES
from budgetreg.analysis.comparisons import Candidate
from budgetreg.execution.verification import Comparison, Computation
from budgetreg.files.integrity import KEY
from budgetreg.protocol.configuration import Config
from budgetreg.results.models import Arrays, read_models

ADVICE = "tests/analysis/test_advice.py"
ADVISE = "tests/cli/test_advise.py"
DAMAGE = "tests/results/test_damage.py"
FEW_VALUES = "tests/learners/test_few_values.py"
MODELS = "tests/results/test_models.py"
TARGET_REGRESSION = "tests/learners/test_target_regression.py"


def trusting(content_of: Callable[[object], dict[str, Any] | None], record: object) -> dict[str, Any] | None:
    """Return the content of a record, also if it has no digest."""
    return record if isinstance(record, dict) and KEY not in record else content_of(record)


def counting_plain_mean(ranked: Callable[..., list[Candidate]], *args: Any, **kwargs: Any) -> list[Candidate]:
    """Rank by all means, the plain one among the resampled ones; NaN stays."""
    best, *others = ranked(*args, **kwargs)

    def share(candidate: Candidate, plain: int) -> Candidate:
        return replace(candidate, best_in=(candidate.best_in * RESAMPLES + plain) / (RESAMPLES + 1))

    return [share(best, 1), *(share(candidate, 0) for candidate in others)]


def shared_by_tunings(folder: Callable[..., Path], config: Config, *args: Any) -> Path:
    """Return the folder of a sweep as if nothing were tuned."""
    return folder(replace(config, resolved={**config.resolved, "tuning": {}}), *args)


def at_position(read: Callable[..., Arrays], folder: Path, repetition: int | None = None) -> Arrays:
    """Return the regressors at a position among the finished repetitions."""
    return read(folder, None if repetition is None else sorted(read_models(folder))[repetition])


def knowing(sources: slice) -> Callable[..., Comparison]:
    """Compare as if only some of what computed the results were recorded."""

    def comparing(compare: Callable[..., Comparison], recorded: Computation, again: Computation) -> Comparison:
        return compare(replace(recorded, sources=recorded.sources[sources]), again)

    return comparing


def forgiving(main: Callable[[Sequence[str]], int], argv: Sequence[str]) -> int:
    """Return the exit code without that of failed repetitions."""
    code = main(argv)
    return 0 if code == 1 else code


MUTANTS = (
    # Records and models of runs
    Mutant("records need no digest", "files:content_of", around(trusting), "damage passes for a result", (DAMAGE,)),
    Mutant(
        "an empty record is intact",
        "files:content_of",
        around(lambda content_of, record: {} if record == {} else content_of(record)),
        "an emptied line of a journal is no damage",
        (DAMAGE,),
    ),
    Mutant(
        "repetition=N is a position",
        "results:read_regressors",
        around(at_position),
        "after a failure, predictions are those of another repetition",
        (MODELS,),
    ),
    *(
        Mutant(
            f"a comparison forgets what computed {which}",
            "execution:compare",
            around(knowing(sources)),
            "a difference has no cause, though a part of the run came from elsewhere",
            ("tests/execution/test_verification.py",),
        )
        for which, sources in (("first", slice(1)), ("last", slice(1, None)), ("anything", slice(0)))
    ),
    # Advice
    Mutant(
        "the plain mean is among the resampled ones",
        "analysis:ranked",
        around(counting_plain_mean),
        "'best in' is too large for the best",
        (ADVICE,),
    ),
    Mutant(
        "advise succeeds though repetitions failed",
        "cli.advise:main",
        around(forgiving),
        "a script takes an incomplete comparison for a whole one",
        (ADVISE,),
    ),
    Mutant(
        "sweeps of all tunings share a folder",
        "cli.advise:_folder",
        around(shared_by_tunings),
        "the figure of one sweep replaces that of another",
        (ADVISE,),
    ),
    # Estimates
    Mutant(
        "residual variances with one degree of freedom more",
        "algorithms.aemr:label_regression",
        rewrite("_1 - 2", "_1 - 1"),
        "slopes of rare attributes are shrunk too little",
        (FEW_VALUES,),
    ),
    Mutant(
        "pooled variance with the divisor n",
        "algorithms.aemr:label_regression",
        rewrite("_1 - 1", "_1"),
        "variances of rare attributes are too small, and their pairs count too much",
        (FEW_VALUES,),
    ),
    Mutant(
        "attributes that are seen explain nothing",
        "algorithms.aemr:TargetRegression.unseen",
        rewrite("_1 - np.concatenate(explained)", "_1 - 0 * np.concatenate(explained)"),
        "examples that show what matters count no more than others",
        (TARGET_REGRESSION,),
    ),
    Mutant(
        "the target is regressed through the mean, whatever the origin",
        "algorithms.aemr:TargetRegression.__init__",
        rewrite("(first - origin)[live]", "0 * first[live]"),
        "without an intercept, predictions are off by what the means explain",
        (TARGET_REGRESSION,),
    ),
    Mutant(
        "noise from the mean of what is unseen",
        "algorithms.aemr:TargetRegression._noise",
        rewrite("_1 + _SHARE_OF_U_DIFFERENCES * u", "_1"),
        "the noise estimate does not use that some examples show more than others",
        (TARGET_REGRESSION,),
    ),
    Mutant(
        "narrow densities of small weights are as high as wide ones",
        "algorithms.aemr:WeightsPrior._draw_parameters",
        rewrite("_1 + np.log(_SMALL) / 2", "_1 - np.log(_SMALL) / 2"),
        "regressors are hardly ever sparse",
        (TARGET_REGRESSION,),
    ),
    Mutant(
        "no penalty of what is unseen",
        "algorithms.aemr:WeightsPrior.draw",
        rewrite("_1 + penalty * form", "_1"),
        "weights do not depend on the variance of examples in which their attributes are not seen",
        (TARGET_REGRESSION,),
    ),
    Mutant(
        "incomplete examples judge beside many complete ones",
        "algorithms.aemr:averaged",
        rewrite("regression.log_density(w, judges)", "regression.log_density(w)"),
        "predictions from a few attributes outweigh those from all",
        (TARGET_REGRESSION,),
    ),
    Mutant(
        "weights of the average do not sum to 1",
        "algorithms.aemr:averaged",
        rewrite("scores - logsumexp(scores)", "scores"),
        "the regressor is too long or too short",
        (TARGET_REGRESSION,),
    ),
    Mutant(
        "noise variances ignore the prior of the means",
        "algorithms.factors:Posterior._draw_loadings",
        rewrite("_1 + (_2 + _3 + 1) / 2", "_1 + (_2 + _3) / 2"),
        "few values seem noisier than the posterior says",
        (FEW_VALUES,),
    ),
    Mutant(
        "heavy tails are ignored",
        "revealed:StandardisedEntries.__init__",
        rewrite("_1 * _2 / (_3 - 1)", "_1"),
        "what chance seems to explain is believed",
        (FEW_VALUES,),
    ),
)
