"""The mutants of ``make mutants`` outside the protocol: what learners estimate, and what is said of finished runs."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mutation import Mutant, around, rewrite

from budgetreg.analysis.bootstrap import RESAMPLES
from budgetreg.analysis.comparisons import Candidate
from budgetreg.files import KEY
from budgetreg.protocol.configuration import Config
from budgetreg.runs.models import Arrays, read_models
from budgetreg.runs.verification import Comparison, Computation

ADVICE = "tests/analysis/test_advice.py"
ADVISE = "tests/cli/test_advise.py"
CONTAINERS = "tests/estimators/test_containers.py"
DAMAGE = "tests/runs/test_damage.py"
ESTIMATORS = "tests/estimators/test_estimators.py"
FEW_VALUES = "tests/learners/test_few_values.py"
IMPUTATION = "tests/learners/test_imputation.py"
FIRST_ROWS = "tests/data/test_first_rows.py"
SPARSE = "tests/runs/test_sparse_predictions.py"
MODELS = "tests/runs/test_models.py"
NAMES = "tests/figures/test_names.py"
TARGET_REGRESSION = "tests/learners/test_target_regression.py"

FACTOR = "algorithms.comparison.imputation:full_row_scale"


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


def as_wide_as_its_rows(by_index: Callable[..., dict[str, Any]], *args: Any) -> dict[str, Any]:
    """Return the columns that are left out, without the indices of those that there are."""
    return {"drop": by_index(*args)["drop"]}


MUTANTS = (
    # Tables and words that can be read in two ways
    Mutant(
        "a sparse table for predictions is as wide as its rows",
        "runs.predictions:_by_index",
        around(as_wide_as_its_rows),
        "columns that are 0 everywhere move those behind them",
        (SPARSE,),
    ),
    Mutant(
        "an index of another base is read as it is",
        "data.text_files:_line_fault",
        rewrite("known is not None and not known[0] <= int(index) <= known[1]", "False"),
        "files that begin at 0 are predicted one column off",
        (SPARSE,),
    ),
    Mutant(
        "lists count columns of a LIBSVM file from 1",
        "data:_columns",
        around(lambda columns, data: (*columns(data)[:3], 1)),
        "prices belong to the attribute before",
        (SPARSE,),
    ),
    Mutant(
        "an index of pandas is an attribute",
        "data.binary_files:_parquet",
        around(lambda opened, path: (opened(path)[0], [])),
        "numbers of patients are learned from, or predicted",
        ("tests/data/test_indexes.py",),
    ),
    Mutant(
        "Hydra reads names as numbers",
        "config.words:as_typed",
        around(lambda as_typed, word, texts: word),
        "another column is left out than the one that was named",
        ("tests/config/test_words.py",),
    ),
    Mutant(
        "hints quote no text",
        "config.words:_for_hydra",
        around(lambda for_hydra, text, quote: text),
        "a hint is refused in turn",
        ("tests/config/test_words.py",),
    ),
    Mutant(
        "what an interpolation gives is text",
        "protocol.configuration:_interpolated",
        around(lambda interpolated, *args: None),
        "n_jobs=${oc.env:N} is refused",
        ("tests/config/test_words.py",),
    ),
    Mutant(
        "any first row is a header",
        "data.text_files:_refuse_row_of_data",
        around(lambda refuse, *args: None),
        "a file without a header loses its first row",
        (FIRST_ROWS,),
    ),
    Mutant(
        "each comma is a decimal comma",
        "data.tables:comma_fault",
        rewrite("_THOUSANDS.fullmatch(text) is not None", "False"),
        "1,234 becomes 1.234",
        (FIRST_ROWS,),
    ),
    Mutant(
        "the name of a file decides alone",
        "data.file:refuse_disguised",
        around(lambda refuse, path: None),
        "nobody says what a file under a wrong name is",
        (FIRST_ROWS,),
    ),
    Mutant(
        "workers end with the terminal",
        "runs.workers:interrupts_ignored",
        rewrite("_handling(signal.SIGHUP, signal.SIG_IGN)", "_handling(signal.SIGINT, signal.SIG_IGN)"),
        "a closed terminal is reported as workers that died",
        ("tests/runs/test_signals.py",),
    ),
    Mutant(
        "a closed terminal kills",
        "runs.workers:termination_as_interrupt",
        rewrite(
            "_interrupted_by(signal.SIGINT, signal.SIGTERM, signal.SIGHUP)",
            "_interrupted_by(signal.SIGINT, signal.SIGTERM)",
        ),
        "a run leaves no tables and no message",
        ("tests/runs/test_signals.py",),
    ),
    Mutant(
        "a missing dataset.root is accepted in silence",
        "data.mnist:Mnist.load",
        rewrite("parent_process() is None", "False"),
        "nobody notices that other files are used",
        ("tests/data/test_mnist.py",),
    ),
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
            ("tests/runs/test_verification.py",),
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
        "the factor of imputed rows is judged by the rows of the fit",
        FACTOR,
        rewrite("rows.solved(strengths, held_out)", "rows.solved(strengths)"),
        "regressors of few rows are too long",
        (IMPUTATION,),
    ),
    Mutant(
        "the factor of imputed rows ignores means in the products with the target",
        FACTOR,
        rewrite("Z[held_out] / shares + origin", "Z[held_out] / shares"),
        "without centring, regressors have a wrong length",
        (IMPUTATION,),
    ),
    Mutant(
        "the factor of imputed rows ignores means in the second moments",
        FACTOR,
        rewrite("covariance(Z, seen) + _1", "covariance(Z, seen)"),
        "without centring, regressors have a wrong length",
        (IMPUTATION,),
    ),
    Mutant(
        "heavy tails are ignored",
        "revealed:StandardisedEntries.__init__",
        rewrite("_1 * _2 / (_3 - 1)", "_1"),
        "what chance seems to explain is believed",
        (FEW_VALUES,),
    ),
    Mutant(
        "functions are asked twice for an attribute",
        "estimators.containers:Observed.entries",
        rewrite("np.unique(attributes[_1])", "attributes[_1]"),
        "a laboratory measures, and bills, the same value twice",
        (f"{CONTAINERS}::test_functions_are_asked_for_distinct_ascending_attributes",),
    ),
    Mutant(
        "coordinates are multiplied by the scale",
        "estimators.base:SubspaceEstimator.inverse_transform",
        rewrite("_1 / self.scale_", "_1 * self.scale_"),
        "examples come back in other units than those of the table",
        (f"{ESTIMATORS}::test_coordinates_become_examples_in_units_of_the_table",),
    ),
    Mutant(
        "stored values of a cell are not added",
        "estimators.containers:checked",
        rewrite("X.sum_duplicates()", "None"),
        "a sparse table is learned from with other values than it holds",
        (f"{CONTAINERS}::test_stored_values_of_a_cell_are_added_once",),
    ),
    Mutant(
        "tuning in the bill of an estimator",
        "estimators.base:BudgetEstimator._adopt",
        rewrite(
            'learned.run["attributes_total"]', 'learned.run["attributes_total"] + learned.run["attributes_tuning"]'
        ),
        "tuned learners seem to have bought more than they learned from",
        (f"{ESTIMATORS}::test_tuning_has_a_bill_of_its_own",),
    ),
    Mutant(
        "masked cells are learned from",
        "estimators.containers:plain",
        rewrite("np.where(missing, np.nan, cells)", "cells"),
        "values that nobody bought are learned from, and charged",
        (CONTAINERS,),
    ),
    Mutant(
        "dates are days",
        "estimators.containers:_refuse_kind",
        around(lambda original, *arguments: None),
        "the number of days since 1970 is learned from in silence",
        (CONTAINERS,),
    ),
    Mutant(
        "durations among numbers",
        "estimators.containers:_missing_objects",
        rewrite("any(_1)", "False"),
        "a cell that holds a duration or an imaginary part is a number",
        (CONTAINERS,),
    ),
    Mutant(
        "sizes of any table",
        "estimators.containers:refuse_sizes",
        around(lambda original, *arguments, **options: None),
        "weights are 0 or infinite, as squares of values are",
        (CONTAINERS,),
    ),
    Mutant(
        "sizes of what is observed",
        "estimators.containers:Observed.refuse_small",
        around(lambda original, *arguments: None),
        "an attribute in a large unit has the weight 0",
        (CONTAINERS,),
    ),
    Mutant(
        "masked targets are targets",
        "estimators.base:BudgetEstimator._targets",
        rewrite("np.ma.is_masked(y)", "False"),
        "targets that are not known are learned from as unlabelled, or with the masked number",
        (CONTAINERS,),
    ),
    Mutant(
        "dollar signs begin a formula",
        "figures.canvas:own_settings",
        rewrite("False", "True"),
        "names of attributes and units are drawn as other names",
        (NAMES,),
    ),
    Mutant(
        "any text is drawn",
        "figures.canvas:drawable",
        around(lambda original, text: str(text)),
        "a figure cannot be drawn because of a byte in a file's name",
        (NAMES,),
    ),
)
