"""The answer of `budgetreg advise`: a verdict with a list, a table and a figure."""

import re
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from budgetreg.analysis.comparisons import Candidate, ranked
from budgetreg.analysis.intervals import Estimate
from budgetreg.figures import plot
from budgetreg.figures.advice import NAME, about_full_rows, advice_table, answer, draw_advice
from budgetreg.figures.specification import Drawing
from tests.analysis.test_claims import falling, series
from tests.figures.drawn import legend_of
from tests.figures.test_summary import rows

FULL = {"core": "offline", "k": 16}


ADVICE = Drawing(kind="advice")


def figure_of(*candidates: Candidate) -> Figure:
    return draw_advice((candidates, 4000), ADVICE).figure


def curves(**levels):
    """Return candidates that end 0.01 above given errors; those named full_... see full rows."""
    candidates = [
        series(name, falling(level), shared=0, noise=0.001, **(FULL if name.startswith("full") else {}))
        for name, level in levels.items()
    ]
    for candidate in candidates:
        candidate.points["test_svr_loss"] = np.nan
    return ranked(candidates, "test_relative")


def said(total=4000, **levels):
    return answer(curves(**levels), total)


def test_the_verdict_names_the_best_and_the_list_says_that_full_rows_do_worse():
    verdict, others, full = said(a=0.3, b=0.5, full_c=0.4)
    assert verdict.startswith(
        "With 4,000 attributes, a with k = 4 on 1,000 examples is best: error 0.3103 (90 % interval 0.3"
    )
    assert others == "clearly worse: all others"
    assert full.startswith("nearest with full rows: full_c on 1,000 full rows, clearly worse, by 0.0995 (90 % ")


def test_the_list_names_learners_that_may_be_as_good():
    verdict, level, other = said(a=0.3, b=0.3, full_c=0.3)
    assert re.fullmatch(
        r"With 4,000 attributes, .* has the lowest error, [^;]*\. After \d+ repetitions it is open whether that is the "
        r"best\.",
        verdict,
    )
    assert re.match(r"not clearly worse: [^;]*, ", level)
    assert re.match(r"nearest with (full rows|k attributes of each example): .*, not clearly worse, by ", other)


def test_the_answer_counts_the_repetitions_that_all_have():
    all_of_a, all_of_b = (series(name, falling(0.3), shared=0, noise=0.001) for name in "ab")
    some_of_b = replace(all_of_b, points=all_of_b.points[all_of_b.points["repetition"] < 3].copy())
    for curve in (all_of_a, some_of_b):
        curve.points["test_svr_loss"] = np.nan
    candidates = ranked([all_of_a, some_of_b], "test_relative")
    verdict, level = answer(candidates, 4000)[:2]
    assert "After 3 repetitions it is open" in verdict
    assert level == "5 repetitions or more would show which others are clearly worse"
    (about, *_) = draw_advice((candidates, 4000), ADVICE).paragraphs
    assert "the mean over 3 repetitions with" in " ".join(about.split())


def test_full_rows_can_be_the_best():
    verdict, _, budgeted = said(a=0.5, full_c=0.4, full_d=0.6)
    assert ", full_c on 1,000 full rows is best: error 0.4" in verdict
    assert budgeted.startswith(
        "nearest with k attributes of each example: a with k = 4 on 1,000 examples, clearly worse, by 0.1"
    )


def test_the_list_says_what_was_not_tried():
    assert said(a=0.3, b=0.4)[1:] == ["clearly worse: b with k = 4", "full rows: not tried"]
    assert said(full_a=0.3)[1:] == ["k attributes of each example: not tried"]


def test_all_attributes_of_each_example_stand_for_full_rows():
    """As where missing values are imputed, which learners on full rows need."""
    few, every = candidate("a"), candidate("b", 0.35, behind=(0.05, 0.01, 0.09))
    every = replace(every, series=replace(every.series, k=every.series.d))
    _, worse, full = answer([few, every], 4000)
    assert worse == "clearly worse: b with all attributes"
    assert full.startswith("nearest with full rows: b with all attributes of 1,000 examples, clearly worse, by 0.050 (")
    budget, learner = advice_table([every], 4000).columns[:2]
    assert (list(budget.cells), list(learner.cells)) == (["all"], ["b"])


def candidate(algo="a", error=0.3, behind=(0.0, 0.0, 0.0), interval=None, examples=1000, best_in=0.5, **more):
    """Return a row of a table: an error with its interval, and the difference from the best with its own."""
    keys = FULL if algo.startswith("full") else {}
    (curve,) = curves(**{algo: 0.3})
    config = {**curve.series.config, "intercept": "mean", **more}
    return Candidate(
        series=replace(curve.series, algo=algo, config=config, **({} if keys else {"k": 4})),
        examples=examples,
        attributes=4000,
        cost=np.nan,
        error=Estimate(error, *(interval or (0.9 * error, 1.1 * error))),
        behind=Estimate(*behind),
        best_in=best_in,
    )


def test_a_learner_that_is_no_better_than_the_mean_predictor_is_useless():
    """The widest interval is no evidence in favour of an error of 14.7."""
    rows = [
        candidate("full_ridge", 0.7, examples=437),
        candidate("aemr", 0.72, (0.02, -0.01, 0.05)),
        candidate("full_lasso", 14.7, (14.0, -3.0, 240.0), (4.6, 250.0)),
    ]
    _, level, *_, useless = answer(rows, 4000)
    assert level == "not clearly worse: aemr with k = 4"
    assert useless == "useless, no better than the mean predictor: full_lasso (full rows)"


def test_a_learner_far_behind_is_not_called_as_good_as_the_best():
    """An interval that reaches below 0 does not make a learner that is 2.21 behind worth trying."""
    rows = [candidate("aemr", 0.6), candidate("full_lasso", 2.81, (2.21, -0.1, 9.0))]
    verdict, full, useless = answer(rows, 4000)
    assert " is best: error 0.600 (" in verdict
    assert full == "full rows: no learner errs less than the mean"
    assert useless == "useless, no better than the mean predictor: full_lasso (full rows)"


def test_no_learner_may_be_any_good():
    (verdict,) = answer([candidate("a", 1.02), candidate("full_b", 1.3, (0.28, -0.1, 0.9))], 4000)
    assert verdict == (
        "With 4,000 attributes, no learner is better than the mean predictor: do not buy. The lowest error, 1.02 (90 % "
        "interval 0.92 to 1.12), is that of a with k = 4 on 1,000 examples."
    )


def test_the_kind_that_is_level_is_named_by_a_learner_that_is():
    """Of two learners on full rows, the one with the smaller mean is clearly worse, and the other is not."""
    rows = [
        candidate("a", 0.3),
        candidate("full_b", 0.35, (0.05, 0.01, 0.09)),
        candidate("full_c", 0.36, (0.06, -0.01, 0.2)),
    ]
    full = answer(rows, 4000)[-1]
    assert full.startswith("nearest with full rows: full_c on 1,000 full rows, not clearly worse, by 0.06 (")


def test_without_intervals_nothing_is_said_of_worse_or_level():
    nothing = (np.nan, np.nan)
    rows = [
        candidate(name, error, (0.1, *nothing), nothing, best_in=np.nan) for name, error in (("a", 0.3), ("b", 0.4))
    ]
    repetitions = rows[0].series.repetitions
    assert answer(rows, 4000) == [
        "With 4,000 attributes, a with k = 4 on 1,000 examples has the lowest error, 0.3. After "
        f"{repetitions} repetitions it is open whether that is the best.",
        "5 repetitions or more would show which others are clearly worse",
    ]
    told = "with its 90 % interval (fewer than 5 repetitions have none)"
    caption = [" ".join(paragraph.split()) for paragraph in draw_advice((rows, 4000), ADVICE).paragraphs]
    assert told in caption[0]
    assert told in str(advice_table(rows, 4000).caption)
    assert "have none" not in str(advice_table([candidate("a")], 4000).caption)


@pytest.mark.parametrize(
    ("full", "said"),
    [
        ({"error": 0.2, "examples": 40}, True),
        ({"error": 0.2, "examples": 40, "behind": (0.1, -0.1, 0.2)}, True),
        ({"error": 0.2, "examples": 40, "behind": (0.1, 0.05, 0.2)}, False),  # clearly worse
        ({"error": 0.2, "examples": 31}, False),  # fewer than 2 d
        ({"error": 0.4, "examples": 40}, False),  # much noise
    ],
)
def test_many_full_rows_with_little_noise_are_pointed_out(full, said):
    """There are 16 attributes."""
    text = about_full_rows([candidate("a", 0.19), candidate("full_b", **full)])
    assert text == (
        "The same attributes pay for 40 full rows, 2.5 times d; once that is about 2 or more and the noise is low, "
        "full rows win: see docs/explanation/aemr.md"
        if said
        else ""
    )


def test_measures_of_labels_are_in_the_table():
    rows_of = [replace(candidate("a"), measures={"test_error_rate": 0.125, "test_auc": 0.875}), candidate("b")]
    table = advice_table(rows_of, 4000)
    assert [column.header for column in table.columns][-2:] == ["error rate", "AUC"]
    assert [row[-2:] for row in rows(table)] == [["0.125", "0.875"], ["-", "-"]]
    assert [column.header for column in advice_table([candidate("a")], 4000).columns][-1] == "best in"


def test_the_axis_ends_above_the_mean_predictor_and_arrows_show_what_lies_beyond():
    (cut,) = figure_of(candidate("a", 0.6), candidate("full_b", 14.7, (14.1, 4.0, 249), (4.6, 250.0))).axes
    (whole,) = figure_of(candidate("a", 0.6), candidate("full_b", 0.7, (0.1, 0.0, 0.2))).axes
    assert cut.get_ylim() == (0, 1.2)
    assert [text.get_text() for text in cut.texts] == ["14.7"]
    (ring,) = (line for line in cut.lines if line.get_label() == "least error")
    assert ring.get_ydata().tolist() == [0.6]
    assert cut.figure.get_suptitle().startswith("With 4,000 attributes, a with k = 4 ")
    assert whole.get_ylim()[1] < 1
    assert not whole.texts


def test_the_table_lists_the_best_first():
    first, second = rows(advice_table(curves(a=0.3, full_c=0.4), 4000))
    assert first[:4] == ["4", "a", "1,000", "4,000"]
    assert re.fullmatch(r"0\.310\d \(0\.3\d+ to 0\.31\d+\)", first[4])
    assert first[5:] == ["0", "100 %"]
    assert second[:4] == ["all", "full_c", "1,000", "16,000"]
    assert float(second[5].split()[0]) == pytest.approx(0.1, abs=0.001)


@pytest.mark.slow
def test_the_figure_has_the_same_bytes_and_its_caption_gives_the_answer(tmp_path):
    candidates = curves(a=0.3, full_c=0.4)
    written, again = (plot((candidates, 4000), tmp_path / place, NAME, ADVICE) for place in ("one", "two"))
    assert [path.name for path in written] == ["advice.png", "advice.pdf", "advice.txt"]
    assert [path.read_bytes() for path in written] == [path.read_bytes() for path in again]
    caption = " ".join(written[-1].read_text().split())
    verdict, *items = answer(candidates, 4000)
    assert " - ".join([verdict, *items]) in caption
    assert "What tuning looks at is not in the total" in caption


def costly():
    """Return a learner with the least error whose folds look at more than the total pays for."""
    return replace(candidate("full_ridge", 0.2, (-0.1, -0.2, -0.05), examples=250), billed=9000.0, beyond=True)


def test_what_the_total_does_not_pay_for_is_not_compared_and_has_its_bill():
    """Folds of ridge looked at 9,000 attributes, so that aemr is the best that 4,000 pay for."""
    rows_of = [candidate("aemr", 0.3), costly()]
    verdict, full, bills = answer(rows_of, 4000)
    assert verdict.startswith("With 4,000 attributes, aemr with k = 4 on 1,000 examples is best: error 0.3")
    assert full == "full rows: none that this total pays for"
    assert bills == (
        "not paid for by this total, as tuning looks at more: full_ridge (full rows), error 0.200, billed 9,000"
    )
    assert [row[-2:] for row in rows(advice_table(rows_of, 4000))] == [["50 %", ""], ["50 %", "9,000"]]
    (alone, *_) = answer([costly()], 4000)
    assert "full_ridge on 250 full rows has the error 0.200" in alone
    assert "nothing else was compared with it" in alone
    assert alone.endswith("This total does not pay for what tuning looks at: full_ridge (full rows) is billed 9,000.")
    useless, bills_too = answer([candidate("aemr", 1.1), costly()], 4000)
    assert "is better than the mean predictor: do not buy." in useless
    assert bills_too == bills


def test_the_figure_says_which_errors_the_total_does_not_pay_for():
    paid = legend_of(figure_of(candidate("aemr", 0.3), costly()))
    assert sorted(paid) == ["aemr", "hollow: tuning looks beyond the total", "least error within the total"]
    assert sorted(legend_of(figure_of(candidate("aemr", 0.3)))) == ["aemr", "least error"]


@pytest.mark.parametrize("few", [0, 1])
def test_learners_that_see_full_rows_have_names_below_and_are_hollow_if_not_paid_for(few):
    unpaid = replace(candidate("full_b", 0.4), billed=9000.0, beyond=True)
    (ax,) = figure_of(*[candidate("aemr", 0.3)] * few, candidate("full_a", 0.5), unpaid).axes
    assert [text.get_text() for text in ax.get_xticklabels()] == ["4"] * few + ["full_a", "full_b"]
    of_full_rows = ax.get_xticks()[-2:]
    assert ax.get_xlim()[0] < of_full_rows[0] < of_full_rows[1] < ax.get_xlim()[1]
    hollow = [line.get_xydata().tolist() for line in ax.lines if line.get_markerfacecolor() == "white"]
    assert [points for points in hollow if points] == [[[of_full_rows[1], 0.4]]]


def test_tuning_beyond_the_total_ranks_last():
    few, costly = (candidate(name).series for name in ("a", "full_b"))
    costly.points["test_relative"] = few.points["test_relative"] - 0.1
    shared = {"attributes_total": 4000, "cells_tuning": 0, "rows_full": 0}
    few, costly = (
        replace(curve, runs=few.points[["repetition"]].drop_duplicates().assign(**shared)) for curve in (few, costly)
    )
    assert [each.series.algo for each in ranked([few, costly], "test_relative", 4000)] == ["full_b", "a"]
    costly = replace(costly, runs=costly.runs.assign(rows_full=500, cells_tuning=100))
    first, last = ranked([few, costly], "test_relative", 4000)
    assert (first.series.algo, last.series.algo, last.billed) == ("a", "full_b", 500 * 16)
    assert (first.beyond, last.beyond, first.best_in) == (False, True, 1)
    assert np.isnan(last.best_in)
    assert last.behind.value == pytest.approx(-0.1)
    assert not any(each.beyond for each in ranked([few, costly], "test_relative", 8000))
